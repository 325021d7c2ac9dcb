"""Files that other machines read: workflows, templates of issues, the citation, the Dockerfile."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FORMS = [path for path in sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")) if path.stem != "config"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", ROOT.joinpath("Makefile").read_text(), flags=re.MULTILINE))


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


# Workflows.


def test_there_are_workflows_for_tests_docs_and_releases():
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_alone_unless_a_job_says_more_and_ends_in_time(path):
    workflow = read(path)
    assert workflow["name"] and workflow[True]  # YAML takes `on` for a boolean
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"] and job["timeout-minutes"] <= 60
        assert {job["needs"]} <= set(workflow["jobs"]) if "needs" in job else True


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_uses_an_action_of_a_version_or_runs_what_is_there(path):
    for step in steps(read(path)):
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])
        for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
            assert target in TARGETS | {"docs"}, f"{path.name} runs make {target}, which is not in the Makefile"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_shells_can_parse_what_steps_run(path):
    for step in steps(read(path)):
        script = re.sub(r"\$\{\{.*?\}\}", "value", step.get("run", ""))
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_tests_run_on_the_versions_of_python_that_the_package_names():
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.fullmatch(r".* :: 3\.\d+", line)]
    assert read(ROOT / ".github/workflows/test.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_pypi_is_given_a_token_of_github_by_the_job_that_publishes_alone():
    jobs = read(ROOT / ".github/workflows/release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert "secrets." not in ROOT.joinpath(".github/workflows/release.yml").read_text()


# Templates and the citation.


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_named_fields_with_labels_and_asks_for_something(path):
    form = read(path)
    assert form["name"] and form["description"]
    fields = form["body"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(
        field["type"] in ("textarea", "input", "dropdown", "checkboxes") and field["attributes"]["label"] for field in fields
    )
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_citation_is_of_the_paper_that_readme_names():
    citation = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Andrade", "Liu"]
    readme = " ".join(ROOT.joinpath("README.md").read_text().split())
    assert paper["title"] in readme and paper["url"] in readme and str(paper["year"]) in readme


def test_every_file_names_the_same_repository():
    repository = PROJECT["urls"]["Source"]
    others = ("CITATION.cff", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml")
    assert all(repository in ROOT.joinpath(name).read_text() for name in others)
    assert f'REPOSITORY = "{repository.removeprefix("https://github.com/")}"' in ROOT.joinpath("setup.py").read_text()


# The Dockerfile: what can be known of its build without one.


def instructions():
    """The instructions with what they are given, continued lines joined and comments left out."""
    lines = [line for line in ROOT.joinpath("Dockerfile").read_text().splitlines() if not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line.strip()]


def given(name):
    return [rest for word, rest in instructions() if word == name]


def test_what_the_image_copies_is_there_and_not_ignored():
    ignored = ROOT.joinpath(".dockerignore").read_text().splitlines()
    sources = [word for rest in given("COPY") if not rest.startswith("--from") for word in rest.split()[:-1]]
    assert {"gatas", "pyproject.toml", "constraints.txt"} <= set(sources)
    for source in sources:
        assert ROOT.joinpath(source).exists() and f"!{source}" in ignored, source
    assert "*" in ignored and len(ignored) == len(set(ignored))


def test_what_the_image_copies_from_a_stage_was_made_there():
    stages = [rest.split()[-1] for rest in given("FROM") if " AS " in rest]
    (copied,) = [shlex.split(rest) for rest in given("COPY") if rest.startswith("--from")]
    assert copied[0] == f"--from={stages[0]}"
    assert f"python -m venv {copied[1]}" in given("RUN") and copied[1] == copied[2]  # scripts name their interpreter's path


def test_the_files_that_the_build_needs_are_copied_before():
    names = [word for word, _ in instructions()]
    installs = [
        place for place, (word, rest) in enumerate(instructions()) if word == "RUN" and "--constraint constraints.txt" in rest
    ]
    assert len(installs) == 2 and names.index("COPY") < installs[0]
    copied = " ".join(rest for word, rest in instructions()[: installs[1]] if word == "COPY").split()
    manifest = ROOT.joinpath("MANIFEST.in").read_text().split("\n")[0].split()[1:]
    assert {*manifest, "pyproject.toml", "setup.py", "README.md", "LICENSE", "gatas"} <= set(copied)


HELP = {
    "pip install": [sys.executable, "-m", "pip", "install", "--help"],
    "pip check": [sys.executable, "-m", "pip", "check", "--help"],
    "python -m venv": [sys.executable, "-m", "venv", "--help"],
    "useradd": ["useradd", "--help"],
}


def test_every_option_of_a_command_of_the_image_exists():
    commands = [shlex.split(part) for rest in given("RUN") for part in rest.split("&&")]
    for words in commands:
        (name,) = [name for name in HELP if words[: len(name.split())] == name.split()]
        if shutil.which(HELP[name][0]) is not None:
            known = subprocess.check_output(HELP[name], text=True)
            assert all(re.search(rf"{option}\b", known) for option in words if option.startswith("--")), words


def test_the_image_serves_as_a_user_without_rights_where_its_health_is_asked_for(gatas_help):
    (command,) = map(json.loads, given("CMD"))
    assert json.loads(given("ENTRYPOINT")[0]) == ["gatas"] and command[:2] == ["serve", "/run"]
    assert all(option in gatas_help for option in command if option.startswith("--"))
    last = [word for word, _ in instructions()]
    assert given("USER") == ["gatas"] and last.index("USER") < last.index("ENTRYPOINT")
    port = command[command.index("--port") + 1]
    assert given("EXPOSE") == [port]
    (health,) = given("HEALTHCHECK")
    code = json.loads(health.partition("CMD ")[2])[2]
    compile(code, "HEALTHCHECK", "exec")
    assert f"http://127.0.0.1:{port}/v2/health/ready" in code


@pytest.fixture
def gatas_help():
    return subprocess.check_output([sys.executable, "-m", "gatas", "serve", "--help"], text=True)
