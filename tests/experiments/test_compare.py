"""`compare`: runs what is missing, goes on after a failure, and renders a table."""

import errno
import json
import os
import re
from pathlib import Path
from statistics import median

import pytest
import torch
from pytest import approx

from gatas.errors import ConfigError, TrainingError
from gatas.experiments import comparison_data, contenders, recipes
from gatas.experiments.baselines import PEERS, PeerRecipe
from gatas.experiments.compare import CutError, chosen, compare, render, trained
from gatas.experiments.compare_table import row
from gatas.experiments.contenders import Looped, check_models, contender
from gatas.experiments.measuring import PeakMemory
from gatas.experiments.paired import difference
from gatas.experiments.report import report
from gatas.experiments.results import file_name
from gatas.experiments.shared_results import claimed
from gatas.training.config import Config
from gatas.training.limit import Limit
from gatas.training.loop import fit_models
from gatas.training.run import TrainedRun
from tests.experiments.records import record
from tests.tasks.toys import camps, labelled_graphs, likes

OWN = "tests.experiments.test_compare:Constant"


class Constant(torch.nn.Module):
    """A user's model: the same for every node."""

    training_settings = {"epochs": 2, "learning_rate": 0.1}  # noqa: RUF012

    def __init__(self, dataset):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.randn(len(dataset.names)))

    def forward(self, target):
        return self.logits.expand(len(target), -1)


class Broken(Constant):
    def forward(self, target):
        raise torch.OutOfMemoryError("no | memory\nleft")


@pytest.fixture
def quick(monkeypatch):
    """Toys by name, and recipes of two epochs."""
    toys = {"camps": camps(), "rings": labelled_graphs(), "likes": likes()}
    monkeypatch.setattr(comparison_data, "load_dataset", lambda name, _: toys[name])
    monkeypatch.setattr(comparison_data, "open_dataset", lambda config, _: toys[config.name])
    ours = {"model": {"sample_size": 5, "num_heads": 1, "hidden_size": 8}, "training": {"epochs": 2}}
    monkeypatch.setitem(recipes.OWN, "camps", ours)
    model, training = PEERS["gcn"].recipes["cora"]
    monkeypatch.setattr(PEERS["gcn"], "recipes", {"cora": PeerRecipe(model, training.model_copy(update={"epochs": 3}))})


def read(folder, data, model):
    return json.loads((folder / "peers" / f"{file_name(data, model)}.json").read_text())


def test_models_are_run_once_and_go_on_where_they_stopped(quick, tmp_path):
    begun: list[str] = []
    table = compare(["camps"], ["gatas", "gcn", OWN], tmp_path, seeds=2, device="cpu", begin=begun.append)
    assert begun == ["gatas on camps", "gcn on camps", f"{OWN} on camps"]
    first = read(tmp_path, "camps", "gcn")
    assert [run["seed"] for run in first["runs"]] == [0, 1] and len(first["sessions"]) == 1
    session = first["sessions"][0]
    assert session["parameters"] == 5 * 16 + 16 + 16 * 2 + 2 and session["seconds_for_1000"] > 0
    assert session["versions"]["torch"] and session["hardware"] and session["date"]
    assert all(run["seconds_to_best"] > 0 and run["seconds_per_epoch"] > 0 for run in first["runs"])
    assert len(read(tmp_path, "camps", OWN)["sessions"]) == 2  # one by one: nobody knows whether it can be vmapped
    assert table.startswith("### camps\n") and "| gcn | " in table and f"| {OWN} | " in table
    compare(["camps"], ["gcn"], tmp_path, seeds=3, device="cpu")
    again = read(tmp_path, "camps", "gcn")
    assert again["runs"][:2] == first["runs"] and [one["seeds"] for one in again["sessions"]] == [[0, 1], [2]]


def test_seeds_are_trained_in_programs_of_as_many_as_asked(quick, tmp_path):
    compare(["camps"], ["gcn"], tmp_path, seeds=3, at_once=2, device="cpu")
    assert [one["seeds"] for one in read(tmp_path, "camps", "gcn")["sessions"]] == [[0, 1], [2]]


