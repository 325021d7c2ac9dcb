"""`reproduce check`: figures of pages against files, tables against results, results against recipes and commits."""

import json
import random
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from gatas.errors import ConfigError
from gatas.experiments.check import Checked, check, check_figures, source_of
from gatas.experiments.check_results import check_commits, check_others, outdated
from gatas.experiments.figures import Passage, figures_in, passages
from gatas.experiments.matching import mistakes
from gatas.experiments.paper import render
from gatas.experiments.report_results import read_results
from gatas.experiments.results import write_result
from gatas.experiments.sources import factors, of_result, of_text, read_source
from gatas.experiments.tables import TABLES
from tests.experiments.records import record

ROOT = Path(__file__).parents[2]


def test_every_figure_of_readme_and_docs_is_in_the_file_it_names():
    checked = check(ROOT)
    assert checked.problems == []
    assert checked.num_figures > 200 and checked.num_tables >= 7 and checked.num_results >= 110


def test_of_figures_that_are_changed_at_random_nearly_all_are_found():
    rng, read, caught = random.Random(0), cache(read_source), list[bool]()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for passage in passages(page.read_text()):
            figures = figures_in(passage)
            sources = {path for link in passage.links if figures and (path := source_of(link, page, ROOT)) is not None}
            numbers = [number for path in sources for number in read(path)]
            for place in rng.sample(range(len(figures)), min(3, len(figures))):
                one = figures[place]
                off = rng.choice((-1, 1)) * rng.randint(1, 5) * 10.0**-one.digits
                wrong = [*figures[:place], replace(one, value=abs(one.value + off)), *figures[place + 1 :]]
                caught.append(mistakes(wrong, numbers, passage.only) != [])
    assert len(caught) > 100 and sum(caught) >= 0.95 * len(caught)


def shown(text):
    """The figures of one passage, as they are shown."""
    return [str(figure) for figure in figures_in(Passage(1, text, ()))]


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("takes 26 to 28 s and 1.2 GiB", ["26 s", "28 s", "1.2 GiB"]),
        ("95.9 % of them, 12 × as fast", ["95.9 %", "12 ×"]),
        ("82.30 ± 0.90 over 100 seeds", ["82.30 ± 0.90"]),
        ("a ROC-AUC of 0.960 (macro)", ["0.960"]),
        ("13,121 MiB, −0.17 in all", ["13121 MiB", "-0.17"]),
        ("1,797 images, 10 labels, seed 0, S = 100", []),
        ("from 10⁴ to 10⁷ edges, 2.7·10⁹ entries", []),
        ("set `dropout: 0.5` or `4 MiB`; blocks of 5 × 5", []),
        ("Python 3.12.3, torch 2.13, §4.2, the 95 % intervals", []),
        ("| | seconds |\n|---|---|\n| ours, 3 seeds | 4 |", ["4 seconds"]),
        ("| | parts of 10 s |\n|---|---|\n| ours | 4 |", ["10 s"]),
        ("0.9 · 0.045 = 1.5 points <!-- reckoned -->", []),
        ("took 54\nminutes, and\n  3 to\n  4 s; 82.3\n± 0.9 %", ["82.3 ± 0.9 %", "54 minutes", "3 s", "4 s"]),
    ],
)
def test_figures_are_numbers_with_a_unit_a_deviation_or_a_point_outside_of_code(text, figures):
    assert shown(text) == figures


def test_a_passage_without_links_has_those_beside_it_but_not_beyond_a_heading():
    page = "Before ([a](a.md)):\n\n| 1 s |\n\nAfter ([b](b.md)).\n\n## Other\nAlone.\n- Item ([c](c.md)).\n- Item.\n"
    assert [(one.line, one.links) for one in passages(page)] == [
        (1, ("a.md",)), (3, ("a.md", "b.md")), (5, ("b.md",)), (8, ("c.md",)), (9, ("c.md",)), (10, ("c.md",))
    ]  # fmt: skip


def test_code_and_generated_parts_are_no_passages_but_lines_are_counted():
    page = "```sh\n9 s\n```\n<!-- results: x -->\n9 s\n<!-- end of x -->\nHere.\n"
    assert passages(page) == [Passage(7, "Here.", ())]


