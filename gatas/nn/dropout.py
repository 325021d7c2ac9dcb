"""Dropout that is a function of the seed: each element is kept or not by what it is, not by when it was drawn."""

import torch
from torch import Tensor, nn

from gatas.errors import GatasError
from gatas.ops.dropout import keep
from gatas.ops.elu_dropout import elu_dropout
from gatas.ops.random import NoiseSource


class Dropout(nn.Module):
    """Inverted dropout keyed by (seed, place, step) and by the element; silent in evaluation.

    `place` tells apart the layers of a model. Models that are called as one and differ in their probabilities have each its own
    `rate`, which torch.func.functional_call puts in.
    """

    rate: Tensor | None

    def __init__(self, probability: float, place: int) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise GatasError(f"dropout probability is {probability}; expected at least 0 and less than 1.")
        self.probability, self.place = probability, place
        self.register_buffer("rate", None, persistent=False)

    @property
    def active(self) -> bool:
        return self.training and (self.probability > 0 or self.rate is not None)

    def forward(self, values: Tensor, noise: NoiseSource, *rows: Tensor) -> Tensor:
        """`values` is (…, width); `rows` name its rows, by one or two numbers each: a node, or a node and a path."""
        return values * self.keep(values.shape[-1], noise, *rows).to(values.dtype) if self.active else values

    def of_elu(self, values: Tensor, noise: NoiseSource, *rows: Tensor) -> Tensor:
        """ELU and then dropout, in one pass; `values` is (rows, width)."""
        probability, rate = (self.probability, self.rate) if self.training else (0.0, None)
        return elu_dropout(values, noise, self.place, *_names(rows), probability, rate)

    def keep(self, width: int, noise: NoiseSource, *rows: Tensor) -> Tensor:
        """(…, width): 0, or 1 / (1 - p)."""
        first, second = _names(rows)
        kept = keep(noise, self.place, first.flatten(), second.flatten(), width, self.probability, self.rate)
        return kept.view(*first.shape, width)

    def extra_repr(self) -> str:
        return f"{self.probability}"


def _names(rows: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Two numbers for each row; none where nothing is dropped and rows need no names."""
    if not rows:
        nothing = torch.empty(0, dtype=torch.int64)
        return nothing, nothing
    return (rows[0], rows[1]) if len(rows) == 2 else (rows[0], torch.zeros_like(rows[0]))
