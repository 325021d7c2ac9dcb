"""`reproduce check`: figures of pages against files, tables against results, results against recipes and commits."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gatas.errors import ConfigError
from gatas.experiments.check import Checked, check, check_figures
from gatas.experiments.check_results import check_commits, outdated
from gatas.experiments.figures import Passage, figures_in, passages
from gatas.experiments.paper import render
from gatas.experiments.report_results import read_results
from gatas.experiments.sources import factors, of_result, of_text, read_source
from gatas.experiments.tables import TABLES
from tests.experiments.records import record

ROOT = Path(__file__).parents[2]


def test_every_figure_of_readme_and_docs_is_in_the_file_it_names():
    checked = check(ROOT)
    assert checked.problems == []
    assert checked.num_figures > 200 and checked.num_tables >= 7 and checked.num_results >= 92


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


@pytest.mark.parametrize("figure", ["1.2 s", "1.23 s", "1,234 ms", "53 ms", "82.1 %", "0.82", "82.3 ± 0.9"])
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
    numbers = of_result(record(runs=runs))
    found = {round(value, 6) for value, unit in numbers.single if unit == "%"}
    assert found == {80.0, 90.0, 85.0} and (2.0, "s") in numbers.single
    assert [round(spread, 4) for mean, spread, unit in numbers.paired if round(mean, 6) == 85] == [7.0711]


def test_units_convert_within_what_they_measure():
    assert factors("ms", "s") == [pytest.approx(1e-3)] and factors("MiB", "s") == [] and factors("s", "seconds") == [1.0]
    assert factors("", "%") == [100.0, 1.0] and factors("GiB", "GiB") == [1.0] and factors("×", "%") == []


def test_logs_and_folders_are_sources_too(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"valid": 0.5}\n{"seconds": [3, 4.5]}\n')
    (tmp_path / "log.json").write_text('{"peak_bytes": 1048576, "name": "x", "done": true}')
    assert read_source(tmp_path / "log.jsonl").single == [(50.0, "%"), (3.0, "s"), (4.5, "s")]
    assert read_source(tmp_path).single == [(1048576.0, "bytes")]
    assert of_text("5 s").single == [(5.0, "s")]


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


def test_a_result_of_other_settings_than_its_recipe_has_now_is_told_with_its_commit(copy):
    path = copy / "results" / "twitter.json"
    assert outdated(list(read_results(copy / "results").recipes.values())) == []
    settings = json.loads(path.read_text())["settings"]
    changed(path, settings={**settings, "training": {**settings["training"], "patience": 6}})
    (note,) = outdated(list(read_results(copy / "results").recipes.values()))
    assert "settings have changed since" in note and json.loads(path.read_text())["sessions"][0]["commit"] in note
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


def test_a_report_of_a_benchmark_names_its_command(copy):
    (copy / "benchmarks").mkdir()
    (copy / "benchmarks" / "2026-01-01-run.md").write_text("It took 3 s.\n")
    assert check(copy).problems == [f"{copy / 'benchmarks' / '2026-01-01-run.md'} names no command that made it."]


def test_outside_of_a_checkout_it_says_where_to_be(tmp_path):
    with pytest.raises(ConfigError, match=r"README\.md is not there"):
        check(tmp_path)
