"""A server answers from a run's folder alone, whatever the run was trained on."""

import shutil
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

import gatas
from gatas.serving.loaded_model import LoadedModel, load_model
from gatas.transitions import Nearby, Transitions
from tests.serving.conftest import ready

SMALL: dict[str, Any] = {"num_steps": 2, "sample_size": 6, "num_heads": 2, "head_size": 4, "neighbour_size": 4}


def test_the_tables_of_a_run_may_be_deleted(shop_folder, tmp_path):
    before = gatas.load(shop_folder).embed(["c1", "t1"])
    shutil.copytree(shop_folder, tmp_path / "run")  # the tables stay behind, beside the first folder
    tables = {path: path.read_text() for path in shop_folder.parent.glob("*.csv")}
    assert len(tables) == 2
    for path in tables:
        path.unlink()
    try:
        with ready(load_model(tmp_path / "run", "cpu")) as client:
            found = client.post("/v1/embed", json={"ids": ["c1", "t1"]}).json()
            np.testing.assert_array_equal(np.array(found["embeddings"], np.float32), before)
            assert client.get("/v1/model").json()["columns"] == ["kind", "age", "town", "colour"]
    finally:
        for path, text in tables.items():
            path.write_text(text)


@pytest.fixture(scope="module")
def hetero_folder(tmp_path_factory):
    """A run trained on PyG's HeteroData, without any table."""
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    data["user"].x, data["item"].x = torch.rand(12, 3, generator=generator), torch.rand(6, 3, generator=generator)
    data["user"].y = torch.arange(12) % 2
    order = torch.randperm(12, generator=generator)
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        data["user"][name] = torch.zeros(12, dtype=torch.bool)
        data["user"][name][order[4 * number : 4 * number + 4]] = True
    buys = torch.stack([torch.arange(12).repeat_interleave(2), torch.randint(6, (24,), generator=generator)])
    data["user", "buys", "item"].edge_index = buys
    data["item", "bought_by", "user"].edge_index = buys.flip(0)
    dataset = gatas.Dataset.from_pyg(data)
    folder = tmp_path_factory.mktemp("hetero") / "run"
    gatas.fit(gatas.NodeClassifier(dataset, **SMALL), dataset, seed=0, device="cpu", epochs=1, folder=folder)
    return folder


def test_a_run_trained_on_heterodata_is_served(hetero_folder):
    own = gatas.load(hetero_folder)
    with ready(load_model(hetero_folder, "cpu")) as client:
        about = client.get("/v1/model").json()
        assert about["num_nodes"] == own.graph.num_nodes == 18 and about["task"] == "node classification"
        ids = about["first_ids"][:3]
        found = client.post("/v1/predict", json={"ids": ids}).json()
        assert [row["probabilities"] for row in found["predictions"]] == own.predict(ids).probabilities.tolist()
        assert client.post("/v1/explain", json={"id": ids[0]}).status_code == 200


@pytest.fixture
def computed(monkeypatch):
    """How many rows of transitions are computed at a time, over all nodes or for those asked for."""
    rows = list[int]()
    build, of = Transitions.build, Nearby.rows

    def counting_build(graph, *arguments, **settings):
        rows.append(graph.num_nodes)
        return build(graph, *arguments, **settings)

    def counting_rows(self, nodes, *arguments, **settings):
        rows.append(len(nodes))
        return of(self, nodes, *arguments, **settings)

    monkeypatch.setattr(Transitions, "build", counting_build)
    monkeypatch.setattr(Nearby, "rows", counting_rows)
    return rows


def test_a_response_about_one_node_computes_the_transitions_of_that_node_alone(shop_folder, computed):
    with ready(LoadedModel(gatas.load(shop_folder), "off")) as client:
        for path, body in (("embed", {"ids": ["c5"]}), ("predict", {"ids": ["c5"]}), ("explain", {"id": "c5"})):
            assert client.post(f"/v1/{path}", json=body).status_code == 200
    assert computed and max(computed) == 1


def test_a_prepared_model_has_the_transitions_of_all_nodes(shop_folder, computed):
    model = load_model(shop_folder, "cpu", "off")
    assert computed == [model.predictor.graph.num_nodes]
    with ready(model) as client:
        assert client.post("/v1/embed", json={"ids": ["c5"]}).status_code == 200
    assert len(computed) == 1
