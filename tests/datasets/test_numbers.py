"""Numbers to predict from tables, stores, PyG and NetworkX."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from gatas.datasets import Dataset, NumberTargets, read_dataset
from gatas.datasets.guessing import guess_settings
from gatas.datasets.ingest import ingest
from gatas.datasets.pyg import to_pyg
from gatas.errors import GraphError
from tests.tasks.toys import heights

NODES = "id,price,rooms,size,label\n" + "".join(f"{n},{100 + n},{n % 5 if n % 4 else ''},{n / 3},{n}\n" for n in range(20))
EDGES = "source,target\n" + "".join(f"{n},{(n + 3) % 20}\n" for n in range(20))


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path / "edges.csv", tmp_path / "nodes.csv"


@pytest.mark.filterwarnings("ignore:.*not used")
def test_columns_of_a_table_are_targets_and_no_features(tables):
    dataset = read_dataset(*tables, task="node regression", label=["price", "rooms"], features=["size"])
    targets = dataset.number_targets
    assert dataset.task == "node regression" and dataset.names == ("price", "rooms")
    assert targets.values[3].tolist() == [103, 3] and np.isnan(targets.values[4, 1])
    assert dataset.nodes.num_features == 1 and sum(map(len, dataset.splits.values())) == 20
    assert "node regression, 2 numbers" in dataset.summary()
    with pytest.raises(GraphError, match="names 'price', the labels: this gives the answer away"):
        read_dataset(*tables, task="node regression", label="price", features=["price"])


@pytest.mark.filterwarnings("ignore:.*not used")
def test_without_a_name_the_column_label_is_the_target(tables):
    dataset = read_dataset(*tables, task="node regression", features=[])
    assert dataset.names == ("label",) and dataset.number_targets.values[:, 0].tolist() == list(range(20))


@pytest.mark.filterwarnings("ignore:.*not used")
def test_a_single_column_of_a_text_file_is_numbers(tables):
    dataset = read_dataset(*tables, task="node regression", label="price", features=["size", "rooms"], missing="fill")
    assert dataset.names == ("price",) and dataset.number_targets.values[3, 0] == 103 and dataset.nodes.num_features == 2


def test_text_is_no_number(tables):
    tables[1].write_text(NODES.replace("103,", "many,"))
    with pytest.raises(GraphError, match="column 'price' holds string, such as '100'; expected numbers"):
        read_dataset(*tables, task="node regression", label="price", features=[])


def test_a_store_keeps_numbers(tmp_path):
    dataset = heights()
    dataset.save(tmp_path / "store")
    found = Dataset.open(tmp_path / "store").number_targets
    assert np.array_equal(found.values, dataset.number_targets.values, equal_nan=True)
    assert found.names == dataset.names and list(found.splits) == ["train", "valid", "test"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not used")
def test_an_ingested_store_is_that_of_a_data_set(tables, tmp_path):
    settings: dict[str, Any] = {"task": "node regression", "label": ["price", "rooms"], "features": ["size"]}
    ingest(*tables, out=tmp_path / "store", **settings)
    stored, read = Dataset.open(tmp_path / "store"), read_dataset(*tables, **settings)
    assert np.array_equal(stored.number_targets.values, read.number_targets.values, equal_nan=True)
    assert stored.names == read.names


def test_numbers_of_pyg_come_in_and_go_out():
    y = torch.tensor([1.5, 2.5, float("nan"), 4.0])
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=y)
    data.train_mask, data.test_mask = torch.tensor([1, 1, 0, 0]).bool(), torch.tensor([0, 0, 0, 1]).bool()
    dataset = Dataset.from_pyg(data, task="node regression", class_names=["height"])
    assert isinstance(dataset.targets, NumberTargets) and dataset.names == ("height",)
    assert torch.equal(to_pyg(dataset).y[:, 0].nan_to_num(), y.double().nan_to_num())


def test_numbers_of_one_node_type_are_those_of_its_nodes():
    data = HeteroData()
    data["house"].x, data["house"].y = torch.eye(3), torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    data["street"].x = torch.eye(2)
    data["house", "in", "street"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    dataset = Dataset.from_pyg(data, task="node regression", ratios={"train": 0.5, "valid": 0, "test": 0.5})
    values = dataset.number_targets.values
    assert values[:3].tolist() == [[1, 2], [3, 4], [5, 6]] and np.isnan(values[3:]).all()
    assert np.concatenate(list(dataset.splits.values())).max() < 3


def test_an_attribute_of_networkx_is_a_target():
    graph = nx.path_graph(10)
    nx.set_node_attributes(graph, {node: node * 1.5 for node in graph}, "height")
    dataset = Dataset.from_networkx(graph, task="node regression", label="height")
    assert dataset.names == ("height",) and dataset.number_targets.values[4, 0] == 6
    with pytest.raises(GraphError, match="node regression needs numbers"):
        Dataset.from_networkx(nx.path_graph(10), task="node regression")


def test_init_takes_a_column_of_numbers_for_the_target(tables):
    tables[1].write_text(NODES.replace("price", "y", 1).replace("label", "other", 1))
    assert guess_settings(tables[0], tables[1], {"task": "node regression"}).settings["label"] == "y"
