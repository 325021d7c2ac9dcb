import numpy as np
import pytest
import torch

from gatas.graph import Graph
from gatas.nn import ABLATIONS, Encoder, NodeHead, PairHead
from gatas.sampling import Neighbourhood, NeighbourSampler
from gatas.transitions import OnDemand, Transitions
from tests.transitions.test_properties import random_graph


def test_the_node_head_has_the_hidden_layers_asked_for():
    assert NodeHead(12, 3)(torch.randn(5, 12)).shape == (5, 3)
    assert sum(p.numel() for p in NodeHead(12, 3).parameters()) == 12 * 3 + 3
    assert [layer.out_features for layer in NodeHead(12, 3, (256, 256)).hidden] == [256, 256]


def test_the_pair_head_tells_source_from_target():
    head, left, right = PairHead(12, 4), torch.randn(5, 12), torch.randn(5, 12)
    assert head(left, right).shape == (5, 4)
    assert not torch.allclose(head(left, right), head(right, left))


@pytest.mark.parametrize("name", ABLATIONS)
def test_each_ablation_takes_away_what_it_says_and_trains(name):
    graph, ablation = random_graph(40, 150, 2, seed=41, inverse=True), ABLATIONS[name]
    transitions = Transitions.build(graph, **ablation.transitions(3))
    sampler = NeighbourSampler(transitions, 10, **ablation.sampler())
    encoder = Encoder(6, graph.num_relations, num_nodes=40, **ablation.encoder(node_embedding_size=4, num_steps=3))
    targets = torch.arange(40)
    drawn = sampler(targets)
    encoder(targets, drawn, torch.randn(40, 6)).square().sum().backward()
    learns = {parameter for parameter, value in sampler.named_parameters() if value.grad is not None}
    assert learns == (set() if ablation.uniform or ablation.without_prior else {"depth_logits"})
    assert (encoder.inputs.embeddings is None) == (name in ("base", "without_embeddings"))
    assert hasattr(encoder, "paths") == (name not in ("base", "without_paths"))
    assert int(transitions.setting.num_steps) == (1 if name == "base" else 3)


def graph_with_hub():
    #   0 ─ 1 ─ {3, 4, 5}    from 0, two steps:  1/2·1/4 each of three, 1/2·1/2 of 6; scaled: 1/5, 1/5, 1/5, 2/5
    #   └─ 2 ─ 6
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (1, 5), (2, 6)]
    return Graph.from_edges(*np.array(edges).T, num_nodes=7, undirected=True)


def test_without_prior_draws_by_p_as_ever_and_attends_without_it():
    transitions = Transitions.build(graph_with_hub(), 2)
    whole, other = (NeighbourSampler(transitions, 4, **ABLATIONS[name].sampler()) for name in ("none", "without_prior"))
    targets = torch.arange(7)
    for draw in range(20):
        drawn, same = whole(targets, draw=draw), other(targets, draw=draw)
        assert torch.equal(drawn.node, same.node) and torch.equal(drawn.log_probability, same.log_probability)
    torch.manual_seed(0)
    plain, without = (Encoder(3, 2, num_steps=2, **ABLATIONS[name].encoder()) for name in ("none", "without_prior"))
    without.load_state_dict(plain.state_dict())
    features = torch.randn(7, 3)
    zeros = torch.where(drawn.mask, 0.0, -torch.inf)
    flat = Neighbourhood(drawn.node, drawn.path, zeros, drawn.mask)
    torch.testing.assert_close(without(targets, drawn, features), plain(targets, flat, features))
    assert not torch.allclose(without(targets, drawn, features), plain(targets, drawn, features))


@pytest.mark.parametrize("on_demand", [False, True])
def test_uniform_steps_draw_alike_within_a_step_and_steps_by_depth(on_demand):
    graph = graph_with_hub()
    source = OnDemand(graph, num_steps=2) if on_demand else Transitions.build(graph, 2)
    sampler = NeighbourSampler(source, 1, **ABLATIONS["uniform_steps"].sampler())
    every = sampler(torch.tensor([0]), mode="all")
    chances = dict(zip(every.node[0].tolist(), every.log_probability[0].exp().tolist(), strict=True))
    q = sampler.depth_coefficients.tolist()
    expected = {0: q[0], 1: q[1] / 2, 2: q[1] / 2, 3: q[2] / 4, 4: q[2] / 4, 5: q[2] / 4, 6: q[2] / 4}
    assert chances == pytest.approx(expected, rel=1e-5)
    #   2,000 draws of one: five deviations of the likeliest are 5 · √(0.25 / 2,000) = 0.056
    drawn = [sampler(torch.tensor([0]), draw=draw).node.item() for draw in range(2000)]
    assert all(abs(drawn.count(node) / 2000 - chance) < 0.056 for node, chance in expected.items())
    encoder = Encoder(3, 2, num_steps=2, **ABLATIONS["uniform_steps"].encoder())
    assert not encoder.neighbours.prior
    by_walks = NeighbourSampler(source, 1)(torch.tensor([0]), mode="all")  # the table itself is left as it was
    assert by_walks.log_probability[by_walks.node == 6].exp().item() == pytest.approx(q[2] * 2 / 5)
