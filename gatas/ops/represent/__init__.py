"""A neighbour along its path: n = Σ_c β ELU(z of the node + z of the step) (eq. 1); a (U, C, F') tensor is never written."""

from typing import Any

import torch
from torch import Tensor

from gatas.ops.models import one_model
from gatas.ops.operator import operator
from gatas.ops.represent.contract import RepresentInputs, backward_shapes, represent_torch, shapes

__all__ = ["RepresentInputs", "represent", "represent_torch"]

MOST_PATHS = 128
"""The GPU kernel sums gradients for so many paths at once; more are rare, and go by torch."""


def represent(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    """(U, F') from (V, F'), (E, C, F') and (E, C): row `node` of the first over row `path` of the others.

    A step whose weight is zero counts as one that does not exist, and may get no gradient.
    """
    exact = of_input.dtype == torch.float64 or torch.are_deterministic_algorithms_enabled()  # the kernel adds in any order
    if of_input.is_cuda and (len(of_step) > MOST_PATHS or exact):
        return represent_torch(RepresentInputs(of_input, of_step, path_weights, node, path))
    kind = torch.float32 if of_input.is_cuda else of_input.dtype
    given = (of_input.to(kind), of_step.to(kind), path_weights.to(kind), node, path)
    neighbours: Tensor = _represent(*one_model(given))
    return neighbours.squeeze(0)


def _setup(ctx: Any, inputs: RepresentInputs, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
    of_input, of_step = _represent_backward(*ctx.saved_tensors, grad_out.contiguous())
    return of_input, of_step[..., :-1], of_step[..., -1], None, None


_represent = operator(
    "represent", RepresentInputs, "Tensor", __name__, "forward", shapes=shapes, setup=_setup, backward=_differentiate
)
_represent_backward = operator(
    "represent_backward",
    RepresentInputs,
    "(Tensor, Tensor)",
    __name__,
    "backward",
    more={"grad_out": Tensor},
    shapes=backward_shapes,
)
