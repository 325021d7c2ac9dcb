"""`report`: a page from what is there, and a line for what cannot be used."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from gatas.errors import ConfigError, GatasWarning
from gatas.experiments import comparison_data, recipes
from gatas.experiments.baselines import PEERS, PeerRecipe
from gatas.experiments.compare import compare
from gatas.experiments.compare_table import side_by_side
from gatas.experiments.paper import run_recipe
from gatas.experiments.report import report
from gatas.experiments.report_benchmarks import number, read_scaling
from gatas.experiments.report_results import measured_by, read_results
from tests.experiments.records import record
from tests.tasks.toys import camps

EMPTY = {"br", "hr", "img", "link", "meta"}
GROWTH = """# How it grows

| model | edges | 1,000 targets, s | peak memory |
|---|---|---|---|
| ours | 10,000 | 0.1 | 200 MiB |
| ours | 100,000 | 0.2 | 201 MiB |
| ours | 1,000,000 | 0.3 | 1.5 GiB |
| other | 10,000 | 0.05 | 10 MiB |
| other | 100,000 | 0.5 | 100 MiB |
| other | 1,000,000 | out of memory | – |

Measured on two cores.
"""


class Page(HTMLParser):
    """Reads a page, and fails where a tag is not closed by its own."""

    def __init__(self, text):
        super().__init__()
        self.open: list[str] = []
        self.ids, self.links, self.svgs, self.tags = [], [], [], set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given[name] for name in ("href", "src", "xlink:href") if name in given]
        self.svgs += [given] if tag == "svg" else []
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A tiny recipe and a comparison, as they are run; the recipe stands for two cells of a table too."""
    folder = tmp_path_factory.mktemp("all") / "results"
    ours = {"model": {"sample_size": 5, "num_heads": 1, "hidden_size": 8}, "training": {"epochs": 2}}
    model, training = PEERS["gcn"].recipes["cora"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(recipes.OWN, "digits", ours)
        patch.setitem(recipes.OWN, "camps", ours)
        patch.setattr(comparison_data, "load_dataset", lambda name, _: camps())
        patch.setattr(PEERS["gcn"], "recipes", {"cora": PeerRecipe(model, training.model_copy(update={"epochs": 3}))})
        run_recipe("digits", range(2), folder, device="cpu")
        compare(["camps"], ["gatas", "gcn"], folder, seeds=2, device="cpu")
    for name, size in (("cora-10", 10), ("cora-100", 100)):
        content = json.loads((folder / "digits.json").read_text())
        content |= {"model": name, "data": "cora"}
        content["settings"]["data"]["name"], content["settings"]["model"]["sample_size"] = "cora", size
        content["note"] = "Labels were rebuilt."
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def results(made, tmp_path):
    """A copy to spoil."""
    return Path(shutil.copytree(made, tmp_path / "results"))


@pytest.fixture(scope="module")
def benchmarks(made):
    folder = made.parent / "benchmarks"
    folder.mkdir()
    (folder / "2026-01-02-peers.md").write_text(GROWTH)
    (folder / "2026-01-02-peers.json").write_text("{}")
    (folder / "2026-01-01-peers.md").write_text(GROWTH.replace("How it grows", "How it grew"))
    return folder


@pytest.fixture(scope="module")
def done(made, benchmarks):
    """The report of all that."""
    return report(made, benchmarks, made.parent / "deep" / "report")


def parts(text, heading):
    """What stands under a heading of the Markdown."""
    return re.split(r"^## ", text, flags=re.MULTILINE)[1:][[part.strip() for part in headings(text)].index(heading)]


def headings(text):
    return re.findall(r"^## (.*)$", text, flags=re.MULTILINE)


def test_the_report_holds_every_section_with_our_numbers(done, made):
    text, page = done.markdown.read_text(), done.html.read_text()
    runs = json.loads((made / "cora-10.json").read_text())["runs"]
    mean = 100 * sum(run["test"]["accuracy"] for run in runs) / 2
    assert re.search(rf"\| GATAS, S = 10 \| Cora \| 80\.20 ± 1\.10 \| {mean:.2f} ± ", parts(text, "The paper's tables"))
    assert "| gcn | " in parts(text, "Beside other models") and "charts/seconds-camps.svg" in text
    assert "S = 10: " in parts(text, "Accuracy against S") and "S = 500: 82.1" in parts(text, "Accuracy against S")
    depth = sum(run["depth"][0] for run in runs) / 2
    assert f"| cora-10 | {depth:.3f} | " in parts(text, "Learned depth") and "| camps, gatas | " in text
    assert all("cora: Labels were rebuilt." in parts(text, heading) for heading in ("Learned depth", "Training curves"))
    assert "charts/curves-digits.svg" in parts(text, "Training curves")
    assert "How it grows" in parts(text, "As graphs grow") and "Measured on two cores." in text
    assert all(f"<h2>{heading.replace(chr(39), '&#39;')}</h2>" in page for heading in headings(text))
    assert "Left out" not in text and done.problems == ()


def test_the_page_needs_nothing_beside_it_and_every_chart_says_what_it_shows(done):
    page = Page(done.html.read_text())
    assert not page.tags & {"script", "img", "link", "iframe", "object"}
    assert not [link for link in page.links if ":" in link]
    assert len(page.svgs) == 8 and all(svg["role"] == "img" and len(svg["aria-label"]) > 30 for svg in page.svgs)
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.removeprefix("#") in page.ids for link in page.links if link.startswith("#"))


