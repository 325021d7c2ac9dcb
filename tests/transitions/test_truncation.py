"""`max_candidates`: the likeliest are kept, the rest is accounted for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from gatas.errors import TransitionError
from gatas.graph import Graph
from gatas.transitions import OnDemand, Transitions, build, estimate_cost, kernels
from gatas.transitions.build import Walks
from gatas.transitions.table import opened_for
from tests.transitions.conftest import typed_graphs
from tests.transitions.oracles import dense_entries, dense_transitions, entries, one_table
from tests.transitions.test_properties import random_graph


@settings(max_examples=60)
@given(
    graph=typed_graphs(max_nodes=8),
    keep=st.integers(1, 4) | st.tuples(*[st.integers(1, 4)] * 3),
    device=st.sampled_from([None, "cpu"]),
)
def test_the_likeliest_of_each_step_are_kept_and_the_rest_is_recorded(graph, keep, device):
    full = Transitions.build(graph, 3)
    cut = Transitions.build(graph, 3, max_candidates=keep, device=device)
    most = [1, *(keep if isinstance(keep, tuple) else [keep] * 3)]
    for target in range(graph.num_nodes):
        everything, kept = entries(full, target), entries(cut, target)
        for step in range(4):
            of_step = {key: p for key, p in everything.items() if key[0] == step}
            chosen = {key: p for key, p in kept.items() if key[0] == step}
            assert len(chosen) == min(most[step], len(of_step))
            assert chosen == approx({key: of_step[key] for key in chosen})  # nothing is renormalised
            assert sorted(chosen.values()) == approx(sorted(of_step.values())[-len(chosen) :] if chosen else [])
            lost = sum(of_step.values()) - sum(chosen.values())
            assert cut.row(target).dropped_mass[step] == approx(lost, abs=1e-6)


def test_a_cap_that_nothing_exceeds_changes_nothing():
    graph = random_graph(200, 700, 2, seed=1)
    full, capped = (one_table(Transitions.build(graph, 2, max_candidates=keep)) for keep in (None, 10_000))
    assert full.probability.tobytes() == capped.probability.tobytes() and not capped.dropped_mass.any()


def test_deeper_steps_do_not_depend_on_the_cap():
    #   what is cut from step 1 is still walked through
    graph = random_graph(200, 2_000, 1, seed=2)
    full, cut = Transitions.build(graph, 2), Transitions.build(graph, 2, max_candidates=3)
    for target in range(20):
        best = sorted((p for (step, _, _), p in entries(full, target).items() if step == 2), reverse=True)[:3]
        assert sorted((p for (s, _, _), p in entries(cut, target).items() if s == 2), reverse=True) == approx(best)


@pytest.mark.parametrize("keep", [1, 2, 5, 64, 1_000])
def test_kept_and_dropped_mass_make_one(keep):
    graph = random_graph(500, 20_000, 2, seed=3)
    rows = one_table(Transitions.build(graph, 2, max_candidates=keep))
    level = np.repeat(np.arange(rows.num_rows * 3), np.diff(rows.indptr))
    total = np.bincount(level, rows.probability, minlength=rows.num_rows * 3).reshape(-1, 3) + rows.dropped_mass
    assert total[np.diff(rows.indptr).reshape(-1, 3) > 0] == approx(1, abs=1e-5)


def test_on_demand_rows_are_cut_alike():
    graph = random_graph(300, 3_000, 2, seed=4)
    table, demand = Transitions.build(graph, 2, max_candidates=9), OnDemand(graph, 2, max_candidates=9)
    assert all(entries(table, target) == entries(demand, target) for target in range(0, 300, 7))


def test_a_number_for_each_step_is_kept_with_the_table(tmp_path):
    graph = random_graph(300, 3_000, 2, seed=5)
    table = Transitions.build(graph, 2, max_candidates=[4, 9])
    table.save(tmp_path / "table")
    assert Transitions.open(tmp_path / "table").setting == table.setting and table.setting.max_candidates == (4, 9)
    assert opened_for(graph, tmp_path / "table", Walks(2, max_candidates=(4, 9))).num_entries == table.num_entries
    with pytest.raises(TransitionError, match=r"has max_candidates \(4, 9\), but \(9, 4\) is asked for"):
        opened_for(graph, tmp_path / "table", Walks(2, max_candidates=(9, 4)))
    counts = np.diff(one_table(table).indptr).reshape(-1, 3)
    assert counts.max(axis=0).tolist() == [1, 4, 9]
    assert estimate_cost(graph, 2, max_candidates=(4, 9)).entries.max(axis=0).tolist() == [1, 4, 9]


def test_numbers_for_other_steps_are_refused():
    with pytest.raises(
        TransitionError, match="max_candidates has 2 numbers for 3 steps; expected one for each, or one for all"
    ):
        OnDemand(random_graph(10, 20, 1, seed=0), 3, max_candidates=(4, 9))
    with pytest.raises(TransitionError, match="max_candidates is 0; expected a whole number from 1 on"):
        OnDemand(random_graph(10, 20, 1, seed=0), 2, max_candidates=(4, 0))


@settings(max_examples=60)
@given(
    graph=typed_graphs(max_nodes=8),
    most=st.integers(1, 5),
    kind=st.sampled_from(["walk", "count"]),
    device=st.sampled_from([None, "cpu"]),
    many=st.sampled_from([0, 1 << 20]),
)
def test_walks_do_not_go_on_through_nodes_of_many_edges(graph, most, kind, device, many):
    expected = dense_transitions(graph, 3, kind=kind, max_degree=most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MANY_NODES", many)
        table = Transitions.build(graph, 3, kind, max_degree=most, device=device)
    for target in range(graph.num_nodes):
        assert entries(table, target) == approx(dense_entries(expected, target), rel=1e-6)
        row = table.row(target)
        kept = np.bincount(row.step, row.probability, minlength=4)
        assert all(total == approx(1, abs=1e-6) or total == 0 for total in kept + row.dropped_mass)


def test_a_hub_is_not_walked_through_and_that_is_said():
    #   0 – 1 – 2 – 3, and 1 has 50 leaves: from 0 all goes on through 1, from 3 none does at first
    source, target = [0, 1, 2, *[1] * 50], [1, 2, 3, *range(4, 54)]
    graph = Graph.from_edges(source, target, undirected=True)
    row = OnDemand(graph, 3, max_degree=10).row(0)
    assert row.node.tolist() == [0, 1] and row.dropped_mass.tolist() == [0, 0, 1, 0]
    row = OnDemand(graph, 3, max_degree=10).row(3)
    assert row.node.tolist() == [3, 2, 1] and row.dropped_mass.tolist() == [0, 0, 0, 1]
    assert OnDemand(graph, 2, max_degree=10).row(1).node.size == 54  # its own edges are always walked
    assert estimate_cost(graph, 3, max_degree=10).num_walks < 0.1 * estimate_cost(graph, 3).num_walks
    table = Transitions.build(graph, 2, max_degree=10)
    assert table.setting.max_degree == 10 and table.setting != Transitions.build(graph, 2).setting


def test_rows_with_caps_are_walked_once_where_there_is_room_for_the_most_they_may_have(monkeypatch):
    graph, walked = random_graph(100, 800, 2, seed=0), []

    def counting(*given):
        walked.append("count")
        return count(*given)

    count = kernels.count_rows
    monkeypatch.setattr(kernels, "count_rows", counting)
    capped = one_table(Transitions.build(graph, 2, max_candidates=5))
    assert not walked and np.diff(capped.indptr).max() == 5
    monkeypatch.setattr(build, "fits", lambda num_bytes: False)
    again = one_table(Transitions.build(graph, 2, max_candidates=5))
    assert walked and all(np.array_equal(getattr(again, name), getattr(capped, name)) for name in ("indptr", "node", "path"))


def test_candidates_and_walks_are_limited_together():
    graph = random_graph(300, 6_000, 2, seed=6)
    rows = one_table(Transitions.build(graph, 2, max_candidates=7, max_degree=20))
    assert rows.dropped_mass.max() < 1 + 1e-6
    level = np.repeat(np.arange(rows.num_rows * 3), np.diff(rows.indptr))
    total = np.bincount(level, rows.probability, minlength=rows.num_rows * 3).reshape(-1, 3) + rows.dropped_mass
    assert total[np.diff(rows.indptr).reshape(-1, 3) > 0] == approx(1, abs=1e-5)


@pytest.mark.parametrize("most", [0, -1, 2.5])
def test_another_degree_is_refused(most):
    with pytest.raises(TransitionError, match=f"max_degree is {most}; expected a whole number from 1 on, or None"):
        OnDemand(random_graph(10, 20, 1, seed=0), 2, max_degree=most)