def test_processes_share_the_seeds_of_a_model_and_each_adds_its_own(quick, tmp_path, monkeypatch):
    path = tmp_path / "peers" / "camps-gcn.json"
    others: list[list[int]] = []
    with claimed(path, [0]) as own:  # as another process would
        assert own == [0]
        compare(["camps"], ["gcn"], tmp_path, seeds=3, at_once=1, device="cpu")
        assert [run["seed"] for run in read(tmp_path, "camps", "gcn")["runs"]] == [1, 2]

    def write_meanwhile(given, seeds, *rest):
        if not others:
            others.append(seeds)
            compare(["camps"], ["gcn"], tmp_path, seeds=4, at_once=1, device="cpu")
        return trained(given, seeds, *rest)

    monkeypatch.setattr("gatas.experiments.compare.trained", write_meanwhile)
    compare(["camps"], ["gcn"], tmp_path, seeds=4, at_once=1, device="cpu")
    found = read(tmp_path, "camps", "gcn")
    assert [run["seed"] for run in found["runs"]] == [0, 1, 2, 3] and others == [[0]]
    assert [one["seeds"] for one in found["sessions"]] == [[1], [2], [3], [0]]
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # and no locks


@pytest.mark.parametrize(("name", "data", "settings", "share"), [
    ("gcn", "camps", None, 1 / 2),  # two seeds in one program
    ("gatas", "likes", {"training.epochs": 1, "model.link_score": "vectors", "model.vector_size": 8}, 1),  # one after another
])  # fmt: skip
def test_seconds_are_shared_among_the_seeds_of_one_program_only(name, data, settings, share, quick, monkeypatch):
    dataset = camps() if data == "camps" else likes()
    config = (
        None if settings is None else Config(data={"edges": "likes.csv", "task": "link prediction"}).with_settings(settings)
    )
    given = contender(name, dataset, config)
    runs: list[TrainedRun] = []

    def fit(seeds, device, limit, fit=given.fit):
        runs[:] = fit(seeds, device, limit)
        return runs

    monkeypatch.setattr(given, "fit", fit)
    measured, _ = trained(given, [0, 1], torch.device("cpu"), Limit())
    for own, run in zip(measured, runs, strict=True):
        assert own.seconds_per_epoch == approx(share * median(entry["seconds"] for entry in run.history), rel=1e-3, abs=6e-6)


