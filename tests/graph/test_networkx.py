"""Graphs of NetworkX, in and out."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph
from gatas.graph.networkx import from_networkx, to_networkx


def listed(graph):
    kinds = graph.edge_type_names
    ends = zip(graph.source, graph.edge_type, graph.neighbour, strict=True)
    return [(graph.name(i), kinds[r], graph.name(j)) for i, r, j in ends]


def test_an_undirected_graph_gets_both_directions():
    assert listed(from_networkx(nx.Graph([("a", "b"), ("b", "b")]))) == [("a", "0", "b"), ("b", "0", "a"), ("b", "0", "b")]


def test_types_and_weights_are_read_from_attributes():
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.add_edge("a", "b", kind="likes", w=2.0)
    graph.add_edge("a", "b", kind="knows", w=3.0)
    found = from_networkx(graph, edge_type="kind", weight="w")
    assert listed(found) == [("a", "knows", "b"), ("a", "likes", "b")]
    assert found.weight is not None and found.weight.tolist() == [3, 2]


def test_numbered_types_are_ordered_as_numbers():
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edge(0, 1, type=10)
    graph.add_edge(1, 2, type=9)
    assert from_networkx(graph).edge_type_names == ("9", "10")


def test_nodes_numbered_in_order_need_no_names():
    assert from_networkx(nx.path_graph(3)).node_names is None


@pytest.mark.parametrize("names", [[5, 3, 4], ["x", "y", "z"]])
def test_other_ids_come_back_out(names):
    graph = from_networkx(nx.DiGraph([(names[0], names[1]), (names[1], names[2])]))
    assert [graph.name(node) for node in range(3)] == names


@pytest.mark.parametrize("directed", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_a_round_trip_changes_nothing(directed):
    first = from_networkx(directed([("a", "b"), ("b", "c"), ("c", "c")]))
    second = from_networkx(to_networkx(first))
    assert listed(first) == listed(second)


def test_weights_survive_a_round_trip():
    first = Graph.from_edges([0, 1], [1, 0], [0, 1], weight=[0.5, 2.0], edge_type_names=["a", "b"])
    second = from_networkx(to_networkx(first))
    assert second.weight is not None and second.weight.tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b", {"type": "x"}), ("b", "c", {})], "the edge from 'b' to 'c' lacks the attribute 'type'"),
        ([("a", "b", {}), ("b", "c", {"weight": 1})], "the edge from 'a' to 'b' lacks the attribute 'weight'"),
        ([("a", "b", {"weight": -1}), ("b", "c", {"weight": 1})], "the edge from 'a' to 'b': weight is -1"),
        ([("a", "b", {"type": 1}), ("b", "c", {"type": "1"})], "edge types must be of one kind"),
        ([("a", "b", {"type": (1,)}), ("b", "c", {"type": 1})], "edge types cannot be put in order"),
        ([("a", 1, {})], "ids must all be integers below 2^63 or all be text"),
        ([(0.0, 1.0, {})], "ids are of type double"),
        ([((0, 1), (1, 1), {})], "ids are of type list"),
        ([(False, True, {})], "ids are of type bool"),
    ],
)
def test_graphs_that_would_lose_information_are_refused(edges, message):
    with pytest.raises(GraphError) as error:
        from_networkx(nx.DiGraph(edges))
    assert message in str(error.value)


def test_an_empty_graph_is_refused_and_inverse_types_need_directions():
    with pytest.raises(GraphError, match="the graph has no nodes"):
        from_networkx(nx.Graph())
    with pytest.raises(GraphError, match="its own inverse"):
        from_networkx(nx.path_graph(3), inverse=True)


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
    with pytest.warns(GatasWarning, match="1 attributes of nodes were not used: 'age'"):
        found = from_networkx(graph, features="where", label="club", split="split").nodes
    assert np.asarray(found.features).tolist() == [[0.5, 1.0], [0.0, 2.0], [1.0, 1.0]]
    assert (np.asarray(found.labels).tolist(), found.class_names) == ([0, -1, 1], ("x", "y"))
    assert {name: nodes.tolist() for name, nodes in found.splits.items()} == {"train": [0, 2]}
    with pytest.warns(GatasWarning, match="3 attributes of nodes were not used"):
        assert from_networkx(people(size=[1, 2, 3]), features=["size"]).nodes.labels is None


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({}, {"features": "height"}, "no node has the attribute 'height'; nodes have 'age', 'club', 'where'"),
        ({}, {"features": ["age", "club"]}, "the attribute 'club' holds string; features are numbers"),
        ({"age": [1, None, 3]}, {"features": "age"}, "row 2, column 'age': the value is missing"),
        ({"age": [1, "old", 3]}, {"features": "age"}, "the attribute 'age' of nodes is not of one kind"),
        ({"where": [[1.0], [1.0, 2.0], [1.0]]}, {"features": "where"}, "row 2, column 'where': the list has 2 numbers"),
        ({"split": ["train", "trian", "test"]}, {"split": "split"}, "'trian' is not a split"),
    ],
)
def test_node_attributes_that_cannot_be_used_are_refused(columns, settings, message):
    with pytest.raises(GraphError, match=message):
        from_networkx(people(**columns), **settings)