@pytest.fixture
def checkout(tmp_path):
    """A page, a report with a command, and one without."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "run.md").write_text(
        "- command: `python -m benchmarks.run`\n\n| | ms | accuracy |\n|---|---|---|\n"
        "| ours | 1,234 | 0.8214 |\n| gat | 52.7 | 82.30 ± 0.94 |\n"
    )
    (tmp_path / "benchmarks" / "lost.md").write_text("It took 3 s.\n")
    return tmp_path


def problems(checkout, text):
    """What is wrong with a page."""
    page, checked = checkout / "README.md", Checked()
    page.write_text(text)
    check_figures(page, checkout, checked)
    return [problem.removeprefix(f"{page}:").replace(f"{checkout}/", "") for problem in checked.problems]


@pytest.mark.parametrize("figure", ["1.23 s", "1.234 s", "1,234 ms", "53 ms", "82.1 %", "0.82", "82.3 ± 0.9"])
def test_a_figure_may_be_rounded_and_in_another_unit(checkout, figure):
    assert problems(checkout, f"It is {figure} ([report](benchmarks/run.md)).") == []


@pytest.mark.parametrize("figure", ["1.3 s", "1.234 ms", "53 MiB", "82.2 %", "82.1 ± 0.9", "82.3 ± 0.8", "54 ms"])
def test_a_figure_that_its_source_does_not_have_is_named(checkout, figure):
    assert problems(checkout, f"It is {figure} ([report](benchmarks/run.md)).") == [f"1: {figure} is not in benchmarks/run.md."]


def test_a_figure_without_a_source_or_with_one_that_is_not_there_is_named(checkout):
    assert problems(checkout, "One.\nIt is 53 ms.")[0].startswith("2: 53 ms has no source. Link the file")
    assert problems(checkout, "It is 53 ms ([elsewhere](https://example.org/benchmarks/run.md)).")[0].startswith(
        "1: 53 ms has no"
    )
    assert problems(checkout, "It is 53 ms ([gone](benchmarks/gone.md)).")[0] == "1: benchmarks/gone.md is not there."


def test_a_source_without_a_command_is_refused(checkout):
    assert (
        problems(checkout, "It is 3 s ([report](benchmarks/lost.md)).")[0]
        == "1: benchmarks/lost.md names no command that made it."
    )


def test_a_results_numbers_are_those_of_its_seeds_their_mean_and_deviation():
    runs = [{"seed": seed, "test": {"accuracy": value}, "seconds_to_best": 2.0} for seed, value in enumerate((0.8, 0.9))]
    numbers = of_result(record(runs=runs), "camps-gcn.json")
    found = {one.place[-1]: round(one.value, 6) for one in numbers if one.unit == "%"}
    assert found == {"mean": 85.0, "median": 85.0, "lowest": 80.0, "best": 90.0, "seed 0": 80.0, "seed 1": 90.0}
    mean = next(one for one in numbers if one.unit == "%" and one.place[-1] == "mean")
    assert mean.spread is not None and round(mean.spread, 4) == 7.0711 and mean.about == (("camps",), ("gcn",), ("accuracy",))
    assert {one.value for one in numbers if one.unit == "s"} == {2.0}


def result(folder, data, model, *accuracies, **more):
    """A file of a result with some accuracies."""
    runs = [{"seed": seed, "test": {"accuracy": accuracy, "micro_f1": 0.5}} for seed, accuracy in enumerate(accuracies)]
    folder.mkdir(parents=True, exist_ok=True)
    write_result(folder / f"{data}-{model}.json", record(model, data, runs=runs, **more))


@pytest.fixture
def peers(checkout):
    """A folder of results: two models on two data sets."""
    folder = checkout / "results" / "peers"
    for place, (data, model) in enumerate([("camps", "gcn"), ("camps", "gat"), ("clubs", "gcn"), ("clubs", "gat")]):
        result(folder, data, model, 0.6 + place / 10, 0.62 + place / 10)
    return checkout


TABLE = "By [peers](results/peers).\n\n| | accuracy of gcn | beside it |\n|---|---|---|\n| {} | {} | {} |\n"


def test_a_figure_of_a_result_is_that_of_the_data_and_model_that_its_row_column_or_cell_names(peers):
    assert problems(peers, TABLE.format("Camps", "61.00 ± 1.41", "GAT 71.00 ± 1.41")) == []
    assert problems(peers, TABLE.format("Clubs", "81.00 ± 1.41", "gat, cut: 91.00 ± 1.41")) == []
    (swapped,) = problems(peers, TABLE.format("Camps", "71.00 ± 1.41", "GAT 71.00 ± 1.41"))
    assert swapped.startswith("5: 71.00 ± 1.41 is not in results/peers")
    (elsewhere,) = problems(peers, TABLE.format("Clubs", "81.00 ± 1.41", "gat 71.00 ± 1.41"))
    assert elsewhere.startswith("5: 71.00 ± 1.41 is not in")
    assert len(problems(peers, TABLE.format("Camps", "60.00", "gat 71.00"))) == 1  # a single seed that is not named
    assert problems(peers, "Seed 0 of gcn on camps has 60.00 ([result](results/peers/camps-gcn.json)).") == []
    assert len(problems(peers, "gcn on camps has a micro-F1 of 61.00 ([result](results/peers/camps-gcn.json)).")) == 1


GRID = "| model | s, small | s, large |\n|---|---|---|\n| ours | 1.1 | 1.4 |\n| gat | 1.2 | 1.6 |\n| sage | 1.3 | 1.5 |\n"


def test_a_copied_table_has_rows_and_columns_of_its_source(checkout):
    (checkout / "benchmarks" / "grid.md").write_text(f"- command: `python -m benchmarks.grid`\n\n{GRID}")
    rows = "| | ours | GAT |\n|---|---|---|\n| small | {} s | 1.2 s |\n| large | 1.4 s | 1.6 s |\n"
    page = f"By [the report](benchmarks/grid.md).\n\n{rows}"
    assert problems(checkout, page.format("1.1")) == []
    assert any("1.3 s is not in the row and column" in problem for problem in problems(checkout, page.format("1.3")))


def test_prose_says_which_line_it_is_of_where_wrong_figures_would_be_in_the_source(checkout):
    (checkout / "benchmarks" / "grid.md").write_text(f"- command: `python -m benchmarks.grid`\n\n{GRID}")
    (unclear,) = problems(checkout, "It takes 1.3 s ([report](benchmarks/grid.md)).")
    assert "so would be 5 of the 10 figures beside it. Name its row" in unclear
    page = "It takes {} s ([report](benchmarks/grid.md)). <!-- of: sage & small -->"
    assert problems(checkout, page.format("1.3")) == []
    assert problems(checkout, page.format("1.5")) == ["1: 1.5 s is not in benchmarks/grid.md."]
    table = "By [it](benchmarks/grid.md).\n\n| |\n|---|\n| {} s |\n\n<!-- of: sage & small -->\n"
    assert problems(checkout, table.format("1.3")) == [] and len(problems(checkout, table.format("1.5"))) == 1


def test_units_convert_within_what_they_measure():
    assert factors("ms", "s") == [pytest.approx(1e-3)] and factors("MiB", "s") == [] and factors("s", "seconds") == [1.0]
    assert factors("", "%") == [100.0, 1.0] and factors("GiB", "GiB") == [1.0] and factors("×", "%") == []


def test_logs_and_folders_are_sources_too(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"valid": 0.5}\n{"seconds": [3, 4.5]}\n')
    (tmp_path / "log.json").write_text('{"peak_bytes": 1048576, "name": "x", "done": true}')
    assert [(one.value, one.unit) for one in read_source(tmp_path / "log.jsonl")] == [(50.0, "%"), (3.0, "s"), (4.5, "s")]
    assert [(one.value, one.unit, one.place) for one in read_source(tmp_path)] == [(2**20, "bytes", ("log.json", "peak_bytes"))]
    (cell,) = of_text("## Speed\n| model | takes |\n|---|---|\n| ours | 5 s |\n", "run.md")
    assert cell.place == ("run.md", "Speed", "ours", "", "takes", "0") and (cell.value, cell.unit) == (5.0, "s")


@pytest.fixture
def copy(tmp_path):
    """A small checkout with one result and its table."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "results").mkdir()
    shutil.copy(ROOT / "results" / "twitter.json", tmp_path / "results")
    table = render(TABLES["table2"], tmp_path / "results")
    (tmp_path / "README.md").write_text(f"<!-- results: table2 -->\n{table}\n<!-- end of table2 -->\n")
    return tmp_path


