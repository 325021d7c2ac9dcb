"""Walks that may meet a node again one step after it was first met."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from gatas.errors import TransitionError
from gatas.graph import Graph
from gatas.graph.storage import open_store, write_store
from gatas.transitions import OnDemand, Transitions, build
from gatas.transitions.build import Walks
from gatas.transitions.paths import path_of, path_relations
from gatas.transitions.table import opened_for
from tests.transitions.conftest import typed_graphs
from tests.transitions.oracles import dense_entries, dense_transitions, entries, one_table, same_bytes, walked
from tests.transitions.test_golden import probabilities
from tests.transitions.test_properties import no_gpu, random_graph

DEVICES = [None, "cpu", pytest.param("cuda", marks=no_gpu)]
quick = settings(max_examples=60)


def with_pages(many, make):
    """What `make` returns where graphs of `many` nodes or more have their masses on pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MANY_NODES", many)
        return make()


@pytest.mark.parametrize("self_edges", [[], [(0, 0), (1, 1), (2, 2)]], ids=["plain", "self-edges"])
@pytest.mark.parametrize("many", [0, 1 << 20], ids=["pages", "no pages"])
@pytest.mark.parametrize("device", DEVICES)
def test_neighbours_of_neighbours_are_met_again_a_step_later(device, many, self_edges):
    #   0 ─ 1        from 0, step 2:  2 by 1: 1/2·1/2,  1 and 3 by 2: 1/2·1/3 each;  scaled: 3/7, 2/7, 2/7
    #    ╲ ╱         step 3:          neither 0 nor its neighbours, so 3 alone, a step after it was first met
    #     2 ─ 3      step 4:          3 was reached at step 2: nothing is left
    source, target = zip(*[(0, 1), (0, 2), (1, 2), (2, 3), *self_edges], strict=True)
    graph = Graph.from_edges(source, target, undirected=True)
    table = with_pages(many, lambda: Transitions.build(graph, 4, revisits=True, device=device))
    found = [probabilities(table, 0, step) for step in range(5)]
    assert found == [approx(level) for level in ({0: 1}, {1: 1 / 2, 2: 1 / 2}, {1: 2 / 7, 2: 3 / 7, 3: 2 / 7}, {3: 1}, {})]
    without = with_pages(many, lambda: Transitions.build(graph, 4, device=device))
    assert [probabilities(without, 0, step) for step in (2, 3)] == [{3: 1}, {}]


@pytest.mark.parametrize("device", DEVICES)
@quick
@given(
    graph=typed_graphs(max_nodes=7),
    num_steps=st.integers(1, 4),
    kind=st.sampled_from(["walk", "count"]),
    many=st.sampled_from([0, 1 << 20]),
)
def test_rows_are_those_of_walks_one_by_one(device, graph, num_steps, kind, many):
    make = lambda: Transitions.build(graph, num_steps, kind, revisits=True, device=device)  # noqa: E731
    table = with_pages(many, make)
    expected = dense_transitions(graph, num_steps, kind=kind, revisits=True) if num_steps < 4 else None
    for target in range(graph.num_nodes):
        found = entries(table, target)
        assert found == approx(walked(graph, target, num_steps, kind=kind, revisits=True)[0], rel=1e-6)
        if expected is not None:
            assert found == approx(dense_entries(expected, target), rel=1e-6)


@quick
@given(graph=typed_graphs(), num_steps=st.integers(1, 3), kind=st.sampled_from(["walk", "count"]))
def test_walks_one_by_one_are_the_papers_equations_without_revisits(graph, num_steps, kind):
    expected = dense_transitions(graph, num_steps, kind=kind)
    for target in range(graph.num_nodes):
        assert walked(graph, target, num_steps, kind=kind)[0] == approx(dense_entries(expected, target))


@quick
@given(
    graph=typed_graphs(max_nodes=8),
    most=st.none() | st.integers(1, 5),
    cap=st.none() | st.integers(1, 5),
    kind=st.sampled_from(["walk", "count"]),
    device=st.sampled_from([None, "cpu"]),
    many=st.sampled_from([0, 1 << 20]),
)
def test_limits_hold_and_say_what_they_dropped(graph, most, cap, kind, device, many):
    expected = dense_transitions(graph, 3, kind=kind, max_degree=most or np.inf, revisits=True)
    limits = {"max_candidates": cap, "max_degree": most, "device": device}
    table = with_pages(many, lambda: Transitions.build(graph, 3, kind, revisits=True, **limits))
    for target in range(graph.num_nodes):
        row, all_entries = table.row(target), dense_entries(expected, target)
        found = entries(table, target)
        assert found == approx({key: all_entries[key] for key in found}, rel=1e-6)
        for step in range(4):
            of_step = sorted((p for (t, _, _), p in all_entries.items() if t == step), reverse=True)
            kept = row.probability[row.step == step]
            assert sorted(kept, reverse=True) == approx(of_step[:cap] if step else of_step, rel=1e-6)
            assert kept.sum() + row.dropped_mass[step] == approx(1, abs=1e-6) or not of_step


