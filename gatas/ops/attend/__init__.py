"""Attention over a sample of (neighbour, path) pairs (eqs. 3, 4 before σ), by numba on a CPU and by Triton on a GPU."""

from typing import Any

import torch
from torch import Tensor

from gatas.ops.attend.contract import AttendInputs, attend_torch, backward_shapes, shapes
from gatas.ops.models import each_model, one_model
from gatas.ops.operator import operator

__all__ = ["AttendInputs", "attend", "attend_torch"]


def attend(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None = None,
) -> Tensor:
    """(B, K, F''): Σ α V with α = softmax(w · ELU(u + G) + ln P) over each target's sample; zeros for an empty one.

    Args:
        target_terms: (B, K, F'), u: what g's hidden layer has of the target, bias included.
        keys: (U, K, F'), G: what it has of the pair.
        score: (K, F'), w: g's output layer.
        values: (U, K, F''), V: d of the pair.
        index: (B, S), which pair each slot holds.
        log_probability: (B, S), ln P.
        mask: (B, S), slots in use.
        keep: (B, S, K), attention dropout: 0, or 1 / (1 - p). None: nothing is dropped.

    All of them may have a leading dimension of M independent models, which the result then has too.
    """
    given = AttendInputs(target_terms, keys, score, values, index, log_probability, mask, keep)
    if target_terms.dim() == 4:
        return _attended(given)
    return _attended(AttendInputs(*one_model(given))).squeeze(0)


def _attended(given: AttendInputs) -> Tensor:
    if not given.target_terms.is_cuda:
        return _attend(*given)[0]  # type: ignore[no-any-return]
    if given.target_terms.dtype == torch.float64:
        return each_model(attend_torch, given)  # type: ignore[no-any-return]
    *floats, index, log_probability, mask, keep = given
    return _attend(*(tensor.float() for tensor in floats), index, log_probability.float(), mask, keep)[0]  # type: ignore


def _setup(ctx: Any, inputs: AttendInputs, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad_out: Tensor | None, _grad_state: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad_out is None:
        return (None,) * 8
    terms, keys, score, values, log = _attend_backward(*ctx.saved_tensors, grad_out)
    return terms, keys, score, values, None, log, None, None


_attend = operator(
    "attend", AttendInputs, "(Tensor, Tensor)", __name__, "forward", shapes=shapes, setup=_setup, backward=_differentiate
)
_attend_backward = operator(
    "attend_backward",
    AttendInputs,
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    __name__,
    "backward",
    more={"out": Tensor, "state": Tensor, "grad_out": Tensor},
    shapes=backward_shapes,
)
