"""Graph: its arrays, however they came about, and the ids of its nodes."""

from typing import Any

import numpy as np
import pytest

from gatas.errors import GraphError
from gatas.graph import SELF_LOOP, Graph, Names, NodeTable


def csr(**changes):
    #   0 → 1, 0 → 2 (type 0), 0 → 1 (type 1), 2 → 0 (type 0)
    arrays: dict[str, Any] = {
        "indptr": np.array([0, 3, 3, 4]),
        "neighbour": np.array([1, 2, 1, 0], np.int32),
        "edge_type": np.array([0, 0, 1, 0], np.int16),
        "num_edge_types": 2,
    }
    return Graph(**(arrays | changes))


def test_arrays_in_order_make_a_graph():
    graph = csr()
    assert (graph.num_nodes, graph.num_edges, graph.num_relations) == (3, 4, 3)
    assert graph.source.tolist() == [0, 0, 0, 2]
    assert graph.relation_names == ("self", "0", "1") and graph.relation_names[SELF_LOOP] == "self"
    assert repr(graph) == "Graph(3 nodes, 4 edges, 2 edge types)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": np.array([0, 3, 2, 4])}, "falls in between"),
        ({"indptr": np.array([0, 2**62, -(2**63), -1, 4])}, "falls in between"),  # where differences wrap to positive ones
        ({"indptr": np.array([0, 3, 3, 5])}, "number of edges, 4; it starts at 0, ends at 5"),
        ({"indptr": np.array([1, 3, 3, 4])}, "it starts at 1"),
        ({"indptr": np.array([0, 3, 3, 4], np.int32)}, "indptr has type int32 and shape (4,); expected a vector of int64"),
        ({"indptr": np.zeros((2, 2), np.int64)}, "indptr has type int64 and shape (2, 2)"),
        ({"indptr": np.array([0])}, "the graph has 0 nodes"),
        ({"indptr": np.empty(0, np.int64)}, "the graph has -1 nodes"),
        ({"neighbour": np.array([1, 2, 1, 0])}, "neighbour has type int64"),
        ({"neighbour": np.array([1, 2, 1, 3], np.int32)}, "neighbour holds a node outside 0 to 2"),
        ({"neighbour": np.array([1, 2, 1, -1], np.int32)}, "neighbour holds a node outside 0 to 2"),
        ({"neighbour": np.array([2, 1, 1, 0], np.int32)}, "must ascend by (edge_type, neighbour)"),
        ({"neighbour": np.array([1, 1, 1, 0], np.int32)}, "without repeats"),
        ({"edge_type": np.array([0, 0, 2, 0], np.int16)}, "edge_type holds a type outside 0 to 1"),
        ({"edge_type": np.array([1, 0, 0, 0], np.int16)}, "must ascend by (edge_type, neighbour)"),
        ({"edge_type": np.array([0, 0, 1, 0])}, "edge_type has type int64 and shape (4,); expected a vector of int16 or int32"),
        ({"edge_type": np.array([0, 0, 1], np.int16)}, "edge_type has 3 values for 4 edges"),
        ({"weight": np.ones(4)}, "weight has type float64"),
        ({"weight": np.ones(3, np.float32)}, "weight has 3 values for 4 edges"),
        ({"weight": np.array([1, 1, 0, 1], np.float32)}, "weights must be positive and finite"),
        ({"weight": np.array([1, 1, np.nan, 1], np.float32)}, "weights must be positive and finite"),
        ({"num_edge_types": -1}, "num_edge_types is -1"),
        ({"graph_id": np.zeros(3)}, "graph_id has type float64"),
        ({"graph_id": np.array([0, 0, -1], np.int32)}, "expected 3 int32 from 0 on"),
        ({"graph_id": np.array([0, 1, 0], np.int32)}, "the edge from node 0 to node 1 joins two graphs"),
        ({"edge_type_names": ("a",)}, "1 edge type names were given for 2 types"),
        ({"edge_type_names": ("a", "a")}, "two edge types are named 'a'"),
        ({"nodes": NodeTable(2)}, "the node table has 2 rows, but the graph has 3 nodes"),
        ({"node_names": Names.of(["a"])}, "1 node names were given for 3 nodes"),
        ({"indptr": "0334"}, "indptr has type <U4"),
    ],
)
def test_malformed_arrays_are_refused(changes, message):
    with pytest.raises(GraphError) as error:
        csr(**changes)
    assert message in str(error.value)


def test_offsets_beyond_int32_are_read_as_they_are():
    #   a graph of 2³¹ edges does not fit here: its offsets must fail only for the edges that are not there
    with pytest.raises(GraphError, match="number of edges, 4; it starts at 0, ends at 2147483652"):
        csr(indptr=np.array([0, 3, 2**31, 2**31 + 4]))
    assert csr().indptr.dtype == np.int64


def test_lists_and_strided_arrays_are_made_contiguous():
    graph = csr(neighbour=np.array([1, 9, 2, 9, 1, 9, 0, 9], np.int32)[::2])
    assert graph.neighbour.flags.c_contiguous and graph.neighbour.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize("name", ["indptr", "neighbour", "edge_type", "weight", "graph_id"])
def test_the_arrays_of_a_graph_cannot_be_written_to(name):
    graph = Graph.from_edges([0, 1], [1, 2], weight=[1.0, 2.0], graph_id=[0, 0, 0])
    with pytest.raises(ValueError, match="read-only"):
        getattr(graph, name)[0] = 0


def test_nodes_without_names_are_known_by_their_numbers():
    graph = Graph.from_edges([0, 1], [1, 2])
    assert graph.name(2) == 2
    assert graph.find(2) == graph.find("2") == graph.find(np.int32(2)) == 2  # type: ignore[arg-type]  # numpy's will do


@pytest.mark.parametrize("names", [["ann", "bob", "cy"], [30, 10, 20]])
def test_nodes_with_names_are_found_and_named_by_them(names):
    graph = Graph.from_edges([0, 1], [1, 2], node_names=names)
    assert [graph.name(node) for node in range(3)] == names
    assert [graph.find(name) for name in names] == [0, 1, 2]


@pytest.mark.parametrize("name", [3, -1, "3", "-1", "x", "01", "1.0", 1.0, True, "²", 2**70])
def test_what_is_no_node_number_is_not_found(name):
    with pytest.raises(GraphError, match=r"there is no node .*; nodes are numbered 0 to 2"):
        Graph.from_edges([0, 1], [1, 2]).find(name)


@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
@pytest.mark.parametrize("node", [-1, 3])
def test_a_node_outside_the_graph_has_no_name(names, node):
    graph = Graph.from_edges([0, 1], [1, 2], node_names=names)
    with pytest.raises(GraphError, match=rf"there is no node {node}; nodes are numbered 0 to 2"):
        graph.name(node)


def test_the_number_of_graphs_is_shown():
    graph = Graph.from_edges([0, 2], [1, 3], graph_id=[0, 0, 1, 1], weight=[1, 1])
    assert repr(graph) == "Graph(4 nodes, 2 edges, 1 edge types, weighted, 2 graphs)"


def test_a_graph_does_not_change_with_the_arrays_it_was_made_of():
    neighbour = np.array([1, 2], np.int32)
    graph = Graph(np.array([0, 1, 2, 2]), neighbour, np.zeros(2, np.int16), 1)
    neighbour[0] = 2**30
    assert graph.neighbour.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        graph.neighbour[0] = 0


def test_an_edge_type_named_self_is_told_from_the_self_loop():
    graph = Graph.from_edges([0], [1], edge_type_names=["self"])
    assert len(set(graph.relation_names)) == 2
