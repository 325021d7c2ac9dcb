"""`Neighbourhood`: what was drawn for a batch of targets."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Up to S neighbours for each of B targets; unused slots have `mask` False."""

    node: Tensor  # (B, S) int64
    path: Tensor  # (B, S) int64
    log_probability: Tensor  # (B, S) float32, ln P; the gradient of q flows through it; -inf where masked
    mask: Tensor  # (B, S) bool


torch.export.register_dataclass(Neighbourhood, serialized_type_name="gatas.Neighbourhood")
