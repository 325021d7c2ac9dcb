"""LayerNorm, feature noise and a dense layer at once, on a CPU: what the noise takes away is never computed.

With the paper's noise of 0.9 that is nine tenths of the work. V nodes, F features, H outputs. Features are given and get no
gradient. With A = Σ keep · g and B = Σ keep · normal · g over rows, all gradients follow: those of LayerNorm's weight and
bias are W · B and W · A column by column, and that of W is their mix.
"""

from typing import Any

from torch import Tensor

from gatas.ops.models import one_model
from gatas.ops.noisy_linear.contract import (
    WIDEST,
    ColumnInputs,
    NoisyLinearInputs,
    backward_shapes,
    noisy_linear_torch,
    shapes,
)
from gatas.ops.operator import operator
from gatas.ops.random import NoiseSource

__all__ = ["WIDEST", "NoisyLinearInputs", "layer_gradients", "noisy_linear", "noisy_linear_torch"]


def noisy_linear(
    features: Tensor,  # (N, F)
    nodes: Tensor,  # (V,)        rows of the features that are wanted, which name the noise too
    norm_weight: Tensor,  # (F,)
    norm_bias: Tensor,  # (F,)
    weight: Tensor,  # (H, F)
    bias: Tensor,  # (H,)
    noise: NoiseSource,
    place: int,
    probability: float,
    epsilon: float,
) -> Tensor:
    """(V, H) linear(dropout(layer_norm(features[nodes])))."""
    own = one_model((nodes, norm_weight, norm_bias, weight, bias, *noise))
    out: Tensor = _noisy_linear(features, *own, place, probability, epsilon)[0]
    return out.squeeze(0)


def _setup(ctx: Any, inputs: NoisyLinearInputs, output: tuple[Tensor, ...]) -> None:
    ctx.probability = inputs.probability
    layers = (inputs.norm_weight, inputs.norm_bias, inputs.weight)
    ctx.save_for_backward(inputs.features, inputs.nodes, *output[1:], *layers)


def _differentiate(ctx: Any, grad_out: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    *given, norm_weight, norm_bias, weight = ctx.saved_tensors
    both = _noisy_linear_backward(*given, grad_out) / (1 - ctx.probability)
    of_layers = layer_gradients(both, norm_weight, norm_bias, weight)
    return None, None, *of_layers, grad_out.sum(1), None, None, None, None, None


def layer_gradients(both: Tensor, norm_weight: Tensor, norm_bias: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of LayerNorm's weight and bias and of W, from A and B side by side, (M, F, 2·H)."""
    A, B = both.mT.chunk(2, dim=1)  # (M, H, F) each
    of_weight = norm_weight[:, None] * B + norm_bias[:, None] * A
    return (weight * B).sum(1), (weight * A).sum(1), of_weight


_noisy_linear = operator(
    "noisy_linear",
    NoisyLinearInputs,
    "(Tensor, Tensor, Tensor, Tensor)",
    __name__,
    "forward",
    devices="cpu",
    shapes=shapes,
    setup=_setup,
    backward=_differentiate,
    shared=(0,),
)
_noisy_linear_backward = operator(
    "noisy_linear_backward", ColumnInputs, "Tensor", __name__, "backward", devices="cpu", shapes=backward_shapes, shared=(0,)
)
