"""The code of README and of the pages for newcomers runs as it is written, but for fewer epochs."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gatas.cli import main

ROOT = Path(__file__).parents[1]
BIBLIOGRAPHY = ROOT / "examples/bibliography"
FEWER_EPOCHS = {r"\bseed=0": "seed=0, epochs=2", r"epochs=(50|100)": "epochs=1"}  # of ours; of PyG's explainer and PyKEEN
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in one language, without those that say that they are not run."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [block for block in found if "not run here" not in block]


def shortened(code: str) -> str:
    for written, fewer in FEWER_EPOCHS.items():
        code = re.sub(written, fewer, code)
    return code


@pytest.mark.parametrize(("page", "least"), [("README.md", 1), ("docs/concepts.md", 1), ("docs/coming-from.md", 12)])
def test_the_python_of_a_page_runs_from_top_to_bottom(page, least, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(page, "python")
    assert len(found) >= least
    names: dict[str, object] = {}
    for code in found:
        exec(compile(shortened(code), page, "exec"), names)
