"""LayerNorm, feature noise and a dense layer over sparse features, in plain torch. V nodes, F features, H outputs."""

from typing import NamedTuple

from torch import Tensor

from gatas.ops.noisy_linear.contract import noisy_linear_torch
from gatas.ops.random import NoiseSource


class SparseNoisyLinearInputs(NamedTuple):
    """What the operator takes, for M models; the features, in CSR layout, are one for all."""

    indptr: Tensor  # (N + 1,)
    columns: Tensor  # (E,)
    values: Tensor  # (E,)
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


class SparseColumnInputs(NamedTuple):
    """What the backward pass takes: what the noise is a function of, and of each node mean and 1 / deviation."""

    indptr: Tensor  # (N + 1,)
    columns: Tensor  # (E,)
    values: Tensor  # (E,)
    nodes: Tensor  # (M, V)
    spread: Tensor  # (M, V, 2)
    seed: Tensor  # (M,)
    step: Tensor  # (M,)
    grad_out: Tensor  # (M, V, H)
    width: int
    place: int
    probability: float


def sparse_noisy_linear_torch(
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
    layers = (norm_weight, norm_bias, weight, bias)
    return noisy_linear_torch(features.to_dense(), nodes, *layers, noise, place, probability, epsilon)


def shapes(given: SparseNoisyLinearInputs) -> tuple[Tensor, Tensor]:
    new, rows = given.values.new_empty, given.nodes.shape
    return new(*rows, given.weight.shape[1]), new(*rows, 2)


def backward_shapes(given: SparseColumnInputs) -> Tensor:
    return given.values.new_empty(len(given.nodes), given.width, 2 * given.grad_out.shape[-1])
