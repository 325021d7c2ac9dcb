import pytest
import torch

from gatas.ops.elu_dropout import elu_dropout, elu_dropout_torch
from gatas.ops.random import NoiseSource

NOISE = NoiseSource(torch.tensor(17), torch.tensor(3))


def problem(rows=40, width=7, *, dtype=torch.float64):
    values = torch.randn(rows, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    values[::5] = 0.0  # where ELU′ is one-sided, and what is kept looks like what is not
    return values.requires_grad_(), NOISE, 4, torch.arange(rows) * 31, torch.arange(rows) * 7919 % 2**31


def outcome(function, arguments, probability):
    out = function(*arguments, probability)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), arguments[0])]


@pytest.mark.parametrize("width", [1, 2, 7, 50])
@pytest.mark.parametrize("probability", [0.0, 0.3, 0.9])
def test_elu_with_dropout_is_the_oracle(width, probability):
    arguments = problem(width=width)
    pairs = zip(outcome(elu_dropout, arguments, probability), outcome(elu_dropout_torch, arguments, probability), strict=True)
    for ours, exact in pairs:
        torch.testing.assert_close(ours, exact, rtol=1e-6, atol=1e-12)  # keep is in single precision there
    single = problem(width=width, dtype=torch.float32)
    for ours, exact in zip(
        outcome(elu_dropout, single, probability), outcome(elu_dropout_torch, arguments, probability), strict=True
    ):
        torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-6)


def test_threads_do_not_change_a_bit():
    arguments, before = problem(900, 50, dtype=torch.float32), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = outcome(elu_dropout, arguments, 0.5)
        torch.set_num_threads(3)
        together = outcome(elu_dropout, arguments, 0.5)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(left, right) for left, right in zip(alone, together, strict=True))


def test_the_operator_is_well_behaved_for_torch():
    values, noise, place, *names = problem()
    batched = (tensor.detach()[None] for tensor in (values, *noise, *names))
    torch.library.opcheck(torch.ops.gatas.elu_dropout.default, (next(batched).requires_grad_(), *batched, place, 0.5))
