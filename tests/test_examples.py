"""What lies in examples/ does what the README says."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import gatas
from gatas.cli import main
from gatas.datasets import TableData
from gatas.training import load_config
from gatas.training.evaluation import evaluate_run

BIBLIOGRAPHY = Path(__file__).parents[1] / "examples/bibliography"
pytestmark = pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["gatas", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A copy of the example, trained for a while from another folder by a path that is relative."""
    folder = tmp_path_factory.mktemp("bibliography")
    shutil.copytree(BIBLIOGRAPHY, folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(patch, "train", "data/topics.yaml", "--set", "training.epochs=15", "--out", "run", "--device", "cpu")
    return folder


def test_the_committed_tables_are_those_that_the_script_writes(tmp_path):
    spec = importlib.util.spec_from_file_location("make", BIBLIOGRAPHY / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make(tmp_path)
    for name in ("nodes.csv", "edges.csv"):
        assert (tmp_path / name).read_bytes() == (BIBLIOGRAPHY / name).read_bytes()


def test_topics_are_learned(trained):
    metrics = json.loads((trained / "run/metrics.json").read_text())
    assert metrics["valid"]["accuracy"] > 0.7  # of four topics, about as frequent


def test_a_run_of_own_data_is_loaded_from_anywhere(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = load_config(trained / "run/config.yaml").data
    assert isinstance(data, TableData) and data.edges == trained / "data/edges.csv"
    predictor = gatas.load(trained / "run")
    assert predictor.graph.id_of(0) == "costa-2000-000" and predictor.names == ("graphs", "language", "robotics", "vision")
    known = json.loads((trained / "run/metrics.json").read_text())
    assert evaluate_run(trained / "run", "valid", device="cpu")["loss"] == pytest.approx(known["valid"]["loss"], rel=1e-4)


def test_new_papers_are_asked_about_without_code(trained, tmp_path, monkeypatch, capsys):
    new = ("--new-nodes", BIBLIOGRAPHY / "new-papers.csv", "--new-edges", BIBLIOGRAPHY / "new-edges.csv")
    run(monkeypatch, "predict", trained / "run", *new, "--json")
    found = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in found] == ["diallo-2024-500", "mori-2024-501", "Zoe Okoye"]
    run(monkeypatch, "explain", trained / "run", "diallo-2024-500", *new, "--out", tmp_path, "--json")
    explained = json.loads(capsys.readouterr().out)
    assert explained["answer"]["name"] == found[0]["class"] and (tmp_path / "node-diallo-2024-500.png").exists()
    assert {"costa-2000-000", "mori-2024-501"} <= {row["neighbour"] for row in explained["rows"]}
    run(monkeypatch, "embed", trained / "run", *new, "--out", tmp_path / "new.parquet")
    assert pq.read_table(tmp_path / "new.parquet")["id"].to_pylist() == [row["id"] for row in found]


def test_a_run_answers_after_its_tables_moved_or_changed(trained, tmp_path):
    shutil.copytree(trained / "run", tmp_path / "run")
    config, before = tmp_path / "run/config.yaml", gatas.load(trained / "run")
    config.write_text(config.read_text().replace(str(trained / "data"), str(tmp_path / "gone")))
    assert gatas.load(tmp_path / "run").graph.num_nodes == 749
    shutil.copytree(trained / "data", tmp_path / "gone")
    (tmp_path / "gone/nodes.csv").write_text((trained / "data/nodes.csv").read_text().replace("robotics", "vision", 1))
    assert gatas.load(tmp_path / "run").fingerprint == before.fingerprint


def test_citations_are_learned(tmp_path, monkeypatch):
    settings = ["training.epochs=3", "model.sample_size=10", "model.num_heads=1"]
    changed = [part for setting in settings for part in ("--set", setting)]
    run(monkeypatch, "train", BIBLIOGRAPHY / "citations.yaml", *changed, "--out", tmp_path, "--device", "cpu")
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["valid"]["roc_auc"] > 0.6 and list(metrics["valid"]["by_type"]) == ["cites"]
    predictor = gatas.load(tmp_path)
    assert isinstance(predictor.model, gatas.LinkPredictor) and predictor.names == ("cites",)


def test_a_data_set_read_in_python_is_found_again(tmp_path, monkeypatch):
    monkeypatch.chdir(BIBLIOGRAPHY)
    columns: Any = {"source": "from", "target": "to", "edge_type": "relation", "weight": "times"}
    dataset = gatas.read_dataset("edges.csv", "nodes.csv", label="topic", **columns)
    model = gatas.NodeClassifier(dataset, sample_size=5, num_heads=1, num_steps=1)
    gatas.fit(model, dataset, epochs=1, folder=tmp_path, device="cpu")
    monkeypatch.chdir(tmp_path)
    assert gatas.load(tmp_path).graph.num_nodes == 749


def test_inspect_looks_at_own_data(monkeypatch, capsys):
    run(monkeypatch, "inspect", BIBLIOGRAPHY / "topics.yaml", "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary["num_nodes"] == 749 and summary["num_classes"] == 4 and summary["feature_size"] == 9
