"""Graphs of at most eight nodes, computed by hand."""

import pytest
from pytest import approx

from gatas.graph import Graph
from gatas.transitions import OnDemand, Transitions
from gatas.transitions.paths import path_of


def probabilities(transitions, target, step):
    """{(node, relations…): probability}; the relations only where there is more than one edge type."""
    row = transitions.row(target)
    here = row.step == step
    return dict(zip(row.node[here].tolist(), row.probability[here].tolist(), strict=True))


def by_path(transitions, target, step):
    row = transitions.row(target)
    here = row.step == step
    keys = zip(row.node[here].tolist(), row.path[here].tolist(), strict=True)
    return dict(zip(keys, row.probability[here].tolist(), strict=True))


def undirected(edges, **settings):
    sources, targets = zip(*edges, strict=True)
    return Graph.from_edges(sources, targets, undirected=True, **settings)


TREE = [(0, 1), (0, 2), (1, 3), (2, 4), (2, 5)]


def test_two_step_probabilities_multiply_transitions_rather_than_count_walks():
    #   0 ─ 1 ─ 3        from 0:  1/2·1/2  1/2·1/3  1/2·1/3
    #   └─ 2 ─ {4, 5}    scaled:  3/7      2/7      2/7        (walk counts would give thirds)
    transitions = Transitions.build(undirected(TREE), num_steps=2)
    assert probabilities(transitions, 0, 2) == approx({3: 3 / 7, 4: 2 / 7, 5: 2 / 7})


def test_counting_walks_gives_thirds_on_the_same_tree():
    transitions = Transitions.build(undirected(TREE), num_steps=2, kind="count")
    assert probabilities(transitions, 0, 2) == approx({3: 1 / 3, 4: 1 / 3, 5: 1 / 3})


def test_counting_counts_every_shortest_walk():
    #   0 → {1, 2} → 3, and 2 → 4: two walks to 3, one to 4
    transitions = Transitions.build(Graph.from_edges([0, 0, 1, 2, 2], [1, 2, 3, 3, 4]), 2, kind="count")
    assert probabilities(transitions, 0, 2) == approx({3: 2 / 3, 4: 1 / 3})
    assert probabilities(Transitions.build(Graph.from_edges([0, 0, 1, 2, 2], [1, 2, 3, 3, 4]), 2), 0, 2) == approx(
        {3: 3 / 4, 4: 1 / 4}  # 1/2·1 + 1/2·1/2 and 1/2·1/2
    )


def test_step_zero_is_the_self_loop_over_path_zero():
    row = Transitions.build(undirected(TREE), num_steps=2).row(4)
    assert (row.node[0], row.path[0], row.step[0], row.probability[0]) == (4, 0, 0, 1.0)
    assert row.step.tolist() == sorted(row.step.tolist())


def test_a_directed_cycle_reaches_each_node_once_and_never_returns():
    #   0 → 1 → 2 → 0
    transitions = Transitions.build(Graph.from_edges([0, 1, 2], [1, 2, 0]), num_steps=4)
    assert [probabilities(transitions, 0, step) for step in range(5)] == [{0: 1.0}, {1: 1.0}, {2: 1.0}, {}, {}]


def test_two_types_between_the_same_pair_split_the_probability():
    #   0 ═ 1 ─ 2 by types a and b, then by a
    graph = Graph.from_edges([0, 0, 1], [1, 1, 2], [0, 1, 0])
    transitions = Transitions.build(graph, num_steps=2)
    a, b = 1, 2
    assert by_path(transitions, 0, 1) == approx({(1, path_of([a], 3)): 0.5, (1, path_of([b], 3)): 0.5})
    assert by_path(transitions, 0, 2) == approx({(2, path_of([a, a], 3)): 0.5, (2, path_of([b, a], 3)): 0.5})


def test_a_hub_shares_its_mass_among_the_others():
    #   leaves 1 … 5 around 0: from 1, step 2 is the four other leaves
    star = undirected([(0, leaf) for leaf in range(1, 6)])
    assert probabilities(Transitions.build(star, 2), 1, 2) == approx(dict.fromkeys(range(2, 6), 1 / 4))


def test_weights_steer_the_walk():
    #   0 → 1 (3) → 3, 0 → 2 (1) → 3 and 4 (equal)
    graph = Graph.from_edges([0, 0, 1, 2, 2], [1, 2, 3, 3, 4], weight=[3, 1, 7, 2, 2])
    transitions = Transitions.build(graph, 2)
    assert probabilities(transitions, 0, 1) == approx({1: 3 / 4, 2: 1 / 4})
    assert probabilities(transitions, 0, 2) == approx({3: 3 / 4 + 1 / 8, 4: 1 / 8})


def test_self_edges_are_never_walked_and_count_in_no_degree():
    plain = Transitions.build(undirected(TREE), 2)
    with_loops = Transitions.build(undirected([*TREE, (0, 0), (2, 2)]), 2)
    assert probabilities(with_loops, 0, 2) == approx(probabilities(plain, 0, 2))
    assert 0 not in probabilities(with_loops, 0, 1)


def test_a_component_out_of_reach_and_an_isolated_node_keep_to_themselves():
    #   0 ─ 1   2 ─ 3   4
    transitions = Transitions.build(undirected([(0, 1), (2, 3)], num_nodes=5), num_steps=3)
    assert probabilities(transitions, 0, 1) == {1: 1.0}
    assert len(transitions.row(0).node) == 2
    assert transitions.row(4).node.tolist() == [4]


def test_an_empty_level_stays_empty_so_that_a_row_may_sum_to_less():
    row = Transitions.build(Graph.from_edges([0], [1]), num_steps=3).row(0)
    assert row.probability.sum() == 2  # steps 0 and 1; steps 2 and 3 have nothing


def test_a_graph_without_edges_has_self_loops_only():
    transitions = Transitions.build(Graph.from_edges([], [], num_nodes=3), num_steps=2)
    assert [transitions.row(node).node.tolist() for node in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize("source", [Transitions.build, OnDemand])
def test_the_inverse_type_is_walked_backwards(source):
    #   0 ─a→ 1 ←a─ 2: from 0, node 2 over a → a⁻¹
    graph = Graph.from_edges([0, 2], [1, 1], inverse=True)
    assert by_path(source(graph, 2), 0, 2) == {(2, path_of([1, 2], 3)): 1.0}


@pytest.mark.parametrize("device", [None, "cpu"])
def test_mass_that_underflows_is_neither_nan_nor_an_error(device):
    #   0 ─heavy→ 1 → 2 (ends there), and 0 ─light→ 3 ─light→ 5 …, beside heavy dead ends: 1e-77 of the mass at each step
    light, heavy = 1.2e-38, 3e38
    edges = [(k, k + 1, light) for k in range(6)] + [(k, 10 + k, heavy) for k in range(6)]
    source, target, weight = zip(*edges, strict=True)
    row = Transitions.build(Graph.from_edges(source, target, weight=weight), 6, device=device).row(0)
    assert (row.probability > 0).all() and probabilities_sum(row) == approx([1.0] * 7)


def probabilities_sum(row):
    return [row.probability[row.step == step].sum() for step in range(7)]
