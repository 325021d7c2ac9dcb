import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatas.errors import TransitionError
from gatas.graph import Graph
from gatas.sampling import NeighbourSampler
from gatas.transitions import OnDemand, Transitions
from tests.transitions.conftest import typed_graphs
from tests.transitions.test_properties import random_graph


@pytest.fixture(scope="module")
def graph():
    return random_graph(400, 3_000, 2, seed=21, inverse=True)


@pytest.fixture(scope="module")
def table(graph):
    return Transitions.build(graph, 2)


def pairs(neighbourhood, b):
    mask = neighbourhood.mask[b]
    return list(zip(neighbourhood.node[b][mask].tolist(), neighbourhood.path[b][mask].tolist(), strict=True))


def same(left, right):
    return all(torch.equal(getattr(left, name), getattr(right, name)) for name in ("node", "path", "log_probability", "mask"))


def test_depth_starts_with_the_papers_decay(table):
    sampler = NeighbourSampler(table, 5)
    assert sampler.depth_logits.tolist() == pytest.approx([0, -1 / np.log(3), -2 / np.log(3)])
    assert sampler.depth_coefficients.sum().item() == pytest.approx(1)


def test_log_probability_is_the_mixture_of_the_steps(table):
    sampler = NeighbourSampler(table, 10_000)
    drawn, row = sampler(torch.tensor([17])), table.row(17)
    expected = sampler.depth_coefficients.detach().numpy()[row.step] * row.probability
    assert drawn.log_probability[0][drawn.mask[0]].exp().tolist() == pytest.approx(expected.tolist(), rel=1e-5)


@given(graph=typed_graphs(max_nodes=8), sample_size=st.integers(1, 12), draw=st.integers(0, 5))
def test_no_pair_is_drawn_twice_and_a_large_sample_is_everything(graph, sample_size, draw):
    source = OnDemand(graph, 2)
    drawn = NeighbourSampler(source, sample_size)(torch.arange(graph.num_nodes), draw=draw)
    for target in range(graph.num_nodes):
        row = source.row(target)
        candidates = set(zip(row.node.tolist(), row.path.tolist(), strict=True))
        chosen = pairs(drawn, target)
        assert len(set(chosen)) == len(chosen) == min(sample_size, len(candidates))
        assert set(chosen) <= candidates


def exact_inclusion(probabilities, size):
    """P(each is among `size` draws without replacement), over every order of drawing."""
    inclusion = np.zeros(len(probabilities))
    for order in itertools.permutations(range(len(probabilities)), size):
        chance, left = 1.0, 1.0
        for k in order:
            chance, left = chance * probabilities[k] / left, left - probabilities[k]
        inclusion[list(order)] += chance
    return inclusion