def test_every_file_that_is_named_is_there(done):
    page = Page(done.html.read_text())
    links = {unquote(link) for link in page.links if not link.startswith("#")}
    links |= {unquote(link) for link in re.findall(r"\]\(([^)]*)\)", done.markdown.read_text())}
    assert {"../../results/cora-10.json", "../../results/peers/camps-gcn.json", "charts/depth.svg"} <= links
    assert {"../../benchmarks/2026-01-02-peers.md", "../../benchmarks/2026-01-02-peers.json"} <= links
    assert all((done.html.parent / link).is_file() for link in links)


def test_charts_keep_text_as_text(done):
    for path in (done.html.parent / "charts").glob("*.svg"):
        words = " ".join(ElementTree.parse(path).getroot().itertext())
        assert re.search(r"epoch|steps? away|neighbours drawn|of the graph", words), path


def test_the_same_results_give_the_same_report(done, made, benchmarks):
    again = report(made, benchmarks, made.parent / "deep" / "again")
    assert again.html.read_bytes() == done.html.read_bytes() and again.markdown.read_bytes() == done.markdown.read_bytes()


def spoiled(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"runs": [', "could not be read as JSON"),
        ("\udcff", "could not be read as JSON"),
        ("[" * 100_000, "could not be read as JSON"),
        (
            '{"hello": "<script>alert(1)</script>"}',
            r"not what `gatas reproduce` and `gatas compare` write \(model: field required\)",
        ),
        ("[1, 2]", "not what `gatas reproduce` and `gatas compare` write"),
        ('{"config": {}, "runs": []}', r"a result of gatas 0\.1, which is no longer read\. Move it away"),
    ],
)
def test_what_cannot_be_used_gets_a_line(content, said, results):
    (results / "odd.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    found = read_results(results)
    assert len(found.problems) == 1 and re.search(rf"odd\.json is left out: .*{said}", found.problems[0])
    assert len(found.recipes) == 3 and len(found.peers) == 2


def test_the_rest_is_rendered(results, tmp_path):
    (results / "odd.json").write_text('{"runs": [')
    with pytest.warns(GatasWarning, match=r"odd\.json is left out") as warned:
        done = report(results, tmp_path / "none", tmp_path / "report")
    assert len(warned) == 1 and len(done.problems) == 1
    assert "odd.json" in parts(done.markdown.read_text(), "Left out") and "| gcn | " in done.markdown.read_text()
    assert "As graphs grow" not in done.markdown.read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runs": [{"seed": 0, "best_epoch": 0, "test": {"loss": 1.0}}]}, r"a run has no test\.accuracy"),
        ({"runs": [{"seed": 0, "best_epoch": 0}]}, r"a run has no valid\.accuracy"),
        ({"runs": [{"seed": 0, "best_epoch": 0, "test": {"accuracy": float("nan"), "micro_f1": 0}}]}, "no finite number"),
        ({"sessions": []}, "no session"),
        ({"curves": {"0": {"loss": [1.0], "valid_loss": [1.0, 2.0]}}}, "not all of as many epochs"),
        ({"curves": {"0": {"loss": ["much"]}}}, "not what `gatas reproduce` and `gatas compare` write"),
        ({"runs": [{"seed": "0", "best_epoch": 0}]}, r"runs\.0\.seed"),
    ],
)
def test_a_result_that_was_changed_by_hand_is_left_out(changes, said, results):
    spoiled(results / "cora-10.json", **changes)
    found = read_results(results)
    assert len(found.problems) == 1 and re.search(said, found.problems[0]) and "cora-10.json" in found.problems[0]
    assert "cora-10" not in found.recipes and "cora-100" in found.recipes


