"""LayerNorm of some nodes' features with noise, on a GPU in one pass: rows are read where they are, and no mask is written.

The operator has no implementation for CPUs: Triton's runs there in its interpreter, for tests.
"""

from typing import Any

from torch import Tensor

from gatas.ops.models import one_model
from gatas.ops.normalise.contract import WIDEST, NormaliseInputs, backward_shapes, normalise_torch, shapes
from gatas.ops.operator import operator
from gatas.ops.random import NoiseSource

__all__ = ["WIDEST", "NormaliseInputs", "normalise", "normalise_torch"]


def normalise(
    features: Tensor,  # (N, F)
    nodes: Tensor,  # (V,)      rows of the features that are wanted, which name the noise too
    weight: Tensor,  # (F,)
    bias: Tensor,  # (F,)
    noise: NoiseSource,
    place: int,
    probability: float,
    epsilon: float,
    rate: Tensor | None = None,  # ()  float64: a probability that models called as one have each for itself
) -> Tensor:
    """(V, F): what LayerNorm and then `Dropout(probability, place)` give; features get no gradient."""
    own = one_model((nodes, weight, bias, noise.seed, noise.step))
    rates = None if rate is None else rate[None]
    normalised: Tensor = _normalise(features, *own, place, probability, epsilon, rates)
    return normalised.squeeze(0)


def _setup(ctx: Any, inputs: NormaliseInputs, output: Tensor) -> None:
    *tensors, ctx.place, ctx.probability, ctx.epsilon, rate = inputs
    ctx.save_for_backward(*tensors, rate)


def _differentiate(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, rate = ctx.saved_tensors
    settings = (ctx.place, ctx.probability, ctx.epsilon, rate)
    of_weight, of_bias = _normalise_backward(*tensors, *settings, grad_out).unbind(1)
    return None, None, of_weight, of_bias, None, None, None, None, None, None


_normalise = operator(
    "normalise",
    NormaliseInputs,
    "Tensor",
    __name__,
    "forward",
    devices="triton",
    shapes=shapes,
    setup=_setup,
    backward=_differentiate,
    shared=(0,),
)
_normalise_backward = operator(
    "normalise_backward",
    NormaliseInputs,
    "Tensor",
    __name__,
    "backward",
    devices="triton",
    more={"grad_out": Tensor},
    shapes=backward_shapes,
    shared=(0,),
)