@pytest.mark.parametrize("cap", [None, 7])
def test_threads_pages_and_single_rows_give_identical_bytes(cap):
    graph = random_graph(3_000, 12_000, 3, seed=5, inverse=True)
    make = lambda threads: Transitions.build(graph, 2, revisits=True, max_candidates=cap, num_threads=threads)  # noqa: E731
    table = make(1)
    rows = one_table(table)
    assert same_bytes(one_table(make(2)), rows)
    assert same_bytes(one_table(with_pages(0, lambda: make(2))), rows)
    wanted = [5, 2_999, 5, 0]
    assert same_bytes(OnDemand(graph, 2, revisits=True, max_candidates=cap).rows(wanted), table.rows(wanted))


@quick
@given(graph=typed_graphs(max_nodes=7), num_steps=st.integers(1, 4))
def test_a_node_has_its_first_step_and_perhaps_the_next_and_the_target_only_step_0(graph, num_steps):
    table, plain = OnDemand(graph, num_steps, revisits=True), OnDemand(graph, num_steps)
    for target in range(graph.num_nodes):
        first = {int(node): int(step) for node, step in zip(plain.row(target).node, plain.row(target).step, strict=True)}
        row = table.row(target)
        for node, step in zip(row.node.tolist(), row.step.tolist(), strict=True):
            assert step - first[node] in ((0, 1) if node != target else (0,))
        assert set(first) == set(row.node.tolist())


@st.composite
def symmetric_graphs(draw):
    """Unweighted graphs without self-edges, in which every edge can be walked back."""
    num_nodes, num_types = draw(st.integers(2, 7)), draw(st.integers(1, 2))
    node = st.integers(0, num_nodes - 1)
    drawn = draw(st.lists(st.tuples(node, st.integers(0, num_types - 1), node), max_size=3 * num_nodes))
    edges = [edge for edge in drawn if edge[0] != edge[2]]
    source, kind, target = ([edge[k] for edge in edges] for k in range(3))
    direction = draw(st.sampled_from(["inverse", "undirected"]))
    return Graph.from_edges(
        source,
        target,
        kind,
        num_nodes=num_nodes,
        num_edge_types=num_types,
        **{direction: True},  # type: ignore[arg-type]
    )


@settings(max_examples=100)
@given(graph=symmetric_graphs(), num_steps=st.integers(1, 3), revisits=st.booleans())
def test_walks_on_symmetric_graphs_are_reversible(graph, num_steps, revisits):
    #   T(i, j, path) · c_t(i) = T(j, i, path walked back) · c_t(j), where c_t(i) = degree(i) · Π_{s = 2 … t} Z(i, s)
    table = Transitions.build(graph, num_steps, revisits=revisits)
    degree = np.diff(graph.indptr)
    rows = [entries(table, node) for node in range(graph.num_nodes)]
    totals = [walked(graph, node, num_steps, revisits=revisits)[1] for node in range(graph.num_nodes)]

    def scale(node, step):
        return degree[node] * np.prod(totals[node][2 : step + 1])

    def walked_back(path):
        steps = path_relations(path, graph.num_relations)
        return path_of([graph.inverse_of[relation - 1] + 1 for relation in reversed(steps)], graph.num_relations)

    for i, row in enumerate(rows):
        for (step, j, path), probability in row.items():
            if step > 0:
                back = rows[j][step, i, walked_back(path)]
                assert probability * scale(i, step) == approx(back * scale(j, step), rel=1e-5)


def test_a_store_keeps_the_setting_and_one_without_it_has_none(tmp_path):
    graph = random_graph(50, 200, 2, seed=1)
    table = Transitions.build(graph, 2, revisits=True)
    table.save(tmp_path / "table")
    assert Transitions.open(tmp_path / "table").setting == table.setting and table.setting.revisits
    assert opened_for(graph, tmp_path / "table", Walks(2, revisits=True)).num_entries == table.num_entries
    with pytest.raises(TransitionError, match="has revisits True, but False is asked for"):
        opened_for(graph, tmp_path / "table", Walks(2))
    Transitions.build(graph, 2).save(tmp_path / "new")
    store = open_store(tmp_path / "new", "transitions")
    parameters = {name: value for name, value in store.parameters.items() if name != "revisits"}
    assert store.parameters == parameters | {"revisits": False}
    write_store(tmp_path / "old", "transitions", store.arrays, parameters)
    assert not opened_for(graph, tmp_path / "old", Walks(2)).setting.revisits


def test_what_is_not_a_truth_value_is_refused():
    with pytest.raises(TransitionError, match=r"revisits is 2; expected True .* or False"):
        OnDemand(random_graph(10, 20, 1, seed=0), 2, revisits=2)  # type: ignore[arg-type]


def test_torch_and_the_kernels_agree_on_a_larger_graph():
    graph = random_graph(400, 2_000, 3, seed=8, inverse=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows, ours = (one_table(Transitions.build(graph, 3, revisits=True, device=where)) for where in (device, None))
    for name in ("indptr", "node", "path"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(ours, name))
    np.testing.assert_allclose(rows.probability, ours.probability, rtol=1e-6)