def test_a_foreign_file_among_comparisons_is_left_out(results):
    (results / "peers" / "odd.json").write_text("{}")
    (problem,) = read_results(results).problems
    assert "odd.json is left out: it is not what `gatas reproduce` and `gatas compare` write (model: field required)" in problem


def test_a_comparison_measured_otherwise_is_left_out(results):
    runs = json.loads((results / "peers" / "camps-gcn.json").read_text())["runs"]
    spoiled(results / "peers" / "camps-gcn.json", runs=[{**run, "test": {"roc_auc": 0.5}} for run in runs])
    found = read_results(results)
    assert [result.name for result in found.peers] == ["gatas"] and "camps-gcn.json is left out" in found.problems[0]


def test_a_copy_of_a_comparison_is_left_out(results):
    shutil.copy(results / "peers" / "camps-gatas.json", results / "peers" / "copy.json")
    found = read_results(results)
    assert [result.path.name for result in found.peers] == ["camps-gatas.json", "camps-gcn.json"]
    assert re.search(r"copy\.json is left out: .*camps-gatas\.json is of the same model", found.problems[0])


def test_comparisons_are_measured_by_micro_f1_where_one_is(results):
    runs = json.loads((results / "peers" / "camps-gcn.json").read_text())["runs"]
    spoiled(results / "peers" / "camps-gcn.json", runs=[{**run, "test": {"accuracy": 0.9, "micro_f1": 0.5}} for run in runs])
    assert {result.metric for result in read_results(results).peers} == {"test.micro_f1"}


def test_a_best_epoch_beyond_the_curve_is_none(results, tmp_path):
    runs = json.loads((results / "digits.json").read_text())["runs"]
    spoiled(results / "digits.json", runs=[{**run, "best_epoch": 7} for run in runs])
    text = report(results, tmp_path, tmp_path / "report").markdown.read_text()
    assert "digits: training curves of seed 0 over 2 epochs; no best epoch." in text


def test_depths_of_different_lengths_are_no_depth(results):
    content = json.loads((results / "cora-10.json").read_text())
    content["runs"][0]["depth"] = [0.5, 0.5]
    spoiled(results / "cora-10.json", runs=content["runs"])
    (problem,) = read_results(results).problems
    assert "depth" in problem


def test_a_model_that_failed_stands_last(results, tmp_path):
    content = json.loads((results / "peers" / "camps-gcn.json").read_text())
    failed = {**content, "model": "gat", "runs": [], "sessions": [], "error": "OutOfMemoryError: none left"}
    (results / "peers" / "camps-gat.json").write_text(json.dumps(failed))
    text = report(results, tmp_path, tmp_path / "report").markdown.read_text()
    rows = [line for line in parts(text, "Beside other models").splitlines() if line.startswith("| ")]
    assert rows[-1].startswith("| gat | OutOfMemoryError: none left | – |")
    assert "gat" not in re.findall(r"(\S+) [\d.]+ after", parts(text, "Accuracy against seconds"))


