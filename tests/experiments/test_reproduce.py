import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gatas.cli import main
from gatas.errors import ConfigError
from gatas.experiments import recipes
from gatas.experiments.contenders import contender
from gatas.experiments.paper import asked_of, compared, recipes_of, render, reproduce, settings_of_config, update_readme
from gatas.experiments.recipes import names, recipe
from gatas.experiments.recording import session
from gatas.experiments.results import completed, kept, laid_out, read_result, result_path
from gatas.experiments.tables import TABLES, Cell, PaperTable
from tests.experiments.records import record

TINY = PaperTable("tiny", "Tiny", (Cell("ours", "Digits", "digits", "test.accuracy", 90.0, 1.0),), ("A note.",), seeds=2)


RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def tiny(monkeypatch):
    """A table of one quick recipe."""
    monkeypatch.setitem(TABLES, "tiny", TINY)
    quick = {"model": {"sample_size": 5, "num_heads": 1, "hidden_size": 8}, "training": {"epochs": 2}}
    monkeypatch.setitem(recipes.OWN, "digits", quick)


def test_every_cell_has_a_recipe():
    known = set(names())
    assert all(cell.recipe in known for table in TABLES.values() for cell in table.cells)


def test_a_table_is_run_once_and_goes_on_where_it_stopped(tiny, tmp_path):
    begun: list[str] = []
    first = reproduce("tiny", tmp_path, seeds=2, begin=begun.append, device="cpu")
    found = json.loads((tmp_path / "digits.json").read_text())
    assert [run["seed"] for run in found["runs"]] == [0, 1] and begun == ["digits"]
    assert found["sessions"][0]["seconds"] > 0 and found["sessions"][0]["versions"]["torch"]
    assert "| 2 |" in first and "90.00 ± 1.00" in first
    reproduce("tiny", tmp_path, seeds=3, device="cpu")
    again = json.loads((tmp_path / "digits.json").read_text())
    assert again["runs"][:2] == found["runs"] and [session["seeds"] for session in again["sessions"]] == [[0, 1], [2]]


def test_results_of_other_settings_are_never_added_to(tiny, tmp_path, monkeypatch):
    reproduce("tiny", tmp_path, seeds=1, device="cpu")
    before = (tmp_path / "digits.json").read_bytes()
    monkeypatch.setitem(recipes.OWN, "digits", {**recipes.OWN["digits"], "training": {"epochs": 3}})
    assert "not run yet" in render(TINY, tmp_path)
    assert "| 2 |" in reproduce("tiny", tmp_path, seeds=2, device="cpu")
    assert (tmp_path / "digits.json").read_bytes() == before
    other = result_path(tmp_path, asked_of("digits", recipe("digits")))
    assert other.name != "digits.json" and [run.epochs for run in read_result(other).runs] == [3, 3]


def test_results_from_before_a_setting_was_added_are_gone_on_with(tiny, tmp_path):
    reproduce("tiny", tmp_path, seeds=1, device="cpu")
    found = json.loads((tmp_path / "digits.json").read_text())
    del found["settings"]["model"]["layer_norm"]
    (tmp_path / "digits.json").write_text(json.dumps(found))
    reproduce("tiny", tmp_path, seeds=2, device="cpu")
    assert len(json.loads((tmp_path / "digits.json").read_text())["runs"]) == 2


def test_our_own_results_have_the_settings_of_their_recipes():
    paths = list(RESULTS.glob("*.json"))
    for path in paths:
        found = read_result(path)
        assert found.runs and found.is_about(asked_of(path.stem, recipe(path.stem))), path
    assert len(paths) >= 29


def test_our_own_comparisons_have_the_settings_of_their_models():
    paths = list((RESULTS / "peers").glob("*.json"))
    for path in paths:
        found = read_result(path)
        named: Any = SimpleNamespace(name=found.data, task=found.task, ranked=False)
        settings = kept({"data": {"name": found.data}, **contender(found.model, named).settings})
        assert found.runs and completed(found.settings) == completed(settings), path
    assert len(paths) >= 45


def test_our_own_results_are_where_they_would_be_written():
    for path in (*RESULTS.glob("*.json"), *(RESULTS / "peers").glob("*.json")):
        assert result_path(path.parent, read_result(path)) == path


def test_cells_that_were_not_run_say_so(tmp_path):
    assert render(TABLES["table1"], tmp_path).count("not run yet") == len(TABLES["table1"].cells)


@pytest.mark.parametrize(
    ("mean", "said"),
    [
        (90.9, "within 2 standard errors"),
        (89.1, "within 2 standard errors"),
        (91.5, "+3.0 standard errors"),
        (87.5, "-5.0 standard errors"),
    ],
)
def test_a_verdict_counts_standard_errors_of_the_difference(mean, said):
    #   ours: 1.2 over 9 seeds, the paper's: 3 over 100 runs, so √(0.16 + 0.09) = 0.5
    cell = Cell("ours", "Digits", "digits", "test.accuracy", 90.0, 3.0, seeds=100)
    assert compared(cell, mean, 1.2, 9) == (f"{mean - 90:+.2f} ± 0.50", said)


def test_without_the_papers_deviation_the_error_is_that_of_ours_alone_and_said():
    cell = Cell("ours", "Digits", "digits", "test.accuracy", 90.0)
    assert compared(cell, 88.0, 1.2, 9) == ("-2.00 ± 0.40", "-5.0 standard errors, of ours alone")
    assert compared(cell, 90.1, 1.2, 9) == ("+0.10 ± 0.40", "within 2 standard errors, of ours alone")
    assert compared(cell, 88.0, 0.0, 1) == ("-2.00", "one run")
    assert compared(replace(cell, paper=None), 88.0, 1.2, 9) == ("–", "–")


