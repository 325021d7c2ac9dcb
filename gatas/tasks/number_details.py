"""What the metrics of a split of numbers are made of: `NumberDetails`, for a picture of a run."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_POINTS = 2000
"""Nodes that are kept for a picture."""


@dataclass(frozen=True, eq=False)
class NumberDetails:
    """Numbers of some nodes of a split, predicted and true, in the user's units."""

    names: tuple[str, ...]
    predicted: NDArray[np.float64]  # (n, T)
    truth: NDArray[np.float64]  # (n, T); NaN: not known
    num_nodes: int  # of the whole split

    @classmethod
    def of(cls, names: tuple[str, ...], predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> "NumberDetails":
        """Take nodes at even distances, where there are many."""
        some = np.unique(np.linspace(0, len(truth) - 1, min(len(truth), MOST_POINTS)).astype(np.int64))
        return cls(names, predicted[some], truth[some], len(truth))

    @property
    def metrics(self) -> dict[str, Any]:
        """Return what is recorded beside the metrics of the whole split: nothing more."""
        return {}
