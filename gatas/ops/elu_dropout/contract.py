"""ELU and the dropout that follows it, in plain torch."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.ops.dropout.contract import keep_torch
from gatas.ops.random import NoiseSource


class EluDropoutInputs(NamedTuple):
    """What the operator takes, for M models."""

    values: Tensor  # (M, R, width)
    seed: Tensor  # (M,)
    step: Tensor  # (M,)
    first: Tensor  # (M, R)    the name of a row, by two numbers
    second: Tensor  # (M, R)
    place: int
    probability: float


def elu_dropout_torch(
    values: Tensor, noise: NoiseSource, place: int, first: Tensor, second: Tensor, probability: float
) -> Tensor:
    """ELU of (R, width) values, then dropout: row r is named by first[r], second[r]."""
    return F.elu(values) * keep_torch(noise, place, first, second, values.shape[1], probability).to(values.dtype)


def shapes(given: EluDropoutInputs, *_: Any) -> Tensor:
    """Like the values, of the result and of their gradient."""
    return torch.empty_like(given.values, memory_format=torch.contiguous_format)
