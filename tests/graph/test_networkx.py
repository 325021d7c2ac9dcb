"""Graphs of NetworkX, in and out."""

import networkx as nx
import pytest

from gatas.errors import GraphError
from gatas.graph import Graph
from gatas.graph.networkx import from_networkx, to_networkx


def listed(graph):
    kinds = graph.edge_type_names
    ends = zip(graph.source, graph.edge_type, graph.neighbour, strict=True)
    return [(graph.id_of(i), kinds[r], graph.id_of(j)) for i, r, j in ends]


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


def test_nodes_numbered_in_order_need_no_ids():
    assert from_networkx(nx.path_graph(3)).node_ids is None


@pytest.mark.parametrize("ids", [[5, 3, 4], ["x", "y", "z"]])
def test_other_ids_come_back_out(ids):
    graph = from_networkx(nx.DiGraph([(ids[0], ids[1]), (ids[1], ids[2])]))
    assert [graph.id_of(node) for node in range(3)] == ids


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


def test_an_undirected_edge_is_its_own_inverse_and_a_directed_one_has_none_unless_asked_for():
    assert from_networkx(nx.Graph([("a", "b")])).inverse_of == (0,)
    directed: nx.DiGraph[str] = nx.DiGraph([("a", "b")])
    assert from_networkx(directed).inverse_of == (-1,)
    assert from_networkx(directed, inverse=True).inverse_of == (1, 0)
    assert from_networkx(directed, undirected=True).inverse_of == (0,)


def test_node_attributes_are_left_alone():
    graph: nx.Graph[str] = nx.Graph([("a", "b")])
    graph.nodes["a"]["age"] = "unknown"
    assert listed(from_networkx(graph)) == [("a", "0", "b"), ("b", "0", "a")]
