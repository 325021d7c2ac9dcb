"""Models of toys, trained for an epoch or two, and their folders."""

from dataclasses import replace
from typing import Any

import numba
import pytest
import torch

import gatas
from gatas.graph import Graph
from gatas.tasks.settings import ModelSettings
from tests.tasks.toys import camps, classifier, labelled_graphs, likes, predictor


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Toy graphs gain nothing from threads, which wait for each other where cores are shared."""
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    yield
    torch.set_num_threads(before[0])
    numba.set_num_threads(before[1])


def trained(model, dataset, **settings):
    return gatas.fit(model, dataset, seed=3, device="cpu", epochs=2, batch_size=8, **settings)


def with_ids(dataset, prefix="a"):
    """Give the nodes of a data set the ids a0, a1 …, or with another prefix."""
    graph = dataset.graph
    named = Graph.from_edges(
        graph.source,
        graph.neighbour,
        graph.edge_type,
        num_nodes=graph.num_nodes,
        node_ids=[f"{prefix}{node}" for node in range(graph.num_nodes)],
        edge_type_names=graph.edge_type_names,
        inverse_of=graph.inverse_of,
    )
    return replace(dataset, graph=named)


@pytest.fixture(scope="package")
def camp_run():
    """One class a node, known by ids, with features and embeddings."""
    dataset = with_ids(camps())
    return trained(classifier(dataset, node_embedding_size=3), dataset)


@pytest.fixture(scope="package")
def ring_run():
    """Several classes a node, features only, several graphs."""
    dataset = labelled_graphs()
    return trained(classifier(dataset), dataset)


@pytest.fixture(scope="package")
def like_run():
    """Links, embeddings only, inverse types; every candidate is looked at."""
    dataset = likes()
    return trained(predictor(dataset), dataset, evaluation_mode="all")


@pytest.fixture(scope="session")
def digits_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    dataset = gatas.load_dataset("digits")
    model = gatas.NodeClassifier(dataset, num_steps=2, sample_size=10, num_heads=2, head_size=8, neighbour_size=8)
    gatas.fit(model, dataset, seed=0, device="cpu", epochs=1, folder=folder)
    return folder


@pytest.fixture(scope="session")
def kinship_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinship")
    dataset = gatas.load_dataset("kinship")
    sizes: ModelSettings = {
        "link_score": ("pair",),
        "num_steps": 2,
        "sample_size": 10,
        "num_heads": 2,
        "head_size": 8,
        "neighbour_size": 8,
        "pair_hidden_size": 16,
    }
    model = gatas.LinkPredictor(dataset, **sizes)
    gatas.fit(model, dataset, seed=0, device="cpu", epochs=1, batch_size=500, folder=folder)
    return folder


@pytest.fixture(scope="session")
def kinship_parts_folder(tmp_path_factory):
    """Links scored by vectors and typed paths."""
    folder = tmp_path_factory.mktemp("kinship_parts")
    dataset = gatas.load_dataset("kinship")
    model = gatas.LinkPredictor(dataset, link_score=("vectors", "paths"), vector_size=8, revisits=True)
    training: Any = {"loss": "list", "hidden_folds": 4, "n3": 0.01, "l2": 0, "epochs": 1, "batch_size": 500}
    gatas.fit(model, dataset, seed=0, device="cpu", folder=folder, **training)
    return folder


SHOP_EDGES = "from,to,relation,times\n" + "".join(f"c{k},t{(k * step) % 6},buys,{step}\n" for k in range(12) for step in (1, 5))
SHOP_NODES = "key,kind,age,town,colour,label\n" + "".join(
    [f"c{k},customer,{20 + k},{'rome' if k % 2 else 'oslo'},,{'xy'[k % 2]}\n" for k in range(12)]
    + [f"t{k},thing,,,{'red' if k % 3 else 'blue'},\n" for k in range(6)]
)
SHOP: dict[str, Any] = {
    "source": "from", "target": "to", "edge_type": "relation", "weight": "times", "id": "key", "node_type": "kind",
    "features": ["age", "town", "colour"], "ratios": {"train": 0.5, "valid": 0.25, "test": 0.25},
}  # fmt: skip


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory):
    """A run on tables of one's own: columns with other names, two types of nodes with features of their own."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "edges.csv").write_text(SHOP_EDGES)
    (folder / "nodes.csv").write_text(SHOP_NODES)
    dataset = gatas.read_dataset(folder / "edges.csv", folder / "nodes.csv", **SHOP)
    model = gatas.NodeClassifier(dataset, num_steps=2, sample_size=10, num_heads=2, head_size=4, neighbour_size=4)
    gatas.fit(model, dataset, seed=0, device="cpu", epochs=1, folder=folder / "run")
    return folder / "run"
