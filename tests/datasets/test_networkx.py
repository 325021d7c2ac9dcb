"""Data sets of NetworkX: node attributes as features, labels and splits; edges held out as links."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from gatas.datasets import Dataset
from gatas.errors import GatasWarning, GraphError

ALL = {"train": 1.0, "valid": 0.0, "test": 0.0}
SOME = {"train": 0.6, "valid": 0.2, "test": 0.2}


def people(**changed):
    graph = nx.Graph([("ann", "bob"), ("bob", "cid")])
    columns: dict[str, Any] = {
        "age": [30, 40, 50],
        "where": [[0.5, 1.0], [0.0, 2.0], [1.0, 1.0]],
        "club": ["x", None, "y"],
    } | changed
    for name, values in columns.items():
        for node, value in zip(graph, values, strict=True):
            if value is not None:
                graph.nodes[node][name] = value
    return graph


def test_node_attributes_become_features_labels_and_splits():
    graph = people(split=["train", None, "train"])
    with pytest.warns(GatasWarning, match="1 attribute of nodes was not used: 'age'") as warnings:
        found = Dataset.from_networkx(graph, features="where", label="club", split="split", name="clubs")
    assert len(warnings) == 1 and warnings[0].filename == __file__
    assert np.asarray(found.features).tolist() == [[0.5, 1.0], [0.0, 2.0], [1.0, 1.0]]
    assert (found.node_targets.labels.tolist(), found.names) == ([0, -1, 1], ("x", "y"))
    assert {name: nodes.tolist() for name, nodes in found.splits.items()} == {"train": [0, 2]}
    assert (found.name, found.task, found.graph.id_of(2)) == ("clubs", "node classification", "cid")
    with pytest.warns(GatasWarning, match="3 attributes of nodes were not used"):
        found = Dataset.from_networkx(people(size=[1, 2, 3]), features=["size"], task="link prediction", ratios=ALL)
    assert found.task == "link prediction" and np.asarray(found.features).tolist() == [[1], [2], [3]]


def test_classes_are_needed_and_named_by_an_attribute():
    with pytest.raises(GraphError, match="Give the node attribute that holds them as label"):
        Dataset.from_networkx(nx.path_graph(3))


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({}, {"features": "height"}, "no node has the attribute 'height'; nodes have 'age', 'club', 'where'"),
        ({}, {"label": "height"}, "no node has the attribute 'height'"),
        ({}, {"features": ["age", "club"]}, "the attribute 'club' holds string; features are numbers"),
        ({"age": [1, None, 3]}, {"features": "age"}, "row 2, column 'age': the value is missing"),
        ({"age": [1, "old", 3]}, {"features": "age"}, "the attribute 'age' of nodes is not of one kind"),
        ({"where": [[1.0], [1.0, 2.0], [1.0]]}, {"features": "where"}, "row 2, column 'where': the list has 2 numbers"),
        ({"split": ["train", "trian", "test"]}, {"split": "split"}, "'trian' is not a split"),
        ({"split": ["train", "train", "test"]}, {"split": "split"}, "split 'train': node 'bob' has no label"),
    ],
)
def test_node_attributes_that_cannot_be_used_are_refused(columns, settings, message):
    with pytest.raises(GraphError, match=message):
        Dataset.from_networkx(people(**columns), **{"label": "club", "features": "where", **settings})


def ring(make: Any = nx.Graph, *, size=20, **attributes: Any) -> Any:
    graph = make([(f"n{k}", f"n{(k + 1) % size}") for k in range(size)], **attributes)
    for k, node in enumerate(graph):
        graph.nodes[node].update(club="even" if k % 2 == 0 else "odd", age=float(k))
    return graph


def test_splits_are_drawn_by_ratios_where_no_attribute_says():
    ratios = {"train": 0.5, "valid": 0.2, "test": 0.3}
    first, again = (Dataset.from_networkx(ring(), features=["age"], label="club", ratios=ratios) for _ in range(2))
    assert {name: len(nodes) for name, nodes in first.splits.items()} == {"train": 10, "valid": 4, "test": 6}
    assert all(first.splits[name].tolist() == again.splits[name].tolist() for name in first.splits)
    other = Dataset.from_networkx(ring(), features=["age"], label="club", ratios=ratios, seed=1)
    assert any(first.splits[name].tolist() != other.splits[name].tolist() for name in first.splits)


@pytest.mark.parametrize(
    ("make", "direction", "inverse_of", "num_edges"),
    [
        (nx.Graph, "auto", (0,), 40),
        (nx.DiGraph, "auto", (1, 0), 40),
        (nx.DiGraph, "inverse", (1, 0), 40),
        (nx.DiGraph, "undirected", (0,), 40),
        (nx.DiGraph, "as given", (-1,), 20),
    ],
)
def test_edges_lead_back_as_is_asked_for(make, direction, inverse_of, num_edges):
    graph = Dataset.from_networkx(ring(make), features=["age"], label="club", direction=direction).graph
    assert (graph.inverse_of, graph.num_edges) == (inverse_of, num_edges)


def links_of(dataset, split):
    pairs, ids = dataset.splits[split], dataset.graph.id_of
    rows = zip(pairs.source.tolist(), pairs.edge_type.tolist(), pairs.target.tolist(), pairs.label.tolist(), strict=True)
    return [(ids(one), dataset.names[kind], ids(other)) for one, kind, other, label in rows if label == 1]


@pytest.mark.filterwarnings("ignore:2 attributes of nodes were not used")
@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph])
def test_links_of_all_types_are_held_out_of_the_graph(make):
    dataset = Dataset.from_networkx(ring(make), task="link prediction", ratios=SOME, name="ring")
    assert (dataset.task, dataset.name, dataset.names) == ("link prediction", "ring", ("0",))
    found = {name: links_of(dataset, name) for name in ("train", "valid", "test")}
    assert {name: len(rows) for name, rows in found.items()} == {"train": 12, "valid": 4, "test": 4}
    assert {frozenset((one, other)) for rows in found.values() for one, _, other in rows} == {
        frozenset((f"n{k}", f"n{(k + 1) % 20}")) for k in range(20)
    }
    assert dataset.graph.num_edges == 24 and dataset.graph.inverse_of == ((0,) if make is nx.Graph else (1, 0))
    assert [(dataset.splits[name].label == 0).sum() for name in ("train", "valid", "test")] == [0, 4, 4]
    dataset.check_leaks(strict=True)


def typed() -> Any:
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for k in range(20):
        graph.add_edge(f"p{k}", f"p{(k + 1) % 20}", type="knows", weight=2.0)
        graph.add_edge(f"p{k}", f"p{(k + 5) % 20}", type="likes", weight=1.0)
    return graph


def test_only_links_of_the_types_asked_for_are_held_out():
    dataset = Dataset.from_networkx(typed(), task="link prediction", link_types=["likes"], ratios=SOME)
    assert dataset.names == ("likes",) and dataset.graph.edge_type_names == ("knows", "likes", "knows⁻¹", "likes⁻¹")
    assert np.bincount(dataset.graph.edge_type).tolist() == [20, 12, 20, 12]
    assert dataset.graph.weight is not None and set(dataset.graph.weight.tolist()) == {1.0, 2.0}
    assert len(links_of(dataset, "test")) == 4
    dataset.check_leaks(strict=True)


def test_a_type_that_the_graph_does_not_have_is_refused():
    with pytest.raises(GraphError, match=r"'hates' is not an edge type of the graph; it has 'knows', 'likes'"):
        Dataset.from_networkx(typed(), task="link prediction", link_types=["hates"])


def test_classes_absent_from_training_are_told_once_and_by_name():
    graph = people(split=["train", None, "test"], age=[None] * 3)
    with pytest.warns(GatasWarning) as warnings:
        Dataset.from_networkx(graph, features="where", label="club", split="split")
    assert [str(one.message) for one in warnings] == ["1 class has no training node (the first is 'y'); none can be predicted."]