def test_a_model_that_raises_becomes_a_row_and_the_rest_goes_on(quick, tmp_path):
    broken = "tests.experiments.test_compare:Broken"
    table = compare(["camps", "rings"], [broken, "gcn"], tmp_path, seeds=1, device="cpu")
    assert f"| {broken} | OutOfMemoryError: no ¦ memory left | – |" in table
    assert "| gcn | ConfigError: gcn has no settings for multi-label data" in table
    assert len(read(tmp_path, "camps", "gcn")["runs"]) == 1
    lines = [line for line in table.partition("### All graphs")[0].splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize("trials", [1, 2])
def test_a_disk_that_cannot_be_written_to_is_no_fault_of_a_model(trials, quick, tmp_path, monkeypatch):
    def fail(file):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch, pytest.raises(TrainingError, match="cannot be written to"):
        patch.setattr(os, "fsync", fail)
        compare(["camps"], ["gcn"], tmp_path, seeds=1, trials=trials, limit=Limit(epochs=1), device="cpu")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_peer_that_diverges_becomes_a_row_and_the_rest_goes_on(quick, tmp_path, monkeypatch):
    model, training = PEERS["mlp"].recipes["cora"]
    wild = PeerRecipe(model, training.model_copy(update={"learning_rate": 1e38}))
    monkeypatch.setattr(PEERS["mlp"], "recipes", {"cora": wild})
    table = compare(["camps"], ["mlp", "gcn"], tmp_path, seeds=2, device="cpu")
    assert "| mlp | TrainingError: " in table and "seed 0" in table and "Try a smaller learning_rate. | – |" in table
    assert len(read(tmp_path, "camps", "gcn")["runs"]) == 2


def test_seeds_that_do_not_fit_into_memory_together_are_trained_in_smaller_parts(quick, tmp_path, monkeypatch):
    whole = fit_models

    def at_most_two(models, *given, **more):
        if len(models) > 2:
            raise torch.OutOfMemoryError("too many")
        return whole(models, *given, **more)

    monkeypatch.setattr(contenders, "fit_models", at_most_two)
    compare(["camps"], ["gcn"], tmp_path, seeds=5, device="cpu")
    found = read(tmp_path, "camps", "gcn")
    assert [one["seeds"] for one in found["sessions"]] == [[0, 1], [2, 3], [4]] and "error" not in found


def test_what_failed_is_tried_again(quick, tmp_path, monkeypatch):
    broken = "tests.experiments.test_compare:Broken"
    compare(["camps"], [broken], tmp_path, seeds=1, device="cpu")
    monkeypatch.setattr(Broken, "forward", Constant.forward)
    compare(["camps"], [broken], tmp_path, seeds=1, device="cpu")
    found = read(tmp_path, "camps", broken)
    assert len(found["runs"]) == 1 and "error" not in found


def test_results_of_other_settings_are_never_added_to(quick, tmp_path, monkeypatch):
    compare(["camps"], [OWN], tmp_path, seeds=1, device="cpu")
    before = read(tmp_path, "camps", OWN)
    monkeypatch.setattr(Constant, "training_settings", {"epochs": 3})
    for seeds in (1, 2):
        table = compare(["camps"], [OWN], tmp_path, seeds=seeds, device="cpu")
    assert read(tmp_path, "camps", OWN) == before and re.search(rf"\| {OWN} \| [^|]+ \| 2 \|", table)
    (other,) = {path.name for path in (tmp_path / "peers").iterdir()} - {f"{file_name('camps', OWN)}.json"}
    assert re.fullmatch(rf"{file_name('camps', OWN)}-[0-9a-f]{{8}}\.json", other)
    found = json.loads((tmp_path / "peers" / other).read_text())
    assert found["settings"]["training"]["epochs"] == 3 and [run["seed"] for run in found["runs"]] == [0, 1]


def test_trainings_that_a_limit_ends_are_cut_and_the_table_says_so(quick, tmp_path):
    table = compare(["camps"], ["gatas", "gcn"], tmp_path, seeds=2, limit=Limit(epochs=2), device="cpu")
    assert re.search(r"\| gatas \| [^|]+ \| 2 \| ", table)  # had two epochs anyway
    assert re.search(r"\| gcn \| [^|]+ \| 2, all cut at 2 epochs \| ", table) and "Cut: ended by a limit" in table
    found = read(tmp_path, "camps", "gcn")
    assert [run["epochs"] for run in found["runs"]] == [2, 2]
    assert found["sessions"][0]["limit"] == {"epochs": 2, "seconds": None}


def test_a_training_that_stops_by_itself_is_not_cut(quick, tmp_path):
    table = compare(["camps"], ["gcn"], tmp_path, seeds=1, limit=Limit(epochs=3, seconds=1e6), device="cpu")
    assert "cut" not in read(tmp_path, "camps", "gcn")["runs"][0] and "Cut:" not in table


def test_seconds_end_a_training_after_the_epoch_at_hand(quick, tmp_path):
    table = compare(["camps"], ["gcn"], tmp_path, seeds=2, limit=Limit(seconds=1e-9), device="cpu")
    assert [run["epochs"] for run in read(tmp_path, "camps", "gcn")["runs"]] == [1, 1]
    assert "| 2, all cut at 1e-09 s |" in table


def test_seeds_that_were_cut_get_none_beside_them_that_were_not(quick, tmp_path):
    compare(["camps"], ["gcn"], tmp_path, seeds=1, limit=Limit(epochs=1), device="cpu")
    table = compare(["camps"], ["gcn"], tmp_path, seeds=1, device="cpu")
    assert "| 1, all cut at 1 epoch |" in table
    with pytest.raises(CutError, match=r"camps-gcn\.json has seeds that were cut at 1 epoch\. Give the same limit"):
        compare(["camps"], ["gcn"], tmp_path, seeds=2, device="cpu")
    compare(["camps"], ["gcn"], tmp_path, seeds=2, limit=Limit(epochs=1), device="cpu")
    assert len(read(tmp_path, "camps", "gcn")["runs"]) == 2


@pytest.mark.parametrize("given", [{"epochs": 0}, {"seconds": -1.0}, {"seconds": float("nan")}])
def test_limits_that_leave_nothing_are_refused(given):
    with pytest.raises(ConfigError, match="expected more than 0"):
        Limit(**given)


def test_differences_are_paired_by_seed():
    #   1, 2, 3 more: mean 2, deviation 1, t(0.975, 2) = 4.3027, so 2 ± 4.3027 / √3
    ours, own = {0: 80.0, 1: 81.0, 2: 82.0, 7: 0.0}, {0: 81.0, 1: 83.0, 2: 85.0}
    assert difference(own, ours) == "+2.00 (-0.48 to +4.48)"
    assert difference({0: 1.0}, ours) == "–"


def test_a_row_says_what_a_model_reaches_and_takes():
    runs = [
        {"seed": seed, "test": {"f1": 0.8 + seed / 100}, "seconds_per_epoch": 0.5, "seconds_to_best": 20.0} for seed in (0, 1)
    ]
    sessions = [{"seeds": [0, 1], "parameters": 1234, "peak_bytes": 3 << 20, "seconds_for_1000": 0.25}]
    line = row("gat", record(runs=runs, sessions=sessions), ["test.f1"], {})
    assert line == "| gat | 80.50 ± 0.71 | 2 | – | 1,234 | 0.5 | 20 | 3 MiB (2) | 0.25 |"


def test_models_that_were_not_run_say_so():
    assert "| gcn | not run yet | – |" in render(camps(), {"gcn": record()})


def test_wrong_names_are_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"no model 'gcni'\. Did you mean gcnii or gcn"):
        check_models(["gcni"], [camps(name="cora")])
    with pytest.raises(ConfigError, match="cora-base is a recipe for cora, which is not among the data: pubmed"):
        check_models(["cora-base"], [camps(name="pubmed")])
    with pytest.raises(ConfigError, match="nowhere:Model could not be imported"):
        check_models(["nowhere:Model"], [camps()])
    with pytest.raises(ConfigError, match=r"no class of torch\.nn\.Module"):
        check_models(["pathlib:Path"], [camps()])


