"""Path evidence: scores of all candidates by the typed paths that lead to them, by numba on a CPU and by Triton on a GPU."""

from typing import Any

import torch
from torch import Tensor

from gatas.ops.evidence.contract import EvidenceInputs, backward_shapes, in_pieces, path_evidence_torch, shapes
from gatas.ops.operator import operator

__all__ = ["EvidenceInputs", "path_evidence", "path_evidence_torch"]

TENSORS = range(12)


def path_evidence(given: EvidenceInputs) -> Tensor:
    """(B, C): for each query the Σ over typed paths to a candidate of w₀ + w₁ s(ln P forth) + w₂ s(ln P back).

    s(x) = (x + 6) / 4. Candidates that no path with weights leads to, and slots without a node, have `unreached` of the
    link type. Several models are so many times the link types: their weights one after another along T.
    """
    if not given.weights.is_cuda:
        return _evidence(*given)[0]  # type: ignore[no-any-return]
    if given.weights.dtype == torch.float64:
        return in_pieces(path_evidence_torch, given, ("link_type", "query", "row"))
    return _evidence(given.weights.float(), given.unreached.float(), *given[2:])[0]  # type: ignore[no-any-return]


def _setup(ctx: Any, inputs: EvidenceInputs, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:12], output[1])
    ctx.sizes = inputs[12:]
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad_out: Tensor | None, _grad_reached: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad_out is None:
        return (None,) * len(EvidenceInputs._fields)
    *tensors, reached = ctx.saved_tensors
    gradients = _evidence_backward(*tensors, *ctx.sizes, reached, grad_out)
    return (*gradients, *(None,) * (len(EvidenceInputs._fields) - 2))


_evidence = operator(
    "path_evidence",
    EvidenceInputs,
    "(Tensor, Tensor)",
    __name__,
    "forward",
    shapes=shapes,
    setup=_setup,
    backward=_differentiate,
    shared=TENSORS,
)
_evidence_backward = operator(
    "path_evidence_backward",
    EvidenceInputs,
    "(Tensor, Tensor)",
    __name__,
    "backward",
    more={"reached": Tensor, "grad_out": Tensor},
    shapes=backward_shapes,
    shared=TENSORS,
)
