"""LayerNorm of some nodes' features with noise, in plain torch."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.ops.dropout.contract import keep_torch
from gatas.ops.random import NoiseSource

WIDEST = 8192
"""Features that a kernel takes side by side."""


class NormaliseInputs(NamedTuple):
    """What the operator takes, for M models; the features are one for all."""

    features: Tensor  # (N, F)
    nodes: Tensor  # (M, V)
    weight: Tensor  # (M, F)
    bias: Tensor  # (M, F)
    seed: Tensor  # (M,)
    step: Tensor  # (M,)
    place: int
    probability: float
    epsilon: float
    rate: Tensor | None = None  # (M,) float64: each model's own probability, in place of the one for all


def normalise_torch(
    features: Tensor,
    nodes: Tensor,
    weight: Tensor,
    bias: Tensor,
    noise: NoiseSource,
    place: int,
    probability: float,
    epsilon: float,
) -> Tensor:
    """(V, F): LayerNorm of rows of (N, F) features, and dropout whose rows are named by their nodes."""
    normalised = F.layer_norm(features[nodes], features.shape[1:], weight, bias, epsilon)
    kept = keep_torch(noise, place, nodes, torch.zeros_like(nodes), features.shape[1], probability)
    return normalised * kept.to(normalised.dtype)


def shapes(given: NormaliseInputs) -> Tensor:
    return given.weight.new_empty(*given.nodes.shape, given.features.shape[1])


def backward_shapes(given: NormaliseInputs, grad_out: Tensor, *_: Any) -> Tensor:
    """(M, 2, F): gradients of weight and bias."""
    return grad_out.new_empty(len(given.nodes), 2, given.features.shape[1])
