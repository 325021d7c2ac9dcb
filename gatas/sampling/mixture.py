"""`gatas::log_mixture`: ln P = ln qₜ + ln T⁽ᵗ⁾ of what was drawn, with the gradient of ln q.

M models, B targets each, S sampled pairs for each target, C + 1 levels. In torch the gradient of `log_depth[step]` scatters
B·S numbers into C + 1 places, which is slow; here it is C + 1 sums, made in the same order alone and among other models.
"""

from typing import Any

import torch
from torch import Tensor

from gatas.sampling import kernels
from gatas.sampling.models import fold_models
from gatas.sampling.threads import run_rows


@torch.library.custom_op("gatas::log_mixture", mutates_args=(), device_types="cpu")
def log_mixture(
    log_depth: Tensor,  # (M, C + 1)      ln q
    step: Tensor,  # (M, B, S) int8       t
    log_step: Tensor,  # (M, B, S)        ln T⁽ᵗ⁾
    mask: Tensor,  # (M, B, S)            slots in use; the others get -inf
) -> Tensor:
    """(M, B, S) of ln q's type."""
    chosen = log_depth.gather(1, step.long().flatten(1)).view(step.shape)
    return torch.where(mask, chosen + log_step.to(log_depth.dtype), -torch.inf)


@log_mixture.register_kernel("cuda")
def _(log_depth: Tensor, step: Tensor, log_step: Tensor, mask: Tensor) -> Tensor:
    from gatas.sampling.triton_mixture import log_mixture_triton

    return log_mixture_triton(log_depth, step, log_step, mask)


@log_mixture.register_fake
def _(log_depth: Tensor, step: Tensor, log_step: Tensor, mask: Tensor) -> Tensor:
    return log_depth.new_empty(step.shape)


@torch.library.custom_op("gatas::sum_by_step", mutates_args=(), device_types="cpu")
def sum_by_step(
    values: Tensor,  # (M, B, S)
    step: Tensor,
    mask: Tensor,
    num_levels: int,
) -> Tensor:
    """(M, C + 1) the sum of each step's values, over the slots in use."""
    sums = torch.zeros(len(values), num_levels, dtype=torch.float64)
    inputs = [tensor.contiguous().numpy() for tensor in (values.double(), step, mask)]

    def work(first: int, last: int) -> None:
        kernels.sum_by_step(*(column[first:last] for column in (*inputs, sums.numpy())))

    run_rows(work, len(values), values[:1].numel())
    return sums.to(values.dtype)


@sum_by_step.register_kernel("cuda")
def _(values: Tensor, step: Tensor, mask: Tensor, num_levels: int) -> Tensor:
    from gatas.sampling.triton_mixture import sum_by_step_triton

    return sum_by_step_triton(values, step, mask, num_levels)


@sum_by_step.register_fake
def _(values: Tensor, step: Tensor, mask: Tensor, num_levels: int) -> Tensor:
    return values.new_empty(len(values), num_levels)


def _setup(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    log_depth, step, _, mask = inputs
    ctx.save_for_backward(step, mask)
    ctx.num_levels = log_depth.shape[1]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    return sum_by_step(grad, *ctx.saved_tensors, ctx.num_levels), None, None, None


log_mixture.register_autograd(_differentiate, setup_context=_setup)
fold_models(log_mixture)
fold_models(sum_by_step)
