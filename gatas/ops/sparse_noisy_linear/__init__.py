"""LayerNorm, feature noise and a dense layer over sparse features at once, on a CPU: rows are never dense in memory.

LayerNorm takes zeros to other numbers, and noise hides those too, so that each column of a row has its bits. One pass draws
them, normalises and multiplies. The backward pass draws them again. V nodes,
F features, H outputs; gradients are those of `noisy_linear`.
"""

from typing import Any

from torch import Tensor

from gatas.ops.models import one_model
from gatas.ops.noisy_linear import layer_gradients
from gatas.ops.operator import operator
from gatas.ops.random import NoiseSource
from gatas.ops.sparse_noisy_linear.contract import (
    SparseColumnInputs,
    SparseNoisyLinearInputs,
    backward_shapes,
    shapes,
    sparse_noisy_linear_torch,
)

__all__ = ["SparseNoisyLinearInputs", "sparse_noisy_linear", "sparse_noisy_linear_torch"]


def sparse_noisy_linear(
    features: Tensor,  # (N, F)     in CSR layout
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
    parts = (features.crow_indices(), features.col_indices(), features.values())
    out: Tensor = _sparse_noisy_linear(*parts, *own, place, probability, epsilon)[0]
    return out.squeeze(0)


def _setup(ctx: Any, inputs: SparseNoisyLinearInputs, output: tuple[Tensor, Tensor]) -> None:
    ctx.place, ctx.probability = inputs.place, inputs.probability
    layers = (inputs.norm_weight, inputs.norm_bias, inputs.weight)
    ctx.save_for_backward(*inputs[:4], output[1], inputs.seed, inputs.step, *layers)


def _differentiate(ctx: Any, grad_out: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    *given, norm_weight, norm_bias, weight = ctx.saved_tensors
    both = _sparse_noisy_linear_backward(*given, grad_out, weight.shape[-1], ctx.place, ctx.probability)
    of_layers = layer_gradients(both / (1 - ctx.probability), norm_weight, norm_bias, weight)
    return None, None, None, None, *of_layers, grad_out.sum(1), None, None, None, None, None


_sparse_noisy_linear = operator(
    "sparse_noisy_linear",
    SparseNoisyLinearInputs,
    "(Tensor, Tensor)",
    __name__,
    "forward",
    devices="cpu",
    shapes=shapes,
    setup=_setup,
    backward=_differentiate,
    shared=(0, 1, 2),
)
_sparse_noisy_linear_backward = operator(
    "sparse_noisy_linear_backward",
    SparseColumnInputs,
    "Tensor",
    __name__,
    "backward",
    devices="cpu",
    shapes=backward_shapes,
    shared=(0, 1, 2),
)
