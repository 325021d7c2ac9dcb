"""Operators as what they mean: each by its contract in plain torch, for programs that run where gatas is not."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.ops import attend, elu_dropout, represent
from gatas.ops.models import each_model


def plain_operators() -> dict[Any, Callable[..., Any]]:
    """Return what replaces the operators that a model calls in evaluation on a CPU: a table of decompositions for torch."""
    known = torch.ops.gatas
    return {
        known.attend.default: _attend,
        known.represent.default: _represent,
        known.elu_dropout.default: _elu_dropout,
    }


def _attend(*given: Any) -> tuple[Tensor, Tensor]:
    """Attention; what only a backward pass needs is empty."""
    inputs = attend.AttendInputs(*given)
    found: Tensor = each_model(attend.attend_torch, inputs)
    return found, found.new_empty(0)


def _represent(*given: Any) -> Tensor:
    found: Tensor = each_model(represent.represent_torch, represent.RepresentInputs(*given))
    return found


def _elu_dropout(*given: Any) -> Tensor:
    """ELU alone: nothing is dropped in evaluation."""
    inputs = elu_dropout.EluDropoutInputs(*given)
    assert not inputs.probability, "only models in evaluation are made of plain operations"
    return F.elu(inputs.values)
