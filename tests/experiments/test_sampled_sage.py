"""The sampled peer: what it draws are neighbours, each once, all alike likely."""

import numpy as np
import pytest
import torch

from benchmarks.sampled_sage import SampledSAGE, sample_hops, sample_neighbours
from gatas import Graph
from tests.tasks.toys import camps

STAR = Graph.from_edges([0] * 7, [1, 2, 3, 4, 5, 6, 7], num_nodes=9, undirected=True)  # node 8 is alone


def drawn_from(node, fan_out, number):
    drawn, counts = sample_neighbours(STAR, torch.tensor([node]), fan_out, key=(number, 0))
    return drawn[0, : counts[0]].tolist()


@pytest.mark.parametrize(("node", "fan_out", "count"), [(0, 3, 3), (0, 7, 7), (0, 20, 7), (4, 3, 1), (8, 3, 0)])
def test_draws_are_distinct_neighbours_up_to_the_fan_out(node, fan_out, count):
    neighbours = set(STAR.neighbour[STAR.indptr[node] : STAR.indptr[node + 1]].tolist())
    for number in range(50):
        drawn = drawn_from(node, fan_out, number)
        assert len(drawn) == len(set(drawn)) == count
        assert set(drawn) <= neighbours


def test_every_set_of_neighbours_is_alike_likely():
    draws = 35_000
    counts = np.zeros(128, np.int64)
    for number in range(draws):
        counts[sum(1 << (node - 1) for node in drawn_from(0, 3, number))] += 1
    seen = counts[counts > 0]
    assert len(seen) == 35  # all sets of three out of seven
    expected = draws / 35
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected)).all()


def test_threads_and_batches_do_not_change_what_a_node_draws():
    generator = np.random.default_rng(0)
    graph = Graph.from_edges(generator.integers(3000, size=60_000), generator.integers(3000, size=60_000), undirected=True)
    nodes = torch.arange(3000)
    together, counts = sample_neighbours(graph, nodes, 10, key=(1, 2))
    assert counts.sum() > 1 << 14  # enough for a second thread
    apart, own = sample_neighbours(graph, nodes[1234:1235], 10, key=(1, 2))
    assert torch.equal(together[1234, : counts[1234]], apart[0, : own[0]])


def test_hops_lead_from_the_targets_outwards_along_edges():
    dataset = camps()
    edges = set(zip(dataset.graph.source.tolist(), dataset.graph.neighbour.tolist(), strict=True))
    targets = torch.tensor([3, 0, 5])
    hops = sample_hops(dataset.graph, targets, (3, 2), seed=0, draw=1)
    seen_from = targets
    for hop in hops:
        assert torch.equal(hop.nodes[hop.kept], seen_from)
        assert len(hop.nodes.unique()) == len(hop.nodes)
        pairs = zip(seen_from[hop.edges[1]].tolist(), hop.nodes[hop.edges[0]].tolist(), strict=True)
        assert set(pairs) <= edges
        seen_from = hop.nodes


def test_with_all_neighbours_it_is_graphsage_on_the_whole_graph():
    dataset = camps()
    model = SampledSAGE(dataset, hidden_size=8, fan_outs=(1000, 1000), dropout=0.5).eval()
    edges = torch.from_numpy(np.stack([dataset.graph.neighbour, dataset.graph.source]).astype(np.int64))
    first, second = model.layers
    whole = second(torch.relu(first(model.features, edges)), edges)
    targets = torch.tensor([4, 1, 9])
    torch.testing.assert_close(model(targets), whole[targets])


def test_every_call_draws_anew_and_gradients_arrive():
    model = SampledSAGE(camps(), hidden_size=8, fan_outs=(1, 1), dropout=0.0)
    targets = torch.arange(10)
    first, second = model(targets), model(targets)
    assert not torch.equal(first, second)
    first.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
