"""`Nearby`: the rows of an extended graph are those of the whole graph, to the bit, wherever its edges were read from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatas import OnDemand
from gatas.errors import GatasWarning, GraphError, TransitionError
from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.transitions import Nearby, nearby
from gatas.transitions.build import Builder


def extended(graph, ids, source, kind, target, weight=None):
    result = ExtendedGraph(graph, ids)
    source, kind, target = (np.asarray(column, np.int64) for column in (source, kind, target))
    result.add(source, kind, target, None if weight is None else np.asarray(weight, np.float32))
    return result


def same_rows(left, right):
    for column in ("indptr", "node", "path", "probability", "dropped_mass"):
        np.testing.assert_array_equal(getattr(left, column), getattr(right, column))


@pytest.mark.parametrize("most", [0.0, 2.0], ids=["whole", "within reach"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["walk", "count"]),
    limits=st.fixed_dictionaries(
        {
            "max_candidates": st.sampled_from([None, 3]),
            "max_degree": st.sampled_from([None, 2]),
            "revisits": st.booleans(),
        }
    ),
)
def test_rows_are_those_of_the_joined_graph(most, weighted, seed, kind, limits):
    generator = np.random.default_rng(seed)

    def edges(count, nodes):
        source, target = generator.integers(nodes, size=(2, count))
        return source, generator.integers(3, size=count), target, generator.random(count).astype(np.float32) + 0.1

    old, new = edges(60, 40), edges(12, 43)
    names = ("a", "b", "c")
    weight = old[3] if weighted else None
    graph = Graph.from_edges(old[0], old[2], old[1], num_nodes=40, weight=weight, edge_type_names=names)
    joined = Graph.from_edges(
        np.concatenate([graph.source, new[0]]),
        np.concatenate([graph.neighbour, new[2]]),
        np.concatenate([graph.edge_type, new[1]]),
        num_nodes=43,
        weight=np.concatenate([graph.weight, new[3]]) if graph.weight is not None else None,
        edge_type_names=names,
    )
    view = extended(graph, [40, 41, 42], new[0], new[1], new[2], new[3] if weighted else None)
    assert view.num_edges == joined.num_edges
    source = OnDemand(graph, 3, kind, **limits)
    wanted = generator.permutation(43)[:5]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearby, "MOST", most)
        same_rows(Nearby(view, source.setting).rows(wanted), OnDemand(joined, 3, kind, **limits).rows(wanted))


def test_only_what_is_within_reach_is_made_ready(monkeypatch):
    #   0 ─ 1 ─ 2 ─ … ─ 999 ─ (0), and a new node at 500: two steps reach 498 to 502
    ring = Graph.from_edges(np.arange(1000), (np.arange(1000) + 1) % 1000, undirected=True)
    sizes = []
    build = Builder.__init__

    def noted(self, graph, *settings):
        sizes.append(graph.num_nodes)
        build(self, graph, *settings)

    source = OnDemand(ring, 2)
    monkeypatch.setattr(Builder, "__init__", noted)
    rows = Nearby(extended(ring, [1000], [1000, 500], [0, 0], [500, 1000]), source.setting)
    assert rows.row(1000).node.tolist() == [1000, 500, 499, 501]
    rows.row(1000)
    assert sizes == [4]  # and once: what is asked for again is kept


def test_ids_of_new_nodes_may_make_all_of_them_text():
    numbers = Graph.from_edges([0], [1], node_ids=[10, 20])
    mixed = ExtendedGraph(numbers, ["zoe"]).node_ids
    assert mixed is not None and mixed.take([0, 2]) == ["10", "zoe"] and mixed.indices([10, "10", "zoe"]).tolist() == [0, 0, 2]
    whole = ExtendedGraph(numbers, ["30"]).node_ids
    assert whole is not None and whole.take([0, 2]) == [10, 30] and whole.indices(["30", 20]).tolist() == [2, 1]
    plain = Graph.from_edges([0], [1])
    assert ExtendedGraph(plain, [2, "3"]).node_ids is None and ExtendedGraph(plain, [2]).index_of("2") == 2
    assert ExtendedGraph(plain, ["zoe"]).id_of(1) == "1" and ExtendedGraph(plain, [7]).id_of(2) == 7


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "z"], "duplicate id 'a': ids must be distinct"),
        (["z", "z"], "duplicate id 'z': ids must be distinct"),
        ([None], "the id None is neither an integer"),
        (["\ud800"], "neither an integer below"),
    ],
)
def test_ids_that_cannot_be_are_refused(ids, message):
    with pytest.raises(GraphError, match=message):
        ExtendedGraph(Graph.from_edges([0], [1], node_ids=["a", "b"]), ids)


def test_what_is_not_there_is_refused():
    view = ExtendedGraph(Graph.from_edges([0], [1], node_ids=["ada", "bo"]), ["zoe"])
    with pytest.raises(GraphError, match=r"no node has the id 'zoey'. Nearest known: zoe"):
        view.index_of("zoey")
    with pytest.raises(GraphError, match="no node has the id 3; ids are 0 to 2"):
        ExtendedGraph(Graph.from_edges([0], [1]), [2]).index_of(3)
    with pytest.raises(TransitionError, match="target 3 is not a node"):
        Nearby(view, OnDemand(view.graph, 2).setting).row(3)


def test_edges_of_weight_0_are_dropped_with_a_warning():
    graph = Graph.from_edges([0], [1], weight=[2.0])
    with pytest.warns(GatasWarning, match="1 edge has weight 0"):
        view = extended(graph, [2], [2, 2], [0, 0], [0, 1], [0.0, 1.0])
    assert view.edges_from(np.array([2])).target.tolist() == [1]
