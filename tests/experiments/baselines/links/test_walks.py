"""Walks and the pairs that skip-gram learns from."""

from itertools import pairwise

import torch

from gatas.experiments.baselines.links.edges import typed_edges
from gatas.experiments.baselines.links.gatne import drawn_neighbours
from gatas.experiments.baselines.links.walks import Layers, pairs_within, walk
from tests.experiments.baselines.links.toys import clubs
from tests.tasks.toys import likes

CPU = torch.device("cpu")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def edges_of(dataset):
    edges = typed_edges(dataset)
    return {*zip(edges.edge_type.tolist(), edges.source.tolist(), edges.target.tolist(), strict=True)}


def test_walks_follow_edges_of_their_type_only():
    dataset = likes()
    nodes, edge_type = walk(Layers.of(typed_edges(dataset), CPU), 3, 6, generator())
    steps = {
        (kind, one, other) for own, kind in zip(nodes.tolist(), edge_type.tolist(), strict=True) for one, other in pairwise(own)
    }
    assert steps == edges_of(dataset)  # all of them, by 72 walks of five steps


def test_walks_begin_equally_often_at_each_node_that_has_an_edge_of_the_type():
    dataset = clubs()
    layers = Layers.of(typed_edges(dataset), CPU)
    nodes, edge_type = walk(layers, 3, 2, generator())
    starts = torch.bincount(edge_type * layers.num_nodes + nodes[:, 0], minlength=len(layers.degree()))
    assert torch.equal(starts, 3 * (layers.degree() > 0))


def test_steps_are_uniform_over_neighbours():
    layers = Layers(torch.tensor([0, 4]), torch.tensor([5, 6, 7, 8]), 1, 1)
    drawn = layers.drawn(torch.zeros(4000, dtype=torch.int64), generator())
    counts = torch.bincount(drawn, minlength=9)[5:]
    assert ((counts - 1000).abs() < 4 * 27.4).all()  # four deviations of a binomial of 4,000 and 1/4


def test_pairs_are_those_within_the_window():
    nodes, edge_type = torch.tensor([[4, 5, 6, 7], [8, 9, 8, 9]]), torch.tensor([0, 3])
    found = sorted(map(tuple, pairs_within(nodes, edge_type, 2).T.tolist()))
    expected = [
        (walk[place], kind, walk[near])
        for walk, kind in (([4, 5, 6, 7], 0), ([8, 9, 8, 9], 3))
        for place in range(4)
        for near in range(4)
        if 0 < abs(place - near) <= 2
    ]
    assert found == sorted(expected)


def test_neighbours_are_of_their_type_and_a_node_without_has_itself():
    dataset = likes()
    known = edges_of(dataset)
    layers = Layers.of(typed_edges(dataset), CPU)
    lonely = Layers(torch.cat([layers.indptr, layers.indptr[-1:].repeat(12)]), layers.neighbour, 12, 3)
    found = drawn_neighbours(lonely, 4, generator())
    assert found.shape == (12, 3, 4)
    for node in range(12):
        assert found[node, 2].tolist() == [node] * 4
        assert all((kind, node, other) in known for kind in (0, 1) for other in found[node, kind].tolist())
