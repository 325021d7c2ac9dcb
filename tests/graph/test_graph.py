"""Graph: its arrays, however they came about, and the ids of its nodes."""

from typing import Any

import numpy as np
import pytest

from gatas.errors import GraphError
from gatas.graph import NO_INVERSE, SELF_LOOP, Graph, NodeIds


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
        ({"edge_type_names": ("a",)}, "1 edge type names were given for 2 types"),
        ({"edge_type_names": ("a", "a")}, "two edge types are named 'a'"),
        ({"node_ids": NodeIds.of(["a"])}, "1 node ids were given for 3 nodes"),
        ({"indptr": "0334"}, "indptr has type <U4"),
        ({"inverse_of": (1,)}, "inverse_of has 1 values for 2 edge types"),
        ({"inverse_of": (1, -1)}, "inverse_of[0] is 1; expected -1, or a type of which 0 is the inverse in turn"),
        ({"inverse_of": (1, 1)}, "inverse_of[0] is 1; expected -1"),
        ({"inverse_of": (2, -1)}, "inverse_of[0] is 2"),
        ({"inverse_of": (-1, -2)}, "inverse_of[1] is -2"),
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


@pytest.mark.parametrize("name", ["indptr", "neighbour", "edge_type", "weight"])
def test_the_arrays_of_a_graph_cannot_be_written_to(name):
    graph = Graph.from_edges([0, 1], [1, 2], weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        getattr(graph, name)[0] = 0


def test_nodes_without_ids_are_known_by_their_indices():
    graph = Graph.from_edges([0, 1], [1, 2])
    assert graph.id_of(2) == 2
    assert graph.index_of(2) == graph.index_of("2") == graph.index_of(np.int32(2)) == 2  # type: ignore[arg-type]  # numpy's will do


@pytest.mark.parametrize("ids", [["ann", "bob", "cy"], [30, 10, 20]])
def test_nodes_with_ids_are_found_and_named_by_them(ids):
    graph = Graph.from_edges([0, 1], [1, 2], node_ids=ids)
    assert [graph.id_of(index) for index in range(3)] == ids
    assert [graph.index_of(one) for one in ids] == [0, 1, 2] == [graph.get_index(one) for one in ids]


@pytest.mark.parametrize("node_id", [3, -1, "3", "-1", "x", "01", "1.0", 1.0, True, "²", 2**70])
def test_what_is_no_id_is_not_found(node_id):
    graph = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(GraphError, match=r"no node has the id .*; ids are 0 to 2"):
        graph.index_of(node_id)
    assert graph.get_index(node_id) == -1


@pytest.mark.parametrize("ids", [None, ["a", "b", "c"]])
@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_the_graph_has_no_id(ids, index):
    graph = Graph.from_edges([0, 1], [1, 2], node_ids=ids)
    with pytest.raises(GraphError, match=rf"there is no node with index {index}; indices are 0 to 2"):
        graph.id_of(index)


def test_weights_are_shown():
    graph = Graph.from_edges([0, 2], [1, 3], weight=[1, 1])
    assert repr(graph) == "Graph(4 nodes, 2 edges, 1 edge type, weighted)"


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


def typed(names, **settings):
    #   0 → 1 and 1 → 2, of two types
    return Graph.from_edges([0, 1], [1, 2], [0, 1], edge_type_names=names, **settings)


def test_an_edge_type_has_no_inverse_unless_one_is_known():
    graph = typed(["likes", "knows"])
    assert graph.inverse_of == (NO_INVERSE, NO_INVERSE) == csr().inverse_of
    assert graph.original_edge_types == [0, 1]


def test_inverse_types_and_their_originals_know_each_other():
    graph = typed(["likes", "knows"], inverse=True)
    assert graph.edge_type_names == ("likes", "knows", "likes⁻¹", "knows⁻¹")
    assert graph.inverse_of == (2, 3, 0, 1)
    assert graph.original_edge_types == [0, 1]


def test_an_undirected_type_is_its_own_inverse():
    graph = typed(["likes", "knows"], undirected=True)
    assert graph.inverse_of == (0, 1) and graph.original_edge_types == [0, 1]


def test_inverses_that_the_data_itself_lists_are_given():
    #   0 parent → 1, 1 child → 0; 0 ─ 2 spouse; 2 admires → 1
    graph = Graph.from_edges(
        [0, 1, 0, 2, 2],
        [1, 0, 2, 0, 1],
        [1, 0, 2, 2, 3],
        edge_type_names=["child", "parent", "spouse", "admires"],
        inverse_of=[1, 0, 2, -1],
    )
    assert graph.inverse_of == (1, 0, 2, NO_INVERSE)
    assert graph.original_edge_types == [0, 2, 3]  # the first of two that are each other's inverse
    assert graph.num_edges == 5  # nothing was added


@pytest.mark.parametrize("direction", ["inverse", "undirected"])
def test_inverses_are_not_given_twice(direction):
    with pytest.raises(GraphError, match=r"inverse_of was given beside inverse or undirected.* Leave one out"):
        typed(["likes", "knows"], inverse_of=[1, 0], **{direction: True})


def test_the_inverse_of_a_type_is_never_read_off_its_name():
    graph = typed(["rate", "rate⁻¹"])
    assert graph.inverse_of == (NO_INVERSE, NO_INVERSE) and graph.original_edge_types == [0, 1]


def test_the_users_own_type_keeps_its_name_beside_inverse_types():
    graph = typed(["rate", "rate⁻¹"], inverse=True)
    assert graph.edge_type_names == ("rate", "rate⁻¹", "rate⁻¹⁻¹", "rate⁻¹⁻¹⁻¹")
    assert graph.inverse_of == (2, 3, 0, 1) and graph.original_edge_types == [0, 1]
    ends = zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True)
    assert list(ends) == [(0, 0, 1), (1, 1, 2), (1, 2, 0), (2, 3, 1)]


def test_edges_left_out_leave_everything_else_as_it_was():
    #   0 → 1, 0 → 2 (type 0), 0 → 1 (type 1), 2 → 0 (type 0): without 0 → 2 and 2 → 0
    graph = csr(
        weight=np.array([1, 2, 3, 4], np.float32),
        node_ids=NodeIds.of(["a", "b", "c"]),
        edge_type_names=("likes", "liked by"),
        inverse_of=(1, 0),
        num_repeated=5,
    )
    smaller = graph.without_edges(np.array([False, True, False, True]))
    assert smaller.indptr.tolist() == [0, 2, 2, 2] and smaller.neighbour.tolist() == [1, 1]
    assert smaller.edge_type.tolist() == [0, 1] and smaller.weight is not None and smaller.weight.tolist() == [1, 3]
    for name in ("node_ids", "edge_type_names", "inverse_of", "num_edge_types", "num_repeated", "num_nodes"):
        assert getattr(smaller, name) == getattr(graph, name)
    assert smaller.neighbour.dtype == np.int32 and smaller.edge_type.dtype == np.int16
    with pytest.raises(ValueError, match="read-only"):
        smaller.neighbour[0] = 2
    assert csr().without_edges(np.ones(4, bool)).num_edges == 0 and csr().without_edges(np.zeros(4, bool)).num_edges == 4


@pytest.mark.parametrize("mask", [[True], [0, 1, 0, 1], np.zeros((2, 2), bool)])
def test_a_mask_of_edges_has_a_truth_value_for_each(mask):
    with pytest.raises(GraphError, match="expected a truth value for each of 4 edges"):
        csr().without_edges(mask)
