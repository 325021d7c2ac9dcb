"""The distinct ones of many numbers, by torch."""

import torch
from torch import Tensor


def distinct_torch(values: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct values, ascending, and where among them each one is."""
    unique, inverse = torch.unique(values, return_inverse=True)
    return unique, inverse
