"""ln P and the gradient of the depth: by numba, by Triton, and by torch's own indexing."""

import pytest
import torch

from gatas.ops.mixture import MixtureInputs, StepInputs, cuda, log_mixture, log_mixture_torch, sum_by_step

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(num_models=3, batch_size=5, sample_size=7, num_levels=4, dtype=torch.float64):
    """ln q, and steps, ln T and mask of a made-up sample."""
    generator, shape = torch.Generator().manual_seed(1), (num_models, batch_size, sample_size)
    log_depth = torch.log_softmax(torch.randn(num_models, num_levels, generator=generator, dtype=dtype), dim=-1)
    step = torch.randint(num_levels, shape, generator=generator).to(torch.int8)
    mask = torch.rand(shape, generator=generator) < 0.8
    return log_depth, step, torch.rand(shape, generator=generator).log(), mask


def indexed(*sample):
    return log_mixture_torch(MixtureInputs(*sample))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ln_p_adds_the_depth_of_each_step(dtype):
    sample = drawn(dtype=dtype)
    assert torch.equal(log_mixture(*sample), indexed(*sample))
    assert torch.equal(cuda.log_mixture(MixtureInputs(*(column.to(DEVICE) for column in sample))).cpu(), indexed(*sample))


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 50, 90), (2, 0, 4), (0, 2, 4)])
def test_triton_adds_up_what_numba_adds_up(shape):
    _, step, values, mask = drawn(*shape)
    expected = sum_by_step(values, step, mask, 4)
    assert torch.equal(expected, sum_by_step(values.where(mask, torch.nan), step, mask, 4))
    sums = cuda.sum_by_step(StepInputs(values.to(DEVICE), step.to(DEVICE), mask.to(DEVICE), 4))
    torch.testing.assert_close(sums.cpu(), expected)


def test_the_gradient_is_exact():
    log_depth, *rest = drawn()
    mask = rest[-1]
    assert torch.autograd.gradcheck(lambda depth: log_mixture(depth, *rest)[mask], log_depth.requires_grad_())


def test_vmapped_models_get_their_own_sums_and_gradients():
    log_depth, step, log_step, mask = drawn()
    log_depth.requires_grad_()
    weights = torch.linspace(-1, 1, mask.numel(), dtype=torch.float64).view(mask.shape)
    together = torch.func.vmap(lambda *own: log_mixture(*(column[None] for column in own))[0])(log_depth, step, log_step, mask)
    assert torch.equal(together, indexed(log_depth, step, log_step, mask))
    gradient, expected = (
        torch.autograd.grad((values * weights)[mask].sum(), log_depth)[0]
        for values in (together, indexed(log_depth, step, log_step, mask))
    )
    torch.testing.assert_close(gradient, expected)


def test_the_operators_keep_their_promises_to_torch():
    log_depth, step, log_step, mask = drawn()
    torch.library.opcheck(torch.ops.gatas.log_mixture.default, (log_depth.requires_grad_(), step, log_step, mask))
    torch.library.opcheck(torch.ops.gatas.sum_by_step.default, (log_step, step, mask, 4))