def test_variants_of_ours_are_further_rows_of_their_data(results, tmp_path):
    peer = json.loads((results / "peers" / "camps-gatas.json").read_text())
    for name in ("gatas", "gcn"):
        (results / "peers" / f"cora-{name}.json").write_text(json.dumps({**peer, "data": "cora", "model": name}))
    for name in ("cora-default", "cora-without_paths"):
        shutil.copy(results / "cora-10.json", results / f"{name}.json")
        spoiled(results / f"{name}.json", model=name)
    readme = tmp_path / "README.md"
    readme.write_text("<!-- results: peers -->\n<!-- end of peers -->\n")
    text = parts(report(results, tmp_path, tmp_path / "report", readme).markdown.read_text(), "Beside other models")
    table = text.split("### cora")[1]
    assert re.search(r"\| cora-without_paths \| \d+\.\d+ ± \S+ \| 2 \| [-+]\d\S+ \(.*\) \| – \| – \| – \| – \| – \|", table)
    assert "| cora-10 |" in table and "run by `gatas reproduce`" in table
    assert "| cora-100 |" not in table  # which is what `gatas` is on Cora
    assert "cora-10" not in text.split("### camps")[1].split("###")[0]
    assert "| gatas, default | " in readme.read_text() and "without_paths" not in readme.read_text()


def test_only_failures_make_a_table_and_no_chart(results, tmp_path):
    for path in (results / "peers").glob("*.json"):
        spoiled(path, runs=[], sessions=[], error="OutOfMemoryError: none left")
    text = report(results, tmp_path, tmp_path / "report").markdown.read_text()
    assert "| gcn | OutOfMemoryError: none left |" in text
    assert "Nothing here yet: `gatas compare" in parts(text, "Accuracy against seconds")


def test_names_are_shown_and_never_run(results, tmp_path):
    spoiled(results / "peers" / "camps-gcn.json", model="<script>alert(1)</script>", data="[camps](x)")
    done = report(results, tmp_path, tmp_path / "report")
    page = Page(done.html.read_text())
    assert "script" not in page.tags and "&lt;script&gt;" in done.html.read_text()