def test_a_recipe_is_for_its_own_data():
    assert chosen(["gatas", "gcn", "cora-base", "gcn"], camps(name="cora")) == ["gatas", "gcn", "cora-base"]
    assert chosen(["gatas", "gcn", "cora-base"], camps(name="pubmed")) == ["gatas", "gcn"]
    assert chosen(["gatas", "gcn", "mve", OWN], likes()) == ["gatas", "mve", OWN]


def test_gatas_is_the_papers_recipe(quick):
    given = contender("gatas", camps())
    assert isinstance(given, Looped) and given.config == recipes.recipe("camps")


def test_memory_is_what_was_taken_at_most():
    peak = PeakMemory(torch.device("cpu"))
    large = torch.ones(64 << 20, dtype=torch.uint8)
    del large
    assert peak.taken() == approx(64 << 20, rel=0.5)


def test_the_command_prints_the_table(quick, tmp_path, monkeypatch, capsys):
    from gatas.cli.compare import compare as command

    given = {"protocol": None, "epochs": None, "max_seconds": None, "out": tmp_path, "data_dir": Path(), "device": "cpu"}
    command(data="camps", models="gcn, gatas", seeds=1, trials=1, splits="", at_once=1, **given)
    out, err = capsys.readouterr()
    assert "### camps" in out and "| gatas | " in out and "gcn on camps" in err


def test_data_may_be_a_yaml_file_whose_settings_ours_then_has(tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("{data: {name: digits}, model: {sample_size: 5, num_heads: 1, hidden_size: 8}, training: {epochs: 1}}")
    table = compare([str(config)], ["gatas", OWN], tmp_path / "results", seeds=1, device="cpu")
    found = read(tmp_path / "results", "digits", "gatas")
    assert found["settings"]["model"]["sample_size"] == 5 and found["settings"]["training"]["epochs"] == 1
    assert [run["epochs"] for run in found["runs"]] == [1]
    assert table.startswith("### digits\n") and f"| {OWN} | " in table


def test_a_recipe_can_stand_beside_a_yaml_file_of_its_data(quick, tmp_path):
    config = tmp_path / "mine.yml"
    config.write_text("{data: {name: camps}, model: {sample_size: 3, num_heads: 1, hidden_size: 8}, training: {epochs: 1}}")
    compare([str(config)], ["gatas", "camps"], tmp_path, seeds=1, device="cpu")
    sizes = [read(tmp_path, "camps", name)["settings"]["model"]["sample_size"] for name in ("gatas", "camps")]
    assert sizes == [3, 5]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no file .*mine.yaml; expected a YAML file of settings"),
        ("data: {nam: digits}", "mine.yaml: .*nam"),
        ("7", "holds a int"),
    ],
)
def test_a_yaml_file_that_cannot_be_used_is_refused(content, said, tmp_path):
    if content is not None:
        (tmp_path / "mine.yaml").write_text(content)
    with pytest.raises(ConfigError, match=said):
        compare([str(tmp_path / "mine.yaml")], ["gatas"], tmp_path)


