"""Small data sets that can be learned in a second."""

from typing import Any

import numpy as np

from gatas.datasets import Dataset, Pairs
from gatas.graph import Graph
from gatas.tasks import LinkPredictor, NodeClassifier, NodeRegressor

SMALL: dict[str, Any] = {
    "num_steps": 2, "sample_size": 6, "hidden_size": 8, "neighbour_size": 8, "head_size": 4, "num_heads": 2, "dropout": 0.1,
    "input_noise": 0.1, "relation_embedding_size": 4, "pair_hidden_size": 8,
    "link_score": ("pair",), "skip_connection": False, "output_norm": False, "path_mean_size": 0,
    "label_spreading": False,
}  # fmt: skip
"""A model as the paper has it; what would be chosen for the data beyond it is not."""


def camps(num_nodes=30, name="camps", seed=0):
    """Two classes: friends are of one camp, and features say which, with some noise."""
    generator = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % 2
    friends = [generator.choice(np.flatnonzero(labels == own), 3) for own in labels]
    graph = Graph.from_edges(np.repeat(np.arange(num_nodes), 3), np.concatenate(friends), num_nodes=num_nodes, undirected=True)
    features = generator.normal(size=(num_nodes, 5)).astype(np.float32)
    features[:, 0] += 3 * labels
    return Dataset.for_nodes(graph, labels, thirds(num_nodes), class_names=("even", "odd"), features=features, name=name)


def heights(num_nodes=60, name="heights", seed=0, targets=2):
    """Numbers that features say, in units far from 0 and 1: metres above the sea, and degrees below it; some are not known."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(num_nodes, 4)).astype(np.float32)
    friends = generator.integers(0, num_nodes, (num_nodes, 3))
    graph = Graph.from_edges(np.repeat(np.arange(num_nodes), 3), friends.ravel(), num_nodes=num_nodes, undirected=True)
    values = np.stack([1000 + 300 * features[:, 0], 0.02 * features[:, 1] - 5], axis=1)
    values[::7, 1] = np.nan
    names = ("metres", "degrees")[:targets]
    splits = thirds(num_nodes)
    return Dataset.for_numbers(graph, values[:, :targets], splits, target_names=names, features=features, name=name)


def thirds(num_nodes):
    names, third = ("train", "valid", "test"), num_nodes // 3
    return {name: np.arange(part * third, (part + 1) * third) for part, name in enumerate(names)}


def labelled_graphs(sizes=(5, 3, 8, 4), several=True):
    """Rings of different sizes, the last of them for validation; any number of three labels a node, or one of two classes."""
    generator = np.random.default_rng(1)
    graph_id = np.repeat(np.arange(len(sizes)), sizes)
    first = np.searchsorted(graph_id, graph_id)
    node = np.arange(len(graph_id))
    graph = Graph.from_edges(node, first + (node - first + 1) % np.array(sizes)[graph_id], undirected=True, num_nodes=len(node))
    features = generator.normal(size=(len(node), 4)).astype(np.float32)
    splits = {"train": np.flatnonzero(graph_id < len(sizes) - 1), "valid": np.flatnonzero(graph_id == len(sizes) - 1)}
    labels = features[:, :3] > 0 if several else (features[:, 0] > 0).astype(int)
    names = ("a", "b", "c") if several else ("low", "high")
    return Dataset.for_nodes(graph, labels, splits, class_names=names, features=features, graph_id=graph_id, name="rings")


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def likes(**direction):
    """Everybody likes the next two of twelve in a circle and knows the one opposite. Held out: some that are two on."""
    held = (0, 3, 6, 9)
    edges = [(n, 0, (n + 1) % 12) for n in range(12)] + [(n, 0, (n + 2) % 12) for n in range(12) if n not in held]
    edges += [(n, 1, (n + 6) % 12) for n in range(6)]
    source, kind, target = np.array(edges).T
    graph = Graph.from_edges(source, target, kind, edge_type_names=["likes", "knows"], **(direction or {"inverse": True}))
    splits = {
        "train": Pairs(source, kind, target, np.ones(len(source), np.int8)),
        "valid": pairs((0, 0, 2, 1), (3, 0, 5, 1), (0, 0, 7, 0), (3, 0, 10, 0), (6, 1, 1, 0)),
        "test": pairs((6, 0, 8, 1), (9, 0, 11, 1), (6, 0, 1, 0), (9, 0, 3, 0)),
    }
    return Dataset.for_links(graph, splits, ("likes", "knows"), name="likes")


def classifier(dataset, **settings):
    return NodeClassifier(dataset, **{**SMALL, **settings})


def predictor(dataset, **settings):
    return LinkPredictor(dataset, **{**SMALL, "node_embedding_size": 4, **settings})


def regressor(dataset, **settings):
    return NodeRegressor(dataset, **{**SMALL, **settings})
