"""Which elements a dropout keeps: noise of (seed, place, step, row, column), the same bits on every device."""

from typing import NamedTuple

import torch
from torch import Tensor

from gatas.ops.random import WORD, NoiseSource, stream, threefry


class KeepInputs(NamedTuple):
    """What the noise is a function of, for M models."""

    seed: Tensor  # (M,)
    step: Tensor  # (M,)
    place: int
    first: Tensor  # (M, R)    the name of a row, by two numbers
    second: Tensor  # (M, R)
    width: int
    probability: float
    rate: Tensor | None = None  # (M,) float64: each model's own probability, in place of the one for all


def keep_torch(noise: NoiseSource, place: int, first: Tensor, second: Tensor, width: int, probability: float) -> Tensor:
    """(R, width): 0 or 1 / (1 - probability). One call of the generator makes two words, and with their halves four columns."""
    own = threefry(stream(noise.seed, place, noise.step), first & WORD, second & WORD)
    group = torch.arange((width + 3) // 4, device=first.device)
    words = threefry((own[0][:, None], own[1][:, None]), group, torch.zeros_like(group))
    halves = [half for word in words for half in (word & 0xFFFF, word >> 16)]
    bits = torch.stack(halves, dim=-1).flatten(1)[:, :width]
    return (bits >= threshold_of(probability)).float() / (1 - probability)


def threshold_of(probability: float) -> int:
    """Elements whose 16 bits are below it are dropped; at least one value is, and one is not, if there is to be dropout."""
    return min(max(round(probability * 2**16), 1), 2**16 - 1) if probability else 0


def empty_keep(given: KeepInputs) -> Tensor:
    """(M, R, width) float32."""
    return torch.empty(*given.first.shape, given.width, device=given.first.device)
