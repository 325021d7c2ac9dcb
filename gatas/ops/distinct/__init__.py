"""The distinct ones of many numbers: what torch.unique gives, without sorting where numbers are small enough to be marked."""

import torch
from torch import Tensor

from gatas.ops.distinct.contract import distinct_torch

__all__ = ["distinct", "distinct_torch"]

FEW_WORDS = 1 << 16
"""Up to so many words of 64 marks are looked through, however few the numbers are."""


def distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct values, ascending, and where among them each one is."""
    num_words = _words_of(values)
    if not 0 < num_words <= max(FEW_WORDS, 16 * values.numel()):
        return distinct_torch(values)
    from gatas.ops.distinct import cpu

    return cpu.distinct_marked(values, num_words)


def _words_of(values: Tensor) -> int:
    """How many words it takes to mark the largest; 0 for what is not marked."""
    if values.device.type != "cpu" or values.dtype != torch.int64 or not values.numel():
        return 0
    smallest, largest = torch.aminmax(values)
    return int(largest) // 64 + 1 if smallest >= 0 else 0