def test_the_papers_means_are_over_as_many_runs_as_it_says():
    runs = {cell.column: cell.seeds for cell in TABLES["table1"].cells}
    assert runs == {"Cora": 100, "Citeseer": 100, "Pubmed": 100, "PPI (rebuilt labels)": 10}


def test_wrong_names_are_answered_with_the_known_ones():
    with pytest.raises(ConfigError, match="Known: table1"):
        recipes_of("table9", [])
    with pytest.raises(ConfigError, match="ppi-base"):
        recipes_of("table3", ["corra"])
    with pytest.raises(ConfigError, match="Did you mean citeseer"):
        recipe("citeseeer")
    assert recipes_of("table3", ["ppi"]) == [
        "ppi-base", "ppi-without_transitions", "ppi-without_prior", "ppi-uniform_steps", "ppi-without_paths", "ppi-500"
    ]  # fmt: skip


def test_a_table_goes_between_its_marks(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- results: tiny -->\nold\n<!-- end of tiny -->\nafter\n")
    update_readme(readme, "tiny", "new")
    assert readme.read_text() == "before\n<!-- results: tiny -->\nnew\n<!-- end of tiny -->\nafter\n"
    with pytest.raises(ConfigError, match="no marks"):
        update_readme(readme, "other", "new")


def test_the_reference_recipe_has_the_five_departures_that_it_says():
    paper, reference = recipe("cora"), recipe("cora-reference")
    assert reference == paper.with_settings(recipes.REFERENCE) and len(recipes.REFERENCE) == 5
    assert reference.model.transition_kind == "count" and reference.model.late_decay and reference.model.l2_on_depth
    assert reference.model.positions_from_neighbour and reference.model.path_score_dropout
    assert not paper.model.late_decay and paper.model.transition_kind == "walk"


def test_a_result_is_rounded_but_not_cut():
    runs = [{"seed": 0, "test": {"f1": 0.5}}, {"seed": 1, "test": {"f1": 1}}]
    assert record(runs=runs).values("test.f1") == [0.5, 1.0]


def command(capsys, *words):
    """What `gatas reproduce` prints and says, and its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "argv", ["gatas", "reproduce", *map(str, words)])
        main()
    out, err = capsys.readouterr()
    return out, err, end.value.code or 0


def test_the_command_runs_some_recipes_in_programs_of_some_seeds_and_renders(tiny, tmp_path, capsys):
    readme = tmp_path / "README.md"
    readme.write_text("<!-- results: tiny -->\n<!-- end of tiny -->\n")
    words = ("tiny", "--out", tmp_path / "results", "--device", "cpu")
    out, err, code = command(capsys, *words, "--render-only")
    assert code == 0 and "not run yet" in out and err == "" and not (tmp_path / "results").exists()
    out, err, code = command(capsys, *words, "--seeds", 3, "--at-once", 2, "--only", "dig", "--readme", readme)
    assert code == 0 and err == "digits …\n" and "| 3 |" in out and out.strip() in readme.read_text()
    sessions = read_result(tmp_path / "results" / "digits.json").sessions
    assert [session.seeds for session in sessions] == [[0, 1], [2]]
    _, err, code = command(capsys, *words, "--only", "kin")
    assert code == 1 and err.count("\n") == 1 and "nothing in tiny is named like kin" in err


def test_the_command_looks_for_data_in_the_folder_given(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("GATAS_DATA", raising=False)
    _, err, code = command(capsys, "table2", "--only", "twitter", "--data-dir", tmp_path / "nowhere", "--out", tmp_path)
    assert code == 1 and str(tmp_path / "nowhere") in "".join(err.split("\n"))


def test_results_have_a_line_for_each_curve_and_for_the_metrics_of_each_type_and_lose_nothing():
    measured = {"by_type": {"ä": {"mrr": 0.5}, "b": {}}}
    content = {"runs": [{"seed": 0, "test": measured}], "curves": {"0": {"loss": [1.0, 2.0]}}, "n": []}
    text = laid_out(content)
    assert (
        json.loads(text) == content
        and '\n     "ä": {"mrr": 0.5},\n     "b": {}\n' in text
        and '\n   "loss": [1.0, 2.0]\n' in text
    )


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["/opt/bin/gatas", "reproduce", "table1", "--only", "cora"], "gatas reproduce table1 --only cora"),
        (["/opt/gatas/__main__.py", "compare", "/data/mine.yaml", "--out=/data/found"], "gatas compare mine.yaml --out=found"),
        (["gatas", "compare", "cora", "--data-dir", "../my data"], "gatas compare cora --data-dir 'my data'"),
        (["/opt/bin/pytest", "tests"], ""),
    ],
)
def test_a_session_names_its_command_without_folders(words, command, monkeypatch):
    monkeypatch.setattr(sys, "argv", words)
    assert session([0], torch.device("cpu")).command == command


def test_reference_recipes_have_the_sample_sizes_of_the_table_that_they_are_beside():
    sizes = [recipe(cell.recipe).model.sample_size for cell in TABLES["reference"].cells]
    assert sizes == [10, 100, 500] * 3
    assert recipe("cora-reference-10") == recipe("cora-reference").with_settings({"model.sample_size": 10})


def test_the_raw_recipe_of_ppi_neither_standardises_nor_keeps_batches_to_one_graph():
    raw = recipe("ppi-raw")
    assert settings_of_config(raw)["data"] == {"name": "ppi", "standardise": False} and raw.training.by_graph is False
    assert raw.with_settings({"data.standardise": True, "training.by_graph": True}) == recipe("ppi")
