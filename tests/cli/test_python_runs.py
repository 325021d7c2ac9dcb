"""Models trained in Python, on data of PyG, NetworkX or arrays, are answered for from the command line."""

import json
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from gatas import Dataset, LinkPredictor, NodeClassifier, fit, load
from tests.tasks.toys import SMALL, camps, likes

pytestmark = pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")  # splits of toys lack a class now and then
NODES, LINKS = "node classification", "link prediction"


def ring(num_nodes, step=1):
    nodes = torch.arange(num_nodes)
    return torch.stack([nodes, (nodes + step) % num_nodes])


def pyg(task):
    data = Data(x=torch.randn(24, 5, generator=torch.Generator().manual_seed(0)), edge_index=ring(24), y=torch.arange(24) % 2)
    return Dataset.from_pyg(data, task=task, name="a ring")


def hetero(task):
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.eye(24), torch.ones(24, 3)
    data["paper"].y = torch.arange(24) % 2
    data["author", "writes", "paper"].edge_index = torch.cat([ring(24), ring(24, 5)], 1)
    return Dataset.from_pyg(data, task=task, name="papers")


def networkx(task):
    graph = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"member {node}")
    settings: Any = {"label": "club"} if task == NODES else {}
    return Dataset.from_networkx(graph, task=task, name="karate", **settings)


def arrays(task):
    return camps() if task == NODES else likes()


@pytest.fixture(scope="module", params=[(make, task) for make in (pyg, hetero, networkx, arrays) for task in (NODES, LINKS)],
                ids=lambda param: f"{param[0].__name__} {param[1]}")  # fmt: skip
def saved(request, tmp_path_factory):
    make, task = request.param
    dataset = make(task)
    kind = NodeClassifier if task == NODES else LinkPredictor
    run = fit(kind(dataset, **SMALL), dataset, device="cpu", epochs=1, batch_size=8)
    folder = tmp_path_factory.mktemp("saved") / "run"
    run.save(folder)
    return folder, run


def test_predict_says_what_the_run_says(gatas, saved):
    folder, run = saved
    ids = [str(run.dataset.graph.id_of(node)) for node in (0, 3)]
    if run.dataset.task == NODES:
        code, out, err = gatas("predict", folder, *ids, "--json")
        rows, expected = json.loads(out), run.predictor.predict(ids)
        assert code == 0 and [str(row["id"]) for row in rows] == ids and [row["class"] for row in rows] == expected.labels
        found = [[row[f"p({name})"] for name in run.dataset.names] for row in rows]
        np.testing.assert_array_equal(np.array(found, np.float32), expected.probabilities)
    else:
        name, train = run.dataset.names[0], run.dataset.splits["train"]
        source = str(run.dataset.graph.id_of(int(train.source[train.edge_type == 0][0])))  # a node that such links start from
        code, out, err = gatas("predict", folder, "--source", source, "--type", name, "--top", 3, "--json")
        assert code == 0 and json.loads(out) == run.predictor.rank_links(source, name, 3).table().to_pylist() != []
    assert not err


def test_explain_says_what_the_run_says(gatas, saved, tmp_path):
    folder, run = saved
    ids = [str(run.dataset.graph.id_of(node)) for node in (0, 3)]
    link = (ids[0], run.dataset.names[0], ids[1])
    question = [ids[0]] if run.dataset.task == NODES else ["--link", *link]
    code, out, _ = gatas("explain", folder, *question, "--json", "--out", tmp_path)
    expected = run.predictor.explain(ids[0] if run.dataset.task == NODES else link).to_dict(10)
    found = json.loads(out)
    assert code == 0 and len(found.pop("pictures")) == 2 and found == json.loads(json.dumps(expected))


def test_embed_writes_what_the_run_says(gatas, saved, tmp_path):
    folder, run = saved
    assert gatas("embed", folder, "--out", tmp_path / "all.parquet", "--device", "cpu")[0] == 0
    table = pq.read_table(tmp_path / "all.parquet")
    np.testing.assert_array_equal(np.stack(table["embedding"].to_numpy()), run.predictor.embed_all())
    assert table["id"].to_pylist() == [run.dataset.graph.id_of(node) for node in range(run.dataset.graph.num_nodes)]
    assert set(table["model"].to_pylist()) == {run.predictor.fingerprint}


def test_it_is_measured_as_it_was(gatas, saved):
    folder, run = saved
    code, out, _ = gatas("evaluate", folder, "--json", "--device", "cpu")
    assert code == 0 and json.loads(out)["test"]["loss"] == pytest.approx(run.metrics["test"]["loss"])


def test_a_run_and_its_folder_give_the_same_bytes_and_the_same_fingerprint(saved):
    folder, run = saved
    loaded = load(folder, device="cpu")
    assert loaded.fingerprint == run.predictor.fingerprint and loaded.names == run.predictor.names
    assert loaded.embed_all().tobytes() == run.predictor.embed_all().tobytes()


def test_nodes_of_hetero_data_are_known_by_type_and_number():
    graph = hetero(NODES).graph
    assert [graph.id_of(node) for node in (0, 23, 24)] == ["paper/0", "paper/23", "author/0"]
