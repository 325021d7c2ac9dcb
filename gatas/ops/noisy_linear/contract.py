"""LayerNorm, feature noise and a dense layer, in plain torch. V nodes, F features, H outputs."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.ops.normalise.contract import normalise_torch
from gatas.ops.random import NoiseSource

WIDEST = 2**15
"""Features whose numbers fit in 16 bits."""


class NoisyLinearInputs(NamedTuple):
    """What the operator takes, for M models; the features are one for all."""

    features: Tensor  # (N, F)
    nodes: Tensor  # (M, V)
    norm_weight: Tensor  # (M, F)
    norm_bias: Tensor  # (M, F)
    weight: Tensor  # (M, H, F)
    bias: Tensor  # (M, H)
    seed: Tensor  # (M,)
    step: Tensor  # (M,)
    place: int
    probability: float
    epsilon: float


class ColumnInputs(NamedTuple):
    """What the backward pass takes: of each node the columns that were kept, and mean and 1 / deviation."""

    features: Tensor  # (N, F)
    nodes: Tensor  # (M, V)
    columns: Tensor  # (M, V, F)
    counts: Tensor  # (M, V)
    spread: Tensor  # (M, V, 2)
    grad_out: Tensor  # (M, V, H)


def noisy_linear_torch(
    features: Tensor,
    nodes: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    weight: Tensor,
    bias: Tensor,
    noise: NoiseSource,
    place: int,
    probability: float,
    epsilon: float,
) -> Tensor:
    """(V, H) linear(dropout(layer_norm(features[nodes])))."""
    normal = normalise_torch(features, nodes, norm_weight, norm_bias, noise, place, probability, epsilon)
    return F.linear(normal, weight, bias)


def shapes(given: NoisyLinearInputs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    new, rows = given.features.new_empty, given.nodes.shape
    columns, counts = new(*rows, given.features.shape[1], dtype=torch.int16), new(rows, dtype=torch.int32)
    return new(*rows, given.weight.shape[1]), columns, counts, new(*rows, 2)


def backward_shapes(given: ColumnInputs) -> Tensor:
    return given.features.new_empty(len(given.nodes), given.features.shape[1], 2 * given.grad_out.shape[-1])