def changed(path, **fields):
    """Change fields of a result."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_table_that_was_changed_by_hand_is_named_with_the_command_that_makes_it(copy):
    assert check(copy).problems == []
    readme = copy / "README.md"
    readme.write_text(readme.read_text().replace("93.21", "95.21"))
    (problem,) = check(copy).problems
    assert "the table table2 is not what the results give" in problem and "gatas reproduce table2 --render-only" in problem
    readme.write_text("<!-- results: table9 -->\n\n<!-- end of table9 -->\n")
    assert "there is no table 'table9'" in check(copy).problems[0]


def test_a_result_of_other_settings_than_its_recipe_has_now_is_refused_unless_a_page_says_so(copy):
    path = copy / "results" / "twitter.json"
    assert outdated(list(read_results(copy / "results").recipes.values()), []) == ([], [])
    settings = json.loads(path.read_text())["settings"]
    changed(path, settings={**settings, "training": {**settings["training"], "patience": 6}})
    found = list(read_results(copy / "results").recipes.values())
    (problem,), notes = outdated(found, ["Nothing of twitter.", "earlier settings of twitter-gcn"])
    assert "settings have changed since" in problem and json.loads(path.read_text())["sessions"][0]["commit"] in problem
    assert notes == [] and "say that it is of `earlier settings`" in problem
    wrong, (note,) = outdated(found, ["The result `twitter` is of earlier\nsettings."])
    assert wrong == [] and note.endswith("which a page says.")
    assert "not run yet" in render(TABLES["table2"], copy / "results")  # it is not shown as the recipe's


def test_a_result_without_a_commit_or_of_a_foreign_one_is_named(copy):
    path = copy / "results" / "twitter.json"
    sessions = json.loads(path.read_text())["sessions"]
    found = list(read_results(copy / "results").recipes.values())
    for words in (("init", "-q"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")):
        subprocess.run(["git", "-C", str(copy), *words], check=True)
    (problem,) = check_commits(found, copy)
    assert problem.endswith(f"commit {sessions[0]['commit']} is not in the history.")
    changed(path, sessions=[{**one, "commit": "unknown"} for one in sessions])
    (problem,) = check_commits(list(read_results(copy / "results").recipes.values()), copy)
    assert problem.endswith("a session names no commit.")


def test_every_session_without_a_commit_and_every_other_file_without_one_is_named(copy):
    folder = copy / "results" / "showcases"
    folder.mkdir()
    (folder / "packages.json").write_text('{"seconds": 3}')
    (folder / "genes.json").write_text('{"seconds": 3, "commit": "0123456"}')
    found = list(read_results(copy / "results").recipes.values())
    (problem,), notes = check_others(copy / "results", found, ["packages.json holds it."])
    assert problem.startswith(f"{folder / 'packages.json'} names no commit. Make it anew") and notes == []
    assert check_others(copy / "results", found, ["packages.json has no commit."])[0] == []


def test_a_report_of_a_benchmark_names_its_command(copy):
    (copy / "benchmarks").mkdir()
    (copy / "benchmarks" / "2026-01-01-run.md").write_text("It took 3 s.\n")
    assert check(copy).problems == [f"{copy / 'benchmarks' / '2026-01-01-run.md'} names no command that made it."]


def test_outside_of_a_checkout_it_says_where_to_be(tmp_path):
    with pytest.raises(ConfigError, match=r"README\.md is not there"):
        check(tmp_path)


def test_a_row_that_names_its_source_has_that_one_alone():
    table = "| data | seconds | file |\n|---|---|---|\n| one | 1.5 s | [a](a.json) |\n| two | 2.5 s | [b](b.json) |\n"
    first, second = passages("# Page\n\n" + table)
    assert (first.links, second.links) == (("a.json",), ("b.json",))
    assert [(one.value, one.line) for one in (*figures_in(first), *figures_in(second))] == [(1.5, 5), (2.5, 6)]
    (whole,) = passages(table.replace(" [b](b.json) ", " "))
    assert whole.links == ("a.json",)
