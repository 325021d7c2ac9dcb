"""Random typed multigraphs against the equations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from gatas.graph import Graph
from gatas.transitions import OnDemand, Transitions, build
from tests.transitions.conftest import typed_graphs
from tests.transitions.oracles import (
    dense_entries,
    dense_transitions,
    entries,
    one_table,
    same_bytes,
    scipy_transitions,
)

quick = settings(max_examples=60)


@quick
@given(graph=typed_graphs(), num_steps=st.integers(1, 3), kind=st.sampled_from(["walk", "count"]))
def test_rows_are_the_papers_equations(graph, num_steps, kind):
    expected = dense_transitions(graph, num_steps, kind=kind)
    transitions = Transitions.build(graph, num_steps, kind)
    for target in range(graph.num_nodes):
        assert entries(transitions, target) == approx(dense_entries(expected, target), rel=1e-6)


@quick
@given(graph=typed_graphs(max_nodes=20), num_steps=st.integers(1, 3), cap=st.none() | st.integers(1, 5))
def test_rows_of_few_and_of_many_nodes_are_made_alike(graph, num_steps, cap):
    few = one_table(Transitions.build(graph, num_steps, max_candidates=cap))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MANY_NODES", 0)
        assert same_bytes(one_table(Transitions.build(graph, num_steps, max_candidates=cap)), few)


def test_rows_are_alike_where_nodes_fill_many_words():
    chance = np.random.default_rng(0)
    source, target, kind = chance.integers(0, 300_000, 5000), chance.zipf(1.3, 5000) % 300_000, chance.integers(0, 3, 5000)
    graph, targets = Graph.from_edges(source, target, kind, num_nodes=300_000, inverse=True), np.unique(target)[:300]
    few = one_table(Transitions.build(graph, 3, targets=targets))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MANY_NODES", 0)
        assert same_bytes(one_table(Transitions.build(graph, 3, targets=targets)), few)
    assert few.node.size > 10_000


no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU that torch can use")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=no_gpu)])
@quick
@given(graph=typed_graphs(), num_steps=st.integers(1, 3), kind=st.sampled_from(["walk", "count"]))
def test_torch_gives_the_same_rows(device, graph, num_steps, kind):
    rows, ours = (one_table(Transitions.build(graph, num_steps, kind, device=where)) for where in (device, None))
    for name in ("indptr", "node", "path"):
        assert getattr(rows, name).tolist() == getattr(ours, name).tolist()
    assert rows.path.dtype == ours.path.dtype
    assert rows.probability == approx(ours.probability, rel=1e-6)


@quick
@given(graph=typed_graphs(max_nodes=8, max_types=3), num_steps=st.integers(1, 4))
def test_each_level_sums_to_nothing_or_one_and_a_node_has_one_step(graph, num_steps):
    for target in range(graph.num_nodes):
        row = OnDemand(graph, num_steps).row(target)
        sums = np.bincount(row.step, row.probability, minlength=num_steps + 1)
        assert all(total == 0 or total == approx(1, abs=1e-6) for total in sums)
        steps: dict[int, int] = {}
        for node, step in zip(row.node.tolist(), row.step.tolist(), strict=True):
            assert steps.setdefault(node, step) == step


@quick
@given(graph=typed_graphs(), data=st.data())
def test_relabelling_nodes_permutes_the_result(graph, data):
    order = np.array(data.draw(st.permutations(range(graph.num_nodes))))
    renamed = Graph.from_edges(
        order[graph.source],
        order[graph.neighbour],
        graph.edge_type,
        num_nodes=graph.num_nodes,
        num_edge_types=graph.num_edge_types,
        weight=graph.weight,
    )
    here, there = OnDemand(graph, 3), OnDemand(renamed, 3)
    for target in range(graph.num_nodes):
        expected = {(step, int(order[node]), path): p for (step, node, path), p in entries(here, target).items()}
        assert entries(there, int(order[target])) == approx(expected, rel=1e-6)


@quick
@given(graph=typed_graphs(), other=typed_graphs())
def test_an_unreachable_component_changes_nothing(graph, other):
    shift = graph.num_nodes
    num_types = max(graph.num_edge_types, other.num_edge_types)
    weights = [np.ones(part.num_edges) if part.weight is None else part.weight for part in (graph, other)]

    def beside(*parts):
        return Graph.from_edges(
            np.concatenate([part.source + k * shift for k, part in enumerate(parts)]),
            np.concatenate([part.neighbour + k * shift for k, part in enumerate(parts)]),
            np.concatenate([part.edge_type for part in parts]),
            num_nodes=sum(part.num_nodes for part in parts),
            num_edge_types=num_types,
            weight=np.concatenate(weights[: len(parts)]),
        )

    alone, together = OnDemand(beside(graph), 3), OnDemand(beside(graph, other), 3)
    for target in range(graph.num_nodes):
        assert entries(together, target) == entries(alone, target)


def random_graph(num_nodes, num_edges, num_types, *, seed, **settings):
    generator = np.random.default_rng(seed)
    popular = (num_nodes * generator.random(num_edges) ** 2).astype(int)  # some nodes get many edges
    return Graph.from_edges(
        generator.integers(num_nodes, size=num_edges),
        popular,
        generator.integers(num_types, size=num_edges),
        num_nodes=num_nodes,
        num_edge_types=num_types,
        **settings,
    )


@pytest.mark.parametrize(
    ("graph", "num_steps"),
    [
        (random_graph(300, 900, 3, seed=1, inverse=True), 2),
        (random_graph(500, 1_500, 1, seed=2, undirected=True), 3),
        (random_graph(200, 800, 70, seed=3), 2),  # more types than a word of the bit set has bits
        (random_graph(40_000, 60_000, 2, seed=7), 2),
        (random_graph(5_000, 9_000, 2, seed=4, weight=np.random.default_rng(4).random(9_000) + 0.1), 3),
    ],
)
def test_larger_graphs_agree_with_scipy_products(graph, num_steps):
    levels = scipy_transitions(graph, num_steps)
    transitions = Transitions.build(graph, num_steps)
    assert transitions.num_entries == sum(matrix.nnz for level in levels for matrix in level.values())
    rows = one_table(transitions)
    row = np.repeat(np.tile(np.arange(graph.num_nodes), (num_steps + 1, 1)).T.ravel(), np.diff(rows.indptr))
    for step, level in enumerate(levels):
        for path, matrix in level.items():
            here = (rows.step == step) & (rows.path == path)
            assert rows.probability[here] == approx(matrix[row[here], rows.node[here]], rel=1e-5)
            assert here.sum() == matrix.nnz


@pytest.mark.parametrize("max_candidates", [None, 7])
def test_one_two_and_three_threads_give_identical_bytes(max_candidates):
    graph = random_graph(3_000, 20_000, 3, seed=5, inverse=True)
    tables = [
        one_table(Transitions.build(graph, 2, max_candidates=max_candidates, num_threads=threads)) for threads in (1, 2, 3)
    ]
    assert same_bytes(tables[0], tables[1]) and same_bytes(tables[0], tables[2])


def test_rows_ascend_by_path_and_node():
    graph = random_graph(400, 2_000, 3, seed=6, inverse=True)
    for target in (0, 1, 17, 399):
        row = OnDemand(graph, 3).row(target)
        keys = list(zip(row.path.tolist(), row.node.tolist(), strict=True))
        assert keys == sorted(keys)
