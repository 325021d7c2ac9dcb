"""Path evidence of single pairs, found by binary search on a CPU, and by looking through rows on a GPU."""

from typing import Any

import torch
from torch import Tensor

from gatas.ops.evidence.contract import in_pieces
from gatas.ops.operator import operator
from gatas.ops.pair_evidence.contract import PairInputs, backward_shapes, pair_evidence_torch, shapes

__all__ = ["PairInputs", "pair_entries", "pair_evidence", "pair_evidence_torch"]

TENSORS = range(12)


def pair_evidence(given: PairInputs) -> Tensor:
    """(B,): the Σ over typed paths from a query to the other node of w₀ + w₁ s(ln P forth) + w₂ s(ln P back).

    s(x) = (x + 6) / 4. A pair that no path with weights connects has `unreached` of its link type. It is the score that
    `path_evidence` gives to the slot of the other node.
    """
    if not given.weights.is_cuda:
        return _evidence(*given)[0]  # type: ignore[no-any-return]
    if given.weights.dtype == torch.float64:
        return in_pieces(pair_evidence_torch, given, ("link_type", "query", "other", "row"))
    return _evidence(given.weights.float(), given.unreached.float(), *given[2:])[0]  # type: ignore[no-any-return]


def pair_entries(
    other: Tensor, row: Tensor, indptr: Tensor, node: Tensor, path: Tensor, probability: Tensor, num_levels: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The entries of pairs, on a CPU: which pair (int64), path id (int64) and probability; by pair and path.

    `other` and `row` are (B,): the node that is looked for, and the row that it is looked for in. Self-loops are left out.
    """
    from gatas.ops.pair_evidence import cpu

    return cpu.entries(other, row, indptr, node, path, probability, num_levels)


def _setup(ctx: Any, inputs: PairInputs, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:12], output[1])
    ctx.sizes = inputs[12:]
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad_out: Tensor | None, _grad_reached: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad_out is None:
        return (None,) * len(PairInputs._fields)
    *tensors, reached = ctx.saved_tensors
    gradients = _evidence_backward(*tensors, *ctx.sizes, reached, grad_out)
    return (*gradients, *(None,) * (len(PairInputs._fields) - 2))


_evidence = operator(
    "pair_evidence",
    PairInputs,
    "(Tensor, Tensor)",
    __name__,
    "forward",
    shapes=shapes,
    setup=_setup,
    backward=_differentiate,
    shared=TENSORS,
)
_evidence_backward = operator(
    "pair_evidence_backward",
    PairInputs,
    "(Tensor, Tensor)",
    __name__,
    "backward",
    more={"reached": Tensor, "grad_out": Tensor},
    shapes=backward_shapes,
    shared=TENSORS,
)
