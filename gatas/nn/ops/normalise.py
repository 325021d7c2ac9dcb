"""LayerNorm of some nodes' features with noise, on a GPU in one pass: rows are read where they are, and no mask is written."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops.dropout import keep_torch
from gatas.sampling.models import fold_models
from gatas.sampling.noise import Noise

WIDEST = 8192
"""Features that a kernel takes side by side."""


def normalise(
    features: Tensor,  # (N, feature_size)
    nodes: Tensor,  # (V,)
    weight: Tensor,  # (feature_size,)
    bias: Tensor,
    noise: Noise,
    place: int,
    probability: float,
    eps: float,
) -> Tensor:
    """(V, feature_size): what LayerNorm and then `Dropout(probability, place)` give; features get no gradient."""
    own = (tensor[None] for tensor in (nodes, weight, bias, noise.seed, noise.step))
    normalised: Tensor = _normalise(features, *own, place, probability, eps)
    return normalised.squeeze(0)


def normalise_torch(
    features: Tensor, nodes: Tensor, weight: Tensor, bias: Tensor, noise: Noise, place: int, probability: float, eps: float
) -> Tensor:
    """The contract."""
    normalised = F.layer_norm(features[nodes], features.shape[1:], weight, bias, eps)
    kept = keep_torch(noise, place, nodes, torch.zeros_like(nodes), features.shape[1], probability)
    return normalised * kept.to(normalised.dtype)


@torch.library.custom_op("gatas::normalise", mutates_args=())
def _normalise(
    features: Tensor,
    nodes: Tensor,
    weight: Tensor,
    bias: Tensor,
    seed: Tensor,
    step: Tensor,
    place: int,
    probability: float,
    eps: float,
) -> Tensor:
    from gatas.nn.ops import gpu_layers

    return gpu_layers.normalise_forward(features, nodes, weight, bias, seed, step, place, probability, eps)


@_normalise.register_fake
def _(features: Tensor, nodes: Tensor, weight: Tensor, *_: Any) -> Tensor:
    return weight.new_empty(*nodes.shape, features.shape[1])


@torch.library.custom_op("gatas::normalise_backward", mutates_args=())
def _normalise_backward(
    grad_out: Tensor, features: Tensor, nodes: Tensor, seed: Tensor, step: Tensor, place: int, probability: float, eps: float
) -> Tensor:
    """(M, 2, feature_size): gradients of weight and bias."""
    from gatas.nn.ops import gpu_layers

    return gpu_layers.normalise_backward(grad_out, features, nodes, seed, step, place, probability, eps)


@_normalise_backward.register_fake
def _(grad_out: Tensor, features: Tensor, nodes: Tensor, *_: Any) -> Tensor:
    return grad_out.new_empty(len(nodes), 2, features.shape[1])


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    features, nodes, _, _, seed, step, *ctx.settings = inputs
    ctx.save_for_backward(features, nodes, seed, step)


def _differentiate(ctx, grad_out):  # type: ignore[no-untyped-def]
    of_weight, of_bias = torch.ops.gatas.normalise_backward(grad_out, *ctx.saved_tensors, *ctx.settings).unbind(1)
    return None, None, of_weight, of_bias, None, None, None, None, None


_normalise.register_autograd(_differentiate, setup_context=_setup)
fold_models(_normalise, shared=(0,))
