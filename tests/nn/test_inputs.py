"""What the encoder takes as features, and what it refuses."""

import pytest
import torch

from gatas.errors import GatasError
from gatas.nn import Encoder
from gatas.ops.random import NoiseSource
from gatas.sampling import NeighbourSampler
from gatas.transitions import Transitions
from tests.transitions.test_properties import random_graph

TARGETS, NOISE = torch.arange(20), NoiseSource(torch.tensor(0), torch.tensor(0))


@pytest.fixture(scope="module")
def drawn():
    with torch.no_grad():
        return NeighbourSampler(Transitions.build(random_graph(60, 200, 2, seed=31, inverse=True), 2), 8)(TARGETS)


def made(**settings):
    torch.manual_seed(0)
    return Encoder(40, 5, num_steps=2, **settings)


def features(seed=0):
    return torch.randn(60, 40, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("noise", [0.0, 0.3, 0.9])  # by torch, by torch with dropout, by the fused kernel
@pytest.mark.parametrize("size", [1e15, 1e19, 1e20, 1e30, 1e37])
def test_features_of_any_size_are_normalised_as_in_double_precision(drawn, noise, size):
    given = features()
    given[:30] *= size
    given[5] = given[5].abs()
    encoder = made(input_noise=noise, dropout=0.2).train()
    out = encoder(TARGETS, drawn, given)
    out.square().mean().backward()
    single = [out.detach(), *(parameter.grad for parameter in encoder.parameters() if parameter.grad is not None)]
    exact = made(input_noise=noise, dropout=0.2).double().train()
    out = exact(TARGETS, drawn, given.double())
    out.square().mean().backward()
    double = [out.detach(), *(parameter.grad for parameter in exact.parameters() if parameter.grad is not None)]
    for ours, theirs in zip(single, double, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-5)


def test_one_large_node_does_not_change_the_others(drawn):
    encoder, given = made().eval(), features()
    alone = encoder.inputs(torch.arange(10), given, NOISE)
    given[50] = 1e30 * given[50]
    together = encoder.inputs(torch.cat([torch.arange(10), torch.tensor([50])]), given, NOISE)
    assert torch.equal(together[:10], alone) and together.isfinite().all()


@pytest.mark.parametrize(("size", "kind"), [(1e30, torch.float32), (1e200, torch.float64)])
def test_large_features_that_are_learned_have_finite_gradients(drawn, size, kind):
    given = (features().to(kind) * size).requires_grad_()
    made().to(kind).eval()(TARGETS, drawn, given).square().mean().backward()
    assert given.grad is not None and given.grad.isfinite().all() and (given.grad != 0).any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.9])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_features_that_are_not_finite_are_refused(drawn, value, noise, sparse):
    given = features()
    given[int(TARGETS[3]), 7] = value
    encoder = made(input_noise=noise).train()
    with pytest.raises(GatasError, match="feature 7 of node 3 is"):
        for _ in range(40):  # noise hides most columns
            encoder(TARGETS, drawn, given.to_sparse() if sparse else given)


def test_features_too_large_for_a_layer_without_norm_are_refused(drawn):
    given = features()
    given[3, 7] = 1e30
    assert made(layer_norm=False).eval()(TARGETS, drawn, given).isfinite().all()
    given[3] = 3e38
    with pytest.raises(GatasError, match=r"feature 0 of node 3 is 3e\+38"):
        made(layer_norm=False).eval()(TARGETS, drawn, given)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_on_a_cpu_is_refused_with_what_to_do(drawn, kind):
    name = str(kind).removeprefix("torch.")
    with pytest.raises(GatasError, match=f"features are {name} on a CPU.*Call .float"):
        made()(TARGETS, drawn, features().to(kind))
    with pytest.raises(GatasError, match=f"the encoder's weights are {name} on a CPU.*Call .float"):
        made().to(kind)(TARGETS, drawn, features())
    with pytest.raises(GatasError, match=f"an operator was given {name} on a CPU.*autocast"), torch.autocast("cpu", kind):
        made()(TARGETS, drawn, features())
