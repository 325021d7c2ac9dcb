"""The code of README and of the pages for newcomers runs as it is written, but for fewer epochs; links lead somewhere."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gatas.cli import main
from website.hooks import GENERATED

ROOT = Path(__file__).parents[1]
BIBLIOGRAPHY = ROOT / "examples/bibliography"
FEWER_EPOCHS = {r"\bseed=0": "seed=0, epochs=2", r"epochs=(50|100)": "epochs=1"}  # of ours; of PyG's explainer and PyKEEN
pytestmark = pytest.mark.filterwarnings("ignore")


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in one language, without those that say that they are not run."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [block for block in found if "not run here" not in block]


def shortened(code: str) -> str:
    for written, fewer in FEWER_EPOCHS.items():
        code = re.sub(written, fewer, code)
    return code


def run_python(page: str) -> int:
    """Run all Python blocks of a page in one namespace; return how many there were."""
    found, names = blocks(page, "python"), dict[str, object]()
    for code in found:
        exec(compile(shortened(code), page, "exec"), names)
    return len(found)


def run_commands(page: str, monkeypatch) -> list[str]:
    """Run the commands of a page in order, but for the server; return what is asked of `gatas`."""
    lines = [
        line for block in blocks(page, "sh") for line in block.replace("\\\n", "").splitlines() if line.startswith("gatas ")
    ]
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[1] == "serve":
            continue
        monkeypatch.setattr("sys.argv", [*words, *(["--set", "training.epochs=1"] if words[1] == "train" else [])])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, line
    return [line.split()[1] for line in lines]


@pytest.mark.slow
def test_the_quick_start_of_the_readme_runs_in_a_folder_with_the_examples_tables(tmp_path, monkeypatch):
    for table in BIBLIOGRAPHY.glob("*.csv"):
        shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert set(run_commands("README.md", monkeypatch)) == {"init", "train", "predict", "explain", "serve"}
    assert run_python("README.md") >= 1
    assert (tmp_path / "runs/mine/report.html").exists() and list((tmp_path / "runs/mine/explanations").glob("*.png"))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "least"), [("docs/concepts.md", 1), ("docs/coming-from.md", 12)])
def test_the_python_of_a_page_runs_from_top_to_bottom(page, least, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_python(page) >= least


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_of_a_page_lead_to_files_and_headings_that_are_there(page):
    path = ROOT / page
    for link in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    ):
        place, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = path.parent / place if place else path
        if path.parent == ROOT / "docs" and place in GENERATED:  # pages of the site alone
            continue
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """What GitHub and the site call the headings of a page, where both agree."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-") for heading in headings}
