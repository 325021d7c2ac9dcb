"""ELU and the dropout that follows it, on a CPU in one pass each way: only the result is kept for the backward pass."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from gatas.ops.dropout import keep
from gatas.ops.elu_dropout.contract import EluDropoutInputs, elu_dropout_torch, shapes
from gatas.ops.models import one_model
from gatas.ops.operator import operator
from gatas.ops.random import NoiseSource

__all__ = ["EluDropoutInputs", "elu_dropout", "elu_dropout_torch"]


def elu_dropout(
    values: Tensor,
    noise: NoiseSource,
    place: int,
    first: Tensor,
    second: Tensor,
    probability: float,
    rate: Tensor | None = None,
) -> Tensor:
    """ELU of (R, width) values, then dropout: row r is named by first[r], second[r]. A probability of 0 leaves ELU alone.

    A `rate` is a probability that models called as one have each for itself; then two passes do the work of the fused one.
    """
    if values.is_cuda or rate is not None:
        dropped = probability or rate is not None
        kept = keep(noise, place, first, second, values.shape[1], probability, rate) if dropped else None
        return F.elu(values) if kept is None else F.elu(values) * kept.to(values.dtype)
    out: Tensor = _elu_dropout(*one_model((values, noise.seed, noise.step, first, second)), place, probability)
    return out.squeeze(0)


def _setup(ctx: Any, inputs: EluDropoutInputs, output: Tensor) -> None:
    _, *names, ctx.place, ctx.probability = inputs
    ctx.save_for_backward(output, *names)


def _differentiate(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
    grad = _elu_dropout_backward(*ctx.saved_tensors, ctx.place, ctx.probability, grad_out)
    return grad, None, None, None, None, None, None


_elu_dropout = operator(
    "elu_dropout",
    EluDropoutInputs,
    "Tensor",
    __name__,
    "forward",
    devices="cpu",
    shapes=shapes,
    setup=_setup,
    backward=_differentiate,
)
_elu_dropout_backward = operator(
    "elu_dropout_backward",
    EluDropoutInputs,  # with what came out in place of the values
    "Tensor",
    __name__,
    "backward",
    devices="cpu",
    more={"grad_out": Tensor},
    shapes=shapes,
)
