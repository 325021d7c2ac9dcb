"""The API is versioned: what it promises is written down, and fuzzed.

python -m tests.serving.test_openapi        writes down what it promises now
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gatas.serving.app import make_app
from gatas.serving.service import ModelService
from gatas.serving.settings import ServerSettings

SNAPSHOT = Path(__file__).parent / "openapi.json"


def description():
    def load():
        raise AssertionError("nothing is asked")

    return make_app(ModelService(ServerSettings(), load)).openapi()


def test_the_api_is_the_one_that_is_written_down():
    """A change that is meant: python -m tests.serving.test_openapi, and a line in the changelog."""
    assert description() == json.loads(SNAPSHOT.read_text())


def test_every_answer_and_every_problem_is_described():
    paths = description()["paths"]
    assert {
        "/v1/embed",
        "/v1/predict",
        "/v1/links",
        "/v1/links/rank",
        "/v1/explain",
        "/v1/neighbours",
        "/v1/nodes",
        "/metrics",
    } <= set(paths)
    for path, methods in paths.items():
        for operation in methods.values():
            assert operation["description"], path
            if path.startswith("/v1/"):
                refs = [operation["responses"][code]["content"]["application/json"]["schema"] for code in ("422", "429", "503")]
                assert all(ref == {"$ref": "#/components/schemas/ErrorResponse"} for ref in refs)


def test_the_old_name_of_ranking_links_is_described_as_deprecated():
    paths = description()["paths"]
    new, old = (dict(paths[f"/v1/links/{name}"]["post"]) for name in ("rank", "likeliest"))
    assert old.pop("deprecated") is True and "deprecated" not in new
    assert old.pop("operationId") != new.pop("operationId")
    assert old == new


def test_every_field_of_a_body_that_could_be_misread_is_described():
    schemas = description()["components"]["schemas"]
    assert "names" in schemas["ModelResponse"]["properties"] and "several" not in schemas["PredictResponse"]["properties"]
    for schema, field in (("ModelResponse", "names"), ("PredictResponse", "multi_label"), ("ErrorResponse", "code")):
        assert schemas[schema]["properties"][field]["description"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "client",
    [pytest.param("camp_client", marks=pytest.mark.long), pytest.param("like_client", marks=pytest.mark.long), "shop_client"],
)
def test_schemathesis_finds_nothing(request, client, tmp_path):
    """Requests of every kind, by and against the description: no 5xx, and every answer is one that is described."""
    address = request.getfixturevalue(client).base_url
    command = [
        sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run",
        f"{address}/openapi.json", "--max-examples", "15", "--seed", "1",
        "--phases", "examples,coverage,fuzzing", "--exclude-checks", "positive_data_acceptance",
        "--suppress-health-check", "all", "--generation-database", "none", "--no-color",
    ]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(description(), indent=1, ensure_ascii=False) + "\n")
