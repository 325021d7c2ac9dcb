"""`WeightAverage`: a running average of weights that are learned, which often does better than those of any one step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class WeightAverage:
    """Follows weights, of one or several models, from what they start as.

    Args:
        weights: What is averaged; changed in place by whoever learns it.
        decay: The share of the average that a step keeps, once many steps are taken.
    """

    def __init__(self, weights: Tensor, decay: float) -> None:
        self.weights, self.decay = weights, decay
        self.values = weights.clone()

    @torch.no_grad()
    def follow(self, steps: Tensor) -> None:
        """Take in the weights of now: quickly after few `steps`, since what weights were drawn as says nothing."""
        kept = ((steps + 1) / (steps + 10)).clamp_max(self.decay)
        self.values.lerp_(self.weights, 1 - kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Have the average in place of the weights for a while."""
        last = self.weights.clone()
        self.weights.copy_(self.values)
        try:
            yield
        finally:
            self.weights.copy_(last)
