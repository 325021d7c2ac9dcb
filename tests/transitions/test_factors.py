import numpy as np
import pytest

from gatas.graph import Graph
from gatas.transitions import factors
from gatas.transitions.factors import structure_factors
from tests.transitions.test_properties import random_graph


def dense_factors(adjacency, size, num_steps):
    """NetMF with dense matrices: rows of U √Σ, of length 1."""
    degree = adjacency.sum(1)
    step = adjacency / degree[:, None]
    powers = sum(np.linalg.matrix_power(step, c) for c in range(1, num_steps + 1))
    matrix = np.log(np.maximum(1, adjacency.sum() / num_steps * powers / degree[None]))
    left, values, _ = np.linalg.svd(matrix)
    rows = left[:, :size] * np.sqrt(values[:size])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def two_camps(num_nodes=40, seed=3):
    """Edges within two camps and a few between; every node has some. Weights are whole numbers."""
    generator = np.random.default_rng(seed)
    likely = np.where(np.add.outer(np.arange(num_nodes), np.arange(num_nodes)) % 2 == 0, 0.3, 0.03)
    adjacency = np.triu(generator.random((num_nodes, num_nodes)) < likely, 1)
    adjacency[np.arange(num_nodes - 2), np.arange(2, num_nodes)] = True
    return np.nonzero(adjacency), generator.integers(1, 5, int(adjacency.sum()))


def symmetric(ends, values, num_nodes=40):
    adjacency = np.zeros((num_nodes, num_nodes))
    adjacency[ends] = values
    return adjacency + adjacency.T


def products(rows):
    """What remains of factors whatever their signs."""
    return rows @ rows.T


@pytest.mark.parametrize("num_steps", [1, 2, 3])
def test_factors_are_those_of_dense_matrices(num_steps):
    ends, _ = two_camps()
    ours = structure_factors(Graph.from_edges(*ends, undirected=True), 30, num_steps)  # so many that the SVD is exact
    expected = dense_factors(symmetric(ends, 1), 30, num_steps)
    assert ours.dtype == np.float32 and ours.shape == (40, 30)
    np.testing.assert_allclose(np.abs(ours), np.abs(expected), atol=2e-3)
    np.testing.assert_allclose(products(ours), products(expected), atol=2e-3)


def test_weights_of_edges_count():
    ends, weight = two_camps()
    ours = structure_factors(Graph.from_edges(*ends, weight=weight, undirected=True), 30, 2)
    np.testing.assert_allclose(products(ours), products(dense_factors(symmetric(ends, weight), 30, 2)), atol=2e-3)
    assert not np.allclose(products(ours), products(dense_factors(symmetric(ends, 1), 30, 2)), atol=0.05)


def test_types_and_directions_of_edges_do_not_matter():
    (source, target), _ = two_camps()
    kind = np.arange(len(source)) % 3
    undirected = structure_factors(Graph.from_edges(source, target, undirected=True), 5)
    for inverse in (True, False):
        assert np.array_equal(structure_factors(Graph.from_edges(source, target, kind, inverse=inverse), 5), undirected)
    twice = [np.concatenate([part, part]) for part in (source, target, kind)]
    twice[2][len(kind) :] += 1  # a second edge, of another type
    assert np.array_equal(structure_factors(Graph.from_edges(*twice), 5), undirected)


def test_a_graph_has_one_answer():
    graph = random_graph(300, 900, 2, seed=4)
    first = structure_factors(graph, 16)
    np.random.seed(1)  # noqa: NPY002 - nor does what others draw matter
    assert np.array_equal(first, structure_factors(graph, 16))


def test_nodes_without_edges_have_zeros_and_all_others_length_one():
    ends, _ = two_camps()
    rows = structure_factors(Graph.from_edges(*ends, num_nodes=45, undirected=True), 30)
    assert not rows[40:].any()
    np.testing.assert_allclose(np.linalg.norm(rows[:40], axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_a_graph_without_edges_has_zeros(num_nodes):
    none = np.empty(0, np.int64)
    rows = structure_factors(Graph.from_edges(none, none, num_nodes=num_nodes), 4)
    assert rows.shape == (num_nodes, 4) and not rows.any()


def test_factors_that_a_small_graph_lacks_are_zeros():
    #   0 ─ 1   2 ─ 3        four nodes have at most four factors
    rows = structure_factors(Graph.from_edges([0, 2], [1, 3], num_nodes=5, undirected=True), 8)
    assert rows.shape == (5, 8) and not rows[:, 4:].any() and not rows[4].any()
    np.testing.assert_allclose(np.linalg.norm(rows[:4], axis=1), 1, rtol=1e-5)


def test_camps_are_told_apart():
    ends, _ = two_camps()
    near = products(structure_factors(Graph.from_edges(*ends, undirected=True), 2))
    alike = np.add.outer(np.arange(40), np.arange(40)) % 2 == 0
    assert near[alike].mean() > near[~alike].mean() + 0.3


def test_a_hub_takes_fewer_steps():
    leaves = np.arange(1, 20_001)
    star = Graph.from_edges(np.zeros_like(leaves), leaves, undirected=True)  # two steps would give 4 · 10⁸ entries
    assert np.array_equal(structure_factors(star, 2), structure_factors(star, 2, num_steps=1))
    assert np.isfinite(structure_factors(star, 2)).all()


def test_steps_are_as_many_as_entries_allow(monkeypatch):
    #   a ring of 100: 200, 400, 800 walks of one, two and three steps
    ring = Graph.from_edges(np.arange(100), (np.arange(100) + 1) % 100, undirected=True)
    by_steps = {steps: structure_factors(ring, 4, steps) for steps in (1, 2, 3)}
    for most, steps in ((100, 1), (599, 1), (600, 2), (1399, 2), (1400, 3)):
        for name in ("MOST_ENTRIES", "MOST_WALKS"):
            with monkeypatch.context() as patch:
                patch.setattr(factors, name, most)
                assert np.array_equal(structure_factors(ring, 4), by_steps[steps]), (name, most)
