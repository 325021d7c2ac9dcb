"""Graph.from_edges: what users list, and what becomes of it."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph

triplets = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=30)


def columns(edges):
    return np.array(edges, np.int64).reshape(-1, 3).T


def listed(graph):
    return list(zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True))


@given(triplets)
def test_edges_are_the_sorted_set_of_triplets(edges):
    source, kind, target = columns(edges)
    graph = Graph.from_edges(source, target, kind, num_nodes=6, num_edge_types=3)
    assert listed(graph) == sorted(set(edges))
    assert graph.num_repeated == len(edges) - len(set(edges))


@given(triplets)
def test_undirected_adds_each_reverse_once_however_often_it_is_asked_for(edges):
    source, kind, target = columns(edges)
    graph = Graph.from_edges(source, target, kind, num_nodes=6, num_edge_types=3, undirected=True)
    again = Graph.from_edges(graph.source, graph.neighbour, graph.edge_type, num_nodes=6, num_edge_types=3, undirected=True)
    assert listed(graph) == sorted({*edges, *((j, r, i) for i, r, j in edges)}) == listed(again)


@given(triplets)
def test_inverse_gives_every_type_an_inverse_type_of_its_own(edges):
    source, kind, target = columns(edges)
    graph = Graph.from_edges(source, target, kind, num_nodes=6, num_edge_types=3, inverse=True)
    assert listed(graph) == sorted({*edges, *((j, r + 3, i) for i, r, j in edges)})
    assert graph.edge_type_names == ("0", "1", "2", "0⁻¹", "1⁻¹", "2⁻¹")


@given(triplets, st.data())
def test_weights_of_repeated_edges_add_up(edges, data):
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(edges), max_size=len(edges)))
    source, kind, target = columns(edges)
    graph = Graph.from_edges(source, target, kind, num_nodes=6, num_edge_types=3, weight=np.array(weights))
    expected: dict[tuple[int, int, int], int] = {}
    for edge, weight in zip(edges, weights, strict=True):
        expected[edge] = expected.get(edge, 0) + weight
    assert graph.weight is not None
    assert dict(zip(listed(graph), graph.weight.tolist(), strict=True)) == expected


def test_repeated_edges_can_be_counted():
    graph = Graph.from_edges([0, 0, 0, 1], [1, 1, 2, 2], repeated="count")
    assert graph.weight is not None and graph.weight.tolist() == [2, 1, 1]
    assert graph.num_repeated == 1


def test_the_same_pair_under_another_type_is_another_edge():
    assert Graph.from_edges([0, 0], [1, 1], [0, 1]).num_edges == 2


def test_self_edges_are_kept_once_even_when_reverses_are_added():
    assert listed(Graph.from_edges([0, 1], [0, 2], undirected=True)) == [(0, 0, 0), (1, 0, 2), (2, 0, 1)]


def test_directions_listed_with_different_weights_keep_their_own_and_are_counted():
    with pytest.warns(GatasWarning, match="1 pair of nodes is .* different weights"):
        graph = Graph.from_edges([0, 1, 2], [1, 0, 0], weight=[1.0, 2.0, 3.0], undirected=True)
    assert graph.weight is not None and graph.weight.tolist() == [1, 3, 2, 3]


def test_nodes_too_many_for_one_sorting_key_are_sorted_all_the_same():
    far = 2**31 - 3
    graph_edges = ([far, 0, far, 0], [0, far, 5, far], [2, 1, 0, 1])
    with pytest.raises(GraphError, match=r"at most 2,147,483,647 fit"):
        Graph.from_edges([2**31 - 1], [0])
    from gatas.graph.edges import collapsed, listed_edges

    edges = collapsed(listed_edges(*graph_edges[:2], graph_edges[2], None, str), 2**31 - 1, "collapse")
    found = list(zip(edges.source.tolist(), edges.edge_type.tolist(), edges.target.tolist(), strict=True))
    assert found == [(0, 1, far), (far, 0, 5), (far, 2, 0)]


@pytest.mark.parametrize("kwargs", [{"num_nodes": 2**31}, {"num_nodes": np.int64(2**40)}])
def test_more_nodes_than_int32_can_number_are_refused(kwargs):
    with pytest.raises(GraphError, match=r"nodes, but at most 2,147,483,647 fit. Renumber"):
        Graph.from_edges([0], [1], **kwargs)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([0, 3], "edge 1 points to node 3, but the graph has 3 nodes (0 to 2). Pass num_nodes=4"),
        ([0, -1], "edge 1: source is -1, but ids start at 0"),
        ([0.0, 1.5], "edge 1: source is 1.5, of type float64; expected integers. Cast"),
        ([0.0, np.nan], "edge 1: source is nan, of type float64"),
        (np.array([0.0, 2.0**53 + 2]), "edge 0: source is 0.0, of type float64; expected integers"),
        ([True, False], "edge 0: source is True, of type bool"),
        (["a", "b"], "edge 0: source is 'a', of type <U1; expected integers. Pass whole numbers, or use gatas.read_graph"),
        ([0, "b"], "source is '0', of type <U21"),
        ([0, None], "edge 0: source is 0, of type object"),
        ([0, 2**70], "of type object; expected integers"),
        (np.array([0, 2**63], np.uint64), "edge 1: source 9223372036854775808 does not fit into 63 bits"),
        (np.array([0, 2**63 - 1]), "9,223,372,036,854,775,808 nodes, but at most"),
        (np.ma.array([0, 1], mask=[False, True]), "element 1 of the array is masked"),
        ([[0, 1]], "source has shape (1, 2); expected one dimension"),
        ([[0], [1, 2]], "could not be read as an array"),
        (torch.eye(2).to_sparse(), "could not be read as an array"),
        ([0, 1, 2], "target has 2 values, but source has 3. Give one per edge"),
        (np.array(["2020-01-01"] * 2, "datetime64[D]"), "of type datetime64[D]; expected integers"),
    ],
)
def test_sources_that_are_no_node_numbers_are_refused(source, message):
    num_nodes = 3 if message.startswith("edge 1 points") else None
    with pytest.raises(GraphError) as error:
        Graph.from_edges(source, [1, 2], num_nodes=num_nodes)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -2.0], "edge 1: weight is -2.0, but weights must be positive"),
        ([1.0, np.nan], "edge 1: weight is nan"),
        ([1.0, np.inf], "edge 1: weight is inf"),
        ([1e-300, 1.0], "edge 0: weight is 1e-300"),
        ([1.0, 1e300], r"edge 1: weight is 1e+300"),
        ([True, True], "of type bool; expected numbers"),
        (["1", "2"], "edge 0: weight is '1', of type <U1; expected numbers"),
        ([[1.0], [2.0]], "weight has shape (2, 1)"),
        ([1.0], "weight has 1 values, but source has 2"),
    ],
)
def test_weights_that_cannot_be_normalised_are_refused(weight, message):
    with pytest.raises(GraphError) as error:
        Graph.from_edges([0, 1], [1, 2], weight=weight)
    assert message in str(error.value)


def test_weights_that_add_up_beyond_float32_are_refused():
    with pytest.raises(GraphError, match=r"repeated edge from node 0 to node 1 add up to 6e.38"):
        Graph.from_edges([0, 0], [1, 1], weight=[3e38, 3e38])


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_edges_of_weight_zero_are_dropped_and_counted(zero):
    with pytest.warns(GatasWarning, match="1 edge has weight 0 and was dropped"):
        graph = Graph.from_edges([0, 1, 2], [1, 2, 3], weight=[1, zero, 2])
    assert (graph.num_edges, graph.num_nodes) == (2, 4)


def test_an_error_names_the_edge_as_it_was_listed_whatever_was_dropped_before_it():
    with pytest.raises(GraphError, match="edge 2 points to node 9"):
        Graph.from_edges([0, 1, 9], [1, 2, 0], weight=[0, 1, 1], num_nodes=3)
    with pytest.raises(GraphError, match="edge 2 has type 5, but there are 2 types"):
        Graph.from_edges([0, 1, 2], [1, 2, 0], [0, 1, 5], weight=[0, 1, 1], num_edge_types=2)


def test_gaps_between_types_are_closed_with_a_warning_and_names_stay():
    with pytest.warns(GatasWarning, match="numbered up to 7, but only 2 occur"):
        graph = Graph.from_edges([0, 1], [1, 2], [7, 3])
    assert graph.edge_type_names == ("3", "7")
    assert listed(graph) == [(0, 1, 1), (1, 0, 2)]


def test_very_large_type_numbers_are_compacted_too():
    with pytest.warns(GatasWarning, match="only 2 occur"):
        assert Graph.from_edges([0, 1], [1, 2], [2**40, 5]).edge_type_names == ("5", str(2**40))


def test_gaps_between_types_are_kept_when_their_number_is_given():
    graph = Graph.from_edges([0, 1], [1, 2], [7, 3], num_edge_types=9)
    assert (graph.num_edge_types, graph.num_relations, graph.edge_type.tolist()) == (9, 10, [7, 3])


def test_types_from_32768_on_are_held_in_int32():
    graph = Graph.from_edges([0, 1], [1, 2], [40_000, 0], num_edge_types=40_001)
    assert graph.edge_type.dtype == np.int32 and graph.edge_type.tolist() == [40_000, 0]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"edge_type": [0, 4], "num_edge_types": 2},
            "edge 1 has type 4, but there are 2 types (0 to 1). Pass num_edge_types=5",
        ),
        ({"edge_type": [0, -4]}, "edge 1: edge_type is -4"),
        ({"edge_type": [0.0, 1.0]}, "edge 0: edge_type is 0.0, of type float64"),
        ({"edge_type": [0]}, "edge_type has 1 values, but source has 2"),
        ({"edge_type_names": ["a", "b"], "num_edge_types": 3}, "2 edge type names were given for 3 types"),
        ({"edge_type": [0, 1], "edge_type_names": ["a", "a"]}, "two edge types are named 'a'"),
        ({"num_edge_types": 2**40}, "at most 1,048,576 fit"),
        ({"num_edge_types": 1.5}, "num_edge_types is 1.5; expected a whole number"),
        ({"num_nodes": 3.0}, "num_nodes is 3.0; expected a whole number"),
        ({"num_nodes": True}, "num_nodes is True; expected a whole number"),
        ({"num_nodes": -1}, "num_nodes is -1; expected a whole number"),
        ({"num_nodes": 2}, "edge 1 points to node 2, but the graph has 2 nodes"),
        ({"inverse": True, "undirected": True}, "choose one"),
        ({"repeated": "sum"}, "repeated is 'sum'; expected 'collapse' or 'count'"),
        ({"node_ids": ["a", "b"]}, "2 node ids were given for 3 nodes"),
        ({"node_ids": ["a", "b", "a"]}, "duplicate id 'a': ids must be distinct"),
        ({"inverse_of": [0, 0]}, "inverse_of has 2 values for 1 edge types"),
        ({"inverse_of": [3]}, "inverse_of[0] is 3; expected -1"),
    ],
)
def test_options_that_do_not_fit_the_edges_are_refused(kwargs, message):
    with pytest.raises(GraphError) as error:
        Graph.from_edges([0, 1], [1, 2], **kwargs)
    assert message in str(error.value)


def test_a_graph_needs_nodes_but_no_edges_and_no_types():
    graph = Graph.from_edges([], [], num_nodes=3)
    assert (graph.num_nodes, graph.num_edges, graph.num_edge_types, graph.num_relations) == (3, 0, 0, 1)
    assert Graph.from_edges([], [], num_nodes=1, weight=[], undirected=True).num_edges == 0
    with pytest.raises(GraphError, match=r"the graph has no nodes. Give at least one edge, or num_nodes"):
        Graph.from_edges([], [])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4", ">i8"])
def test_integers_of_any_width_and_byte_order_give_the_same_graph(dtype):
    graph = Graph.from_edges(np.array([0, 1, 2], dtype), np.array([1, 2, 0], dtype), np.array([0, 1, 0], dtype))
    assert listed(graph) == [(0, 0, 1), (1, 1, 2), (2, 0, 0)]


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "view",
    [
        _read_only,
        lambda array: np.repeat(array, 2)[::2],
        lambda array: array[::-1].copy()[::-1],
        lambda array: np.asfortranarray(np.stack([array, array]))[0],
        lambda array: torch.from_numpy(array.copy()),
        list,
        tuple,
    ],
    ids=["read-only", "strided", "negative stride", "row of a Fortran matrix", "tensor", "list", "tuple"],
)
def test_any_layout_of_an_input_gives_the_same_graph(view):
    source, target, kind = np.array([2, 0, 0]), np.array([0, 1, 1]), np.array([1, 0, 0])
    assert listed(Graph.from_edges(view(source), view(target), view(kind))) == [(0, 0, 1), (2, 1, 0)]


def test_a_mapped_input_is_accepted(tmp_path):
    np.save(tmp_path / "source.npy", np.array([2, 0]))
    source = np.load(tmp_path / "source.npy", mmap_mode="r")
    assert listed(Graph.from_edges(source, [0, 1])) == [(0, 0, 1), (2, 0, 0)]


@pytest.mark.parametrize("kwargs", [{}, {"inverse": True}, {"undirected": True}, {"repeated": "count"}])
def test_inputs_are_never_changed_nor_kept(kwargs):
    columns = [np.array(values) for values in ([3, 1, 1], [0, 2, 2], [1, 0, 0])]
    before = [column.copy() for column in columns]
    graph = Graph.from_edges(*columns, **kwargs)
    assert all((column == old).all() for column, old in zip(columns, before, strict=True))
    edges = listed(graph)
    for column in columns:
        column[:] = 0
    assert listed(graph) == edges


def test_tensors_that_require_gradients_can_be_weights():
    graph = Graph.from_edges([0], [1], weight=torch.tensor([0.5], requires_grad=True))
    assert graph.weight is not None and graph.weight.tolist() == [0.5]


@pytest.mark.slow
def test_ten_million_edges_take_seconds():
    random = np.random.default_rng(0)
    source, target = random.integers(0, 10**6, (2, 10**7))
    start = time.perf_counter()
    assert Graph.from_edges(source, target).num_edges > 9_900_000
    assert time.perf_counter() - start < 15  # about 1.5 s on an idle core