def test_an_empty_folder_says_what_to_run(tmp_path):
    (tmp_path / "results").mkdir()
    done = report(tmp_path / "results", tmp_path / "benchmarks", tmp_path / "report")
    text = done.markdown.read_text()
    assert headings(text) == ["The paper's tables", "Beside other models", "Accuracy against seconds", "Accuracy against S",
                              "Learned depth", "Training curves"]  # fmt: skip
    assert "| GATAS, S = 10 | Cora | 80.20 ± 1.10 | not run yet | 0 | – |" in text
    assert all(command in text for command in ("`gatas reproduce table2` runs", "`gatas compare --data cora"))
    assert all("Nothing here yet" in parts(text, heading) for heading in headings(text)[1:])
    Page(done.html.read_text())


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="nowhere is no folder"):
        report(tmp_path / "nowhere", tmp_path, tmp_path / "report")
    with pytest.raises(ConfigError, match="taken is a file; expected a folder"):
        report(tmp_path, tmp_path, tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == ""


def test_scaling_curves_are_read_from_the_latest_report(benchmarks):
    seconds, memory = read_scaling(benchmarks)
    assert seconds.table.heading == "How it grows" and (seconds.size, seconds.unit) == ("edges", "s")
    assert seconds.series["ours, 1,000 targets"] == [(10_000, 0.1), (100_000, 0.2), (1_000_000, 0.3)]
    assert seconds.series["other, 1,000 targets"] == [(10_000, 0.05), (100_000, 0.5)]
    assert memory.unit == "MiB" and memory.series["ours, peak memory"][-1] == (1_000_000, 1536.0)


def test_tables_without_growth_make_no_curve(tmp_path):
    few = "| edges | seconds |\n|---|---|\n| 10 | 1 |\n| 1000 | 2 |\n"
    other = "| method | seconds |\n|---|---|\n| 10 | 1 |\n| 100 | 2 |\n| 1000 | 3 |\n"
    rates = "| edges | entries/s |\n|---|---|\n| 10 | 1 |\n| 100 | 2 |\n| 1000 | 3 |\n"
    (tmp_path / "2026-01-01-x.md").write_text(f"# A\n\n{few}\n# B\n\n{other}\n# C\n\n{rates}")
    assert read_scaling(tmp_path) == []


@pytest.mark.parametrize(
    ("cell", "value"),
    [("1,234", 1234.0), (" 0.5 ", 0.5), ("1.09e+07", 1.09e7), ("2 GiB", 2048.0), ("512 KiB", 0.5), ("–", None), ("1.1×", None)],
)
def test_cells_are_numbers_or_words(cell, value):
    assert number(cell) == value


@pytest.mark.parametrize(
    ("metrics", "name"),
    [
        ({"accuracy": 0.5, "micro_f1": 0.5}, "test.accuracy"),
        ({"accuracy": 0.9, "micro_f1": 0.5}, "test.micro_f1"),
        ({"roc_auc": 0.9, "f1": 0.5}, "test.roc_auc"),
    ],
)
def test_results_are_measured_by_what_their_task_is_measured_by(metrics, name):
    assert measured_by(record(runs=[{"seed": 0, "test": metrics}]), set()) == name


def test_a_readme_gets_all_models_at_a_glance(made, benchmarks, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- results: peers -->\nold\n<!-- end of peers -->\nafter\n")
    report(made, benchmarks, tmp_path / "report", readme)
    text = readme.read_text()
    assert text.startswith("before\n<!-- results: peers -->\n| model | camps, accuracy |") and text.endswith(
        "peers -->\nafter\n"
    )
    assert "| gcn | " in text and "over 2 seeds" in text and "\nold\n" not in text


def test_models_side_by_side_leave_the_table_where_they_were_cut_and_are_bold_where_the_best_is_clear():
    def found(data, cut, *accuracies):
        more = {"cut": "3 epochs"} if cut else {}
        runs = [{"seed": seed, "test": {"accuracy": accuracy}, **more} for seed, accuracy in enumerate(accuracies)]
        return record(data=data, runs=runs)

    columns = {
        #   "s-default" is ahead by 0.40 and 0.00: no clear best; "gcn" by 0.40, 0.41, 0.42, but it was cut
        "small": {"gatas": found("s", False, 0.5, 0.7), "s-default": found("s", False, 0.9, 0.7), "none": found("s", False)},
        "large": {
            "gatas": found("l", False, 0.3),
            "l-default": found("l", False, 0.4, 0.4, 0.4),
            "gcn": found("l", True, 0.8, 0.81, 0.82),
        },
    }
    first_half = [{"seed": 0, "test": {"accuracy": 0.1}, "best_epoch": 4, "epochs": 9, "cut": "3 epochs"}]
    columns["large"]["mlp"] = record(data="l", runs=first_half)
    lines = side_by_side(columns, dict.fromkeys(columns, "test.accuracy")).splitlines()
    assert lines[2:5] == [
        "| gatas, default | 80.00 ± 14.14 | 40.00 ± 0.00 |",
        "| gatas | 60.00 ± 14.14 | 30.00 ± 0.00 |",
        "| mlp | – | 10.00 ± 0.00 |",
    ]
    assert lines[6] == "Mean ± standard deviation over 1 to 3 seeds, in percent."
    assert lines[7].startswith("Bold:") and lines[8].endswith("was in the first half): large: gcn 81.00 ± 1.00.")
    columns["large"]["gcn"] = found("l", False, 0.8, 0.81, 0.82)
    assert "| gcn | – | **81.00 ± 1.00** |" in side_by_side(columns, dict.fromkeys(columns, "test.accuracy"))
