"""The notebook of the quick start runs, and shows what it is stored with."""

import pytest

from tests.website.code_blocks import words
from website import notebook


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
def test_the_notebook_runs_from_top_to_bottom_and_shows_what_is_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    stored = notebook.read()
    kinds = [[output["output_type"] for output in cell.get("outputs", ())] for cell in stored["cells"]]
    found = notebook.run(notebook.read())
    assert [[output["output_type"] for output in cell.get("outputs", ())] for cell in found["cells"]] == kinds
    text = [
        [one for cell in every["cells"] for one in cell.get("outputs", ()) if "image/png" not in one.get("data", ())]
        for every in (stored, found)
    ]
    assert words(str(text[0])) == words(str(text[1]))


def test_the_page_of_the_notebook_has_the_code_the_outputs_and_the_figure():
    page = notebook.page()
    assert page.startswith("# Quick start as a notebook") and page.count("```python") == page.count("```") // 2 - page.count(
        "```text"
    )
    assert page.count("](data:image/png;base64,") == 1


def test_a_cell_shows_what_it_prints_and_its_last_expression():
    names: dict[str, object] = {}
    printed, value = notebook.outputs_of("x = 2\nprint('two')\nx + 1", names, 1)
    assert printed["text"] == "two\n" and value["data"] == {"text/plain": "3"}
    assert notebook.outputs_of("x = 5", names, 2) == [] and names["x"] == 5