def test_inclusion_frequencies_are_those_of_draws_without_replacement():
    star = Graph.from_edges([0, 0, 0, 0, 1], [1, 2, 3, 4, 5], weight=[5, 2, 1, 1, 1])
    table, num_draws = Transitions.build(star, 2), 20_000
    sampler = NeighbourSampler(table, 3)
    row = table.row(0)
    weights = sampler.depth_coefficients.detach().double().numpy()[row.step] * row.probability
    expected = exact_inclusion(weights / weights.sum(), 3)
    counts = np.zeros(6)
    for draw in range(num_draws):
        counts[sampler(torch.tensor([0]), draw=draw).node[0].numpy()] += 1
    deviation = np.sqrt(expected * (1 - expected) / num_draws)
    by_node = np.zeros(6)
    by_node[row.node] = expected
    assert (np.abs(counts / num_draws - by_node) < 5 * np.maximum(deviation.max(), 1e-12)).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_draw_depends_on_the_target_alone(table, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        sampler, targets = NeighbourSampler(table, 20, seed=3), torch.randperm(400, generator=torch.manual_seed(0))
        whole = sampler(targets, draw=7)
        for chunk in (1, 7, 64):
            parts = [sampler(part, draw=7) for part in targets.split(chunk)]
            assert torch.equal(torch.cat([part.node for part in parts]), whole.node)
            assert torch.equal(torch.cat([part.path for part in parts]), whole.path)
        shuffled = sampler(targets.flip(0), draw=7)
        assert torch.equal(shuffled.node.flip(0), whole.node)
    finally:
        torch.set_num_threads(before)


def test_stored_sharded_and_on_demand_tables_give_the_same_draw(graph, table, tmp_path):
    table.save(tmp_path / "t", shard_entries=5_000)
    targets = torch.tensor([3, 250, 3, 99])
    draws = [
        NeighbourSampler(source, 30, seed=1)(targets)
        for source in (table, Transitions.open(tmp_path / "t"), OnDemand(graph, 2))
    ]
    assert same(draws[0], draws[1]) and same(draws[0], draws[2])


def test_draws_advance_and_seeds_differ(table):
    sampler, targets = NeighbourSampler(table, 20), torch.arange(50)
    first, second = sampler(targets), sampler(targets)
    assert not torch.equal(first.node, second.node)
    assert same(sampler(targets, draw=0), first) and same(sampler(targets, draw=1), second)
    assert int(sampler.draws) == 2
    assert not torch.equal(NeighbourSampler(table, 20, seed=1)(targets).node, first.node)


def test_top_takes_the_likeliest_and_all_takes_everything(table):
    sampler, targets = NeighbourSampler(table, 20), torch.arange(30)
    everything, top = sampler(targets, mode="all"), sampler(targets, mode="top")
    for b in range(30):
        assert len(pairs(everything, b)) == len(table.row(b).node)
        best = everything.log_probability[b].sort(descending=True).values[:20]
        assert top.log_probability[b].sort(descending=True).values.tolist() == pytest.approx(best.tolist())
    assert same(sampler(targets, mode="top", draw=4), top)


def test_a_node_without_edges_keeps_its_self_loop():
    drawn = NeighbourSampler(Transitions.build(Graph.from_edges([0], [1], num_nodes=3), 2), 4)(torch.tensor([2, 0]))
    assert pairs(drawn, 0) == [(2, 0)] and drawn.mask.sum(-1).tolist() == [1, 2]
    assert drawn.log_probability[0, 1:].tolist() == [-np.inf] * 3


def test_the_gradient_of_ln_p_reaches_the_depth(table):
    sampler = NeighbourSampler(table, 15).double()
    targets = torch.tensor([5, 9])

    def log_probability(logits):
        drawn = torch.func.functional_call(sampler, {"depth_logits": logits}, (targets,), {"mode": "all"})
        return drawn.log_probability[drawn.mask]

    logits = sampler.depth_logits.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(log_probability, logits)


def test_coverage_is_the_share_of_the_mass(table):
    sampler, targets = NeighbourSampler(table, 20), torch.arange(40)
    everything = sampler(targets, mode="all")
    assert sampler.coverage(targets, everything).tolist() == pytest.approx([1.0] * 40, rel=1e-5)
    part, top = sampler(targets), sampler(targets, mode="top")
    assert (sampler.coverage(targets, part) <= sampler.coverage(targets, top) + 1e-6).all()
    assert (sampler.coverage(targets, part) < 1).any()


def test_no_targets_give_an_empty_neighbourhood(table):
    assert NeighbourSampler(table, 20)(torch.empty(0, dtype=torch.int64)).node.shape == (0, 20)


@pytest.mark.parametrize("targets", [torch.tensor([-1]), torch.tensor([400]), torch.tensor([1.0]), torch.tensor([[1]]), ["a"]])
def test_targets_that_are_no_nodes_are_refused(table, targets):
    with pytest.raises(TransitionError, match="target"):
        NeighbourSampler(table, 5)(targets)


@pytest.mark.parametrize(("size", "mode"), [(0, "sample"), (2.5, "sample"), (5, "best")])
def test_settings_that_make_no_sense_are_refused(table, size, mode):
    with pytest.raises(TransitionError, match="expected"):
        NeighbourSampler(table, size, mode=mode)


def test_a_uniform_sampler_draws_every_candidate_alike_often():
    star = Graph.from_edges([0, 0, 0, 0], [1, 2, 3, 4], weight=[50, 2, 1, 1])
    sampler, num_draws = NeighbourSampler(Transitions.build(star, 1), 2, uniform=True), 10_000
    counts = np.zeros(5)
    for draw in range(num_draws):
        drawn = sampler(torch.tensor([0]), draw=draw)
        counts[drawn.node[0].numpy()] += 1
    assert drawn.log_probability.tolist() == [[0.0, 0.0]]
    assert (np.abs(counts / num_draws - 2 / 5) < 5 * (0.4 * 0.6 / num_draws) ** 0.5).all()


def test_a_late_decay_starts_with_the_neighbours():
    table = Transitions.build(Graph.from_edges([0, 1], [1, 2], undirected=True), 2)
    logits = NeighbourSampler(table, 3, late_decay=True).depth_logits
    assert logits.tolist() == pytest.approx([0.0, 0.0, -1 / np.log(3)])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("mode", ["sample", "top"])
def test_a_depth_that_is_no_number_draws_what_there_is_and_gives_itself_away(value, mode):
    graph = random_graph(60, 400, 2, seed=3)
    sampler = NeighbourSampler(Transitions.build(graph, 2), 5)
    with torch.no_grad():
        sampler.depth_logits.fill_(value)
    drawn = sampler(torch.arange(60), mode=mode)
    assert ((drawn.node >= 0) & (drawn.node < 60)).all()
    assert drawn.log_probability[drawn.mask].isnan().all()


def test_a_uniform_sampler_covers_the_share_of_candidates_that_it_draws(table):
    sampler = NeighbourSampler(table, 3, uniform=True)
    targets = torch.arange(40)
    counts = torch.tensor([len(table.row(target).node) for target in range(40)])
    assert sampler.num_candidates(targets).tolist() == counts.tolist()
    torch.testing.assert_close(sampler.coverage(targets, sampler(targets)), counts.clamp_max(3) / counts)
