"""Training from a store: the same run as from tables in memory, with less of it in memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gatas.datasets import StoreData, open_dataset
from gatas.datasets.generating import GraphRecipe, generate_graph
from gatas.datasets.ingest import ingest
from gatas.datasets.own import read_dataset
from gatas.errors import ConfigError, GraphError, TransitionError
from gatas.graph import Graph
from gatas.inference import Predictor, fit_many, load
from gatas.sampling import on_demand
from gatas.tasks.learnable import Learnable
from gatas.tasks.nodes import NodeTask
from gatas.training import Config, load_config
from gatas.transitions import OnDemand, Transitions
from gatas.transitions.ahead import ReadAhead

MODEL = {"num_steps": 2, "sample_size": 8, "num_heads": 2, "max_candidates": 16, "input_noise": 0.2, "dropout": 0.1}
TRAINING = {"epochs": 2, "batch_size": 32}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    generate_graph(folder / "data", GraphRecipe(nodes=600, edges=3000, features=16, train=0.2, valid=0.1, test=0.1))
    ingest(folder / "data" / "edges", folder / "data" / "nodes", out=folder / "store", memory=400 << 20)
    return folder


def trained(data, **more):
    config = Config(data={"store": data / "store", **more}, model=MODEL, training=TRAINING)
    return fit_many(config, [0, 1], device="cpu")


def weights(runs):
    return [{name: tensor.clone() for name, tensor in run.model.state_dict().items()} for run in runs]


def same(one, other):
    return all(torch.equal(own[name], theirs[name]) for own, theirs in zip(one, other, strict=True) for name in own)


def test_a_store_is_learned_from_as_its_tables_are(data):
    part = "part-00000.parquet"
    dataset = read_dataset(data / "data" / "edges" / part, data / "data" / "nodes" / part)
    in_memory = fit_many(Config(model=MODEL, training=TRAINING).complete(), [0, 1], dataset=dataset, device="cpu")
    stored = trained(data)
    assert isinstance(stored[0].model.transitions, ReadAhead)
    assert same(weights(in_memory), weights(stored))
    assert in_memory[0].metrics == stored[0].metrics


def test_reading_ahead_changes_nothing(data, monkeypatch):
    made, asked = ReadAhead._made, []

    def counted(self, wanted):
        asked.append(wanted)
        return made(self, wanted)

    monkeypatch.setattr(ReadAhead, "_made", counted)
    ahead = weights(trained(data))
    assert asked
    monkeypatch.setattr("gatas.tasks.model.Model.look_ahead", Learnable.look_ahead)
    assert same(ahead, weights(trained(data)))


def test_embeddings_read_ahead_are_the_same_and_rows_made_once(data, monkeypatch):
    run = trained(data)[0]
    model, made, asked = run.model, ReadAhead._made, []

    def counted(self, wanted):
        asked.append(wanted)
        return made(self, wanted)

    monkeypatch.setattr(ReadAhead, "_made", counted)
    predictor = Predictor(model, run.dataset, draws=3)
    ahead = predictor.embed(range(600), batch_size=64)
    assert [len(wanted) for wanted in asked] == [64] * 9 + [24]  # once for three draws, and by nobody else
    model.sampler.transitions = model.transitions.source
    assert predictor.embed(range(600), batch_size=64).tobytes() == ahead.tobytes()


def test_a_device_that_makes_rows_waits_for_none_of_the_hosts(data, monkeypatch):
    host = trained(data)
    expected = Predictor(host[0].model, host[0].dataset, draws=2).embed(range(600), batch_size=64)

    def refuse(*_):
        raise AssertionError("rows of the host")

    monkeypatch.setattr(on_demand, "MAKES_ROWS", {"cpu"})
    monkeypatch.setattr(OnDemand, "rows", refuse)
    monkeypatch.setattr(ReadAhead, "ahead", refuse)
    device = trained(data)
    assert isinstance(device[0].model.transitions, ReadAhead)
    assert [run.history[-1]["loss"] for run in device] == pytest.approx([run.history[-1]["loss"] for run in host], rel=1e-4)
    found = Predictor(host[0].model, host[0].dataset, draws=2).embed(range(600), batch_size=64)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_rows_that_could_not_be_made_ahead_are_tried_again(data, monkeypatch):
    source = ReadAhead(OnDemand(Graph.open(data / "store"), 2))
    with monkeypatch.context() as patch:
        patch.setattr(OnDemand, "rows", lambda self, targets: (_ for _ in ()).throw(MemoryError))
        source.ahead([3, 4])
        with pytest.raises(MemoryError):
            source.rows([3, 4])
    source.ahead([3, 4])
    assert source.rows([3, 4]).num_rows == 2


def test_stored_transitions_serve_as_well(data, tmp_path):
    Transitions.build(Graph.open(data / "store"), 2, max_candidates=16).save(tmp_path / "table")
    stored = trained(data, transitions=tmp_path / "table")
    assert isinstance(stored[0].model.transitions, Transitions)
    assert same(weights(trained(data)), weights(stored))


def test_transitions_of_other_settings_are_refused(data, tmp_path):
    Transitions.build(Graph.open(data / "store"), 2, max_candidates=15).save(tmp_path / "table")
    with pytest.raises(TransitionError, match="has max_candidates 15, but 16 is asked for"):
        trained(data, transitions=tmp_path / "table")


def test_features_and_labels_are_not_copied(data):
    from gatas.training.loop import make_model
    from gatas.training.task_making import make_task

    config = Config(data={"store": data / "store"}, model=MODEL, training=TRAINING)
    dataset = open_dataset(config.data)
    model, task = make_model(dataset, config, 0), make_task(dataset, config.training)
    assert isinstance(task, NodeTask) and model.features is not None
    assert model.features.data_ptr() == np.asarray(dataset.features).ctypes.data
    assert task.labels.data_ptr() == np.asarray(dataset.node_targets.labels).ctypes.data


def test_a_run_on_a_store_is_loaded_and_resumed(data, tmp_path):
    text = "data: {store: store}\nmodel: {num_steps: 1, sample_size: 4, num_heads: 1}\ntraining: {epochs: 1}\n"
    (data / "config.yaml").write_text(text)
    config = load_config(data / "config.yaml")
    assert isinstance(config.data, StoreData) and config.data.store == data / "store" and config.data.name == "store"
    (run,) = fit_many(config, [0], folder=tmp_path / "run", device="cpu")
    predictor = load(tmp_path / "run")
    assert np.array_equal(predictor.predict([3, 4]).probabilities, run.predictor.predict([3, 4]).probabilities)
    (again,) = fit_many(config, [0], folder=tmp_path / "run", device="cpu")
    assert same(weights([run]), weights([again]))


def test_rows_from_scratch_files_are_those_from_memory(data, tmp_path):
    graph = Graph.open(data / "store")
    one, other = OnDemand(graph, 2), OnDemand(graph, 2, scratch=tmp_path)
    rows, same_rows = one.rows([5, 3, 5]), other.rows([5, 3, 5])
    assert all(
        np.array_equal(getattr(rows, name), getattr(same_rows, name)) for name in ("indptr", "node", "path", "probability")
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"store": "s", "edges": "e.csv"}, "edges was given, but a store is taken as it is"),
        ({"store": "s", "direction": "undirected"}, "direction was given"),
        ({"transitions": "t"}, "transitions belong to a store"),
    ],
)
def test_settings_that_do_not_go_with_a_store_are_refused(settings, said):
    from gatas.datasets.config import data_config

    with pytest.raises(ConfigError, match=said):
        data_config(settings)


def test_a_store_without_labels_is_refused(tmp_path):
    Graph.from_edges([0, 1], [1, 2]).save(tmp_path / "store")
    with pytest.raises(GraphError, match="holds a graph without labels or links, so nothing can be learned"):
        open_dataset(StoreData(store=tmp_path / "store"))


@pytest.mark.long
def test_the_memory_of_training_does_not_depend_on_the_size_of_the_graph(tmp_path):
    asked = ["--nodes", "20000,1000000", "--max-degree", "1000", "--work", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.store_training", *asked]
    table = subprocess.run(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, check=True, text=True).stdout
    small, large = (int(line.split("|")[-2]) for line in table.splitlines()[2:])
    assert large < small + 60  # MB, where the features, labels and edges of the large one are 400
