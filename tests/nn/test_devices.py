"""The same draws, the same dropout and the same representations on a GPU."""

import pytest
import torch

from gatas.nn import Encoder
from gatas.ops.dropout import keep, keep_torch
from gatas.ops.random import NoiseSource
from gatas.sampling import NeighbourSampler
from gatas.transitions import Transitions
from tests.transitions.test_properties import no_gpu, random_graph

NOISE = NoiseSource(torch.tensor(7), torch.tensor(1))


@pytest.mark.parametrize("width", [1, 2, 7, 50])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=no_gpu)])
def test_dropout_keeps_the_same_elements_everywhere(width, device):
    first, second = torch.arange(300), torch.arange(300) * 7919 % 2**31
    expected = keep_torch(NOISE, 4, first, second, width, 0.3)
    noise = NoiseSource(NOISE.seed.to(device), NOISE.step.to(device))
    assert torch.equal(keep(noise, 4, first.to(device), second.to(device), width, 0.3).cpu(), expected)


@pytest.mark.parametrize("drop", [0.1, 0.5, 0.9])
def test_dropout_drops_its_share_and_scales_the_rest(drop):
    rows = torch.arange(50_000)
    kept = keep(NOISE, 3, rows, torch.zeros_like(rows), 1, drop)
    assert (kept > 0).double().mean() == pytest.approx(1 - drop, abs=5 * (drop * (1 - drop) / 50_000) ** 0.5)
    assert kept.max() == pytest.approx(1 / (1 - drop))


@no_gpu
def test_a_gpu_draws_and_represents_what_a_cpu_does():
    graph = random_graph(300, 2_000, 2, seed=51, inverse=True)
    transitions, features, targets = Transitions.build(graph, 2), torch.randn(300, 12), torch.arange(64)
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        sampler = NeighbourSampler(transitions, 20, seed=5).to(device)
        encoder = Encoder(12, graph.num_relations, num_steps=2, input_noise=0.2, dropout=0.5, seed=5).to(device).train()
        encoder.neighbours.precision = "ieee"
        drawn = sampler(targets.to(device))
        out = encoder(targets.to(device), drawn, features.to(device))
        out.square().mean().backward()
        assert sampler.depth_logits.grad is not None
        results.append((drawn.node.cpu(), drawn.path.cpu(), out.cpu(), sampler.depth_logits.grad.cpu()))
    (node, path, out, gradient), (other_node, other_path, other_out, other_gradient) = results
    assert torch.equal(node, other_node) and torch.equal(path, other_path)
    torch.testing.assert_close(other_out, out, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(other_gradient, gradient, rtol=1e-3, atol=1e-6)
