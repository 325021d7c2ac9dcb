"""ln P = ln qₜ + ln T⁽ᵗ⁾ of what was drawn, with the gradient of ln q.

In torch the gradient of `log_depth[step]` scatters B·S numbers into C + 1 places, which is slow; here it is C + 1 sums, made
in the same order alone and among other models.
"""

from typing import Any

from torch import Tensor

from gatas.ops.mixture.contract import MixtureInputs, StepInputs, log_mixture_torch, shapes, sum_shapes
from gatas.ops.operator import operator

__all__ = ["MixtureInputs", "StepInputs", "log_mixture", "log_mixture_torch", "sum_by_step"]


def log_mixture(log_depth: Tensor, step: Tensor, log_step: Tensor, mask: Tensor) -> Tensor:
    """(M, B, S) ln P of M models, from (M, C + 1) ln q and (M, B, S) steps, ln T and mask; -inf where masked."""
    result: Tensor = _log_mixture(log_depth, step, log_step, mask)
    return result


def sum_by_step(values: Tensor, step: Tensor, mask: Tensor, num_levels: int) -> Tensor:
    """(M, C + 1) the sum of each step's values, over the slots in use."""
    sums: Tensor = _sum_by_step(values, step, mask, num_levels)
    return sums


def _setup(ctx: Any, inputs: MixtureInputs, output: Tensor) -> None:
    ctx.save_for_backward(inputs.step, inputs.mask)
    ctx.num_levels = inputs.log_depth.shape[1]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    step, mask = ctx.saved_tensors
    return sum_by_step(grad, step, mask, ctx.num_levels), None, None, None


_log_mixture = operator(
    "log_mixture", MixtureInputs, "Tensor", __name__, "log_mixture", shapes=shapes, setup=_setup, backward=_differentiate
)
_sum_by_step = operator("sum_by_step", StepInputs, "Tensor", __name__, "sum_by_step", shapes=sum_shapes)
