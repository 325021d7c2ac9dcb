import pytest
import torch

from gatas.ops.noisy_linear import noisy_linear, noisy_linear_torch
from gatas.ops.random import NoiseSource

NOISE = NoiseSource(torch.tensor(17), torch.tensor(3))


def problem(nodes=30, rows=20, width=7, size=5, *, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((nodes, width), (width,), (width,), (size, width), (size,))
    features, *parameters = (torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)
    chosen = torch.randperm(nodes, generator=generator)[:rows]
    return features, chosen, *(parameter.requires_grad_() for parameter in parameters)


def outcome(function, arguments, probability):
    out = function(*arguments, NOISE, 2, probability, 1e-5)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), arguments[2:])]


@pytest.mark.parametrize("width", [1, 2, 7, 50])
@pytest.mark.parametrize("probability", [0.3, 0.9])
def test_a_noisy_layer_is_the_oracle(width, probability):
    arguments = problem(width=width)
    exact = outcome(noisy_linear_torch, arguments, probability)
    for ours, theirs in zip(outcome(noisy_linear, arguments, probability), exact, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-10)  # keep is in single precision there
    for ours, theirs in zip(outcome(noisy_linear, problem(width=width, dtype=torch.float32), probability), exact, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)


def test_threads_do_not_change_a_bit():
    arguments, before = problem(300, 200, 150, 50, dtype=torch.float32), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = outcome(noisy_linear, arguments, 0.8)
        torch.set_num_threads(3)
        together = outcome(noisy_linear, arguments, 0.8)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(left, right) for left, right in zip(alone, together, strict=True))


def test_the_operator_is_well_behaved_for_torch():
    features, *own = problem()
    batched = [tensor.detach()[None].requires_grad_(tensor.requires_grad) for tensor in (*own, *NOISE)]
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")  # not whole outputs: columns beyond the count
    torch.library.opcheck(torch.ops.gatas.noisy_linear.default, (features, *batched, 2, 0.5, 1e-5), test_utils=checks)
