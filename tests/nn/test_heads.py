import pytest
import torch

from gatas.nn import ABLATIONS, Encoder, NodeHead, PairHead
from gatas.sampling import NeighbourSampler
from gatas.transitions import Transitions
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
    assert learns == (set() if ablation.uniform else {"depth_logits"})
    assert (encoder.inputs.embeddings is None) == (name in ("base", "without_embeddings"))
    assert hasattr(encoder, "paths") == (name not in ("base", "without_paths"))
    assert int(transitions.setting.num_steps) == (1 if name == "base" else 3)