ASKED = """\
data: {edges: edges.csv, nodes: nodes.csv, label: LABEL}
model: {sample_size: 5, num_heads: 1}
training: {epochs: 1}
"""
UNUSED = pytest.mark.filterwarnings("ignore:.*not used")  # those that the other config asks for


@pytest.fixture
def library(tmp_path):
    """Two tables, and two configs that ask different things of them."""
    edges = [f"{one},{(one + step) % 30}" for one in range(30) for step in (1, 3)]
    nodes = [f"{one},{one / 30},{'ab'[one % 2]},{'xyz'[one % 3]}" for one in range(30)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]))
    (tmp_path / "nodes.csv").write_text("\n".join(["id,size,topic,venue", *nodes]))
    for name, label in (("topics", "topic"), ("venues", "venue")):
        (tmp_path / f"{name}.yaml").write_text(ASKED.replace("LABEL", label))
    return tmp_path


def files(folder):
    return sorted(path.name for path in (folder / "peers").iterdir())


@UNUSED
def test_two_configs_over_the_same_tables_are_called_by_their_files(library):
    out = library / "results"
    for name in ("topics", "venues"):
        table = compare([str(library / f"{name}.yaml")], ["gatas", "gcn"], out, seeds=1, limit=Limit(epochs=1), device="cpu")
        rows = re.findall(r"^\| (\w+) \| [\d.]+ \| 1", table, flags=re.MULTILINE)
        assert table.startswith(f"### {name}\n") and rows == ["gatas", "gcn"]  # one seed has no deviation
    assert files(out) == ["topics-gatas.json", "topics-gcn.json", "venues-gatas.json", "venues-gcn.json"]


@UNUSED
def test_configs_of_one_name_are_kept_apart_by_a_suffix(library):
    out = library / "results"
    for name in ("topics", "venues"):
        config = library / f"{name}.yaml"
        config.write_text(config.read_text().replace("{edges", "{name: mine, edges"))
        compare([str(config)], ["gatas", "gcn"], out, seeds=1, limit=Limit(epochs=1), device="cpu")
    assert [re.sub("-[0-9a-f]{8}", "-#", name) for name in files(out)] == [
        "mine-gatas-#.json", "mine-gatas.json", "mine-gcn-#.json", "mine-gcn.json",
    ]  # fmt: skip
    labels = {json.loads((out / "peers" / name).read_text())["settings"]["data"]["label"][0] for name in files(out)}
    assert labels == {"topic", "venue"}
    again = compare([str(library / "topics.yaml")], ["gcn"], out, seeds=2, limit=Limit(epochs=1), device="cpu")
    assert "| 2, all cut" in again and len(files(out)) == 4
    text = report(out, library, library / "report").markdown.read_text()
    assert re.search(r"^### mine$", text, re.MULTILINE) and re.search(r"^### mine \([0-9a-f]{8}\)$", text, re.MULTILINE)
    assert "Left out" not in text


def test_a_result_of_the_format_before_is_one_line(quick, tmp_path):
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "camps-gcn.json").write_text('{"model": "gcn", "data": "camps", "runs": [], "sessions": []}')
    with pytest.raises(ConfigError, match=r"camps-gcn\.json is a result of gatas 0\.1, which is no longer read\. Move it away"):
        compare(["camps"], ["gcn"], tmp_path, seeds=1, device="cpu")


@UNUSED
def test_results_do_not_say_where_tables_lie(library):
    out = library / "results"
    compare([str(library / "topics.yaml")], ["label-propagation"], out, seeds=1, device="cpu")
    (written,) = out.joinpath("peers").glob("*.json")
    assert str(library) not in written.read_text() and f"{library.name}/nodes.csv" in written.read_text()
