"""How far probabilities can be believed, and a temperature that makes them more so (Guo et al. 2017)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

NUM_BINS = 15
COLDEST, HOTTEST = 0.05, 20.0
"""Temperatures that are looked at."""


def log_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of (n, classes) logits; with any number of labels a node, over all of them."""
    if labels.ndim == 2:
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
    return F.cross_entropy(logits, labels)


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """Return the temperature T by which (n, classes) logits divided have the largest likelihood.

    The loss is convex in 1/T, so that one bounded search over ln T finds its minimum. Where every answer is right there is
    none, as the likelihood grows for ever while T falls: T is then 1, and nothing changes.
    """
    from scipy.optimize import minimize_scalar  # a third of a second, which an import need not wait for

    exact = logits.detach().double()
    right = (exact > 0) == (labels > 0) if labels.ndim == 2 else exact.argmax(-1) == labels
    if not len(labels) or bool(right.all()) or not bool(torch.isfinite(exact).all()):
        return 1.0

    def loss(log_temperature: float) -> float:
        return float(log_loss(exact / np.exp(log_temperature), labels))

    found = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0


@dataclass(frozen=True, eq=False)
class Reliability:
    """Probabilities in bins of equal width: how many there are, their mean, and how often what they are of is so.

    Where a node has one class, these are the probabilities of the likeliest; with any number of labels, those of all labels.
    """

    count: NDArray[np.int64]  # (bins,)
    probability: NDArray[np.float64]
    frequency: NDArray[np.float64]
    loss: float

    @property
    def error(self) -> float:
        """Return the expected calibration error: the mean distance of probability and frequency."""
        return float((self.count * abs(self.probability - self.frequency)).sum() / max(1, self.count.sum()))


def reliability(logits: Tensor, labels: Tensor, temperature: float = 1.0, num_bins: int = NUM_BINS) -> Reliability:
    """Compare probabilities of (n, classes) logits at a temperature with what is so."""
    tempered = logits.detach().double() / temperature
    if labels.ndim == 2:
        chance, hit = tempered.sigmoid().flatten(), (labels > 0).flatten()
    else:
        chance, best = tempered.softmax(-1).max(-1)
        hit = best == labels
    chances, hits = chance.cpu().numpy(), hit.cpu().numpy()
    place: NDArray[Any] = np.minimum((chances * num_bins).astype(np.int64), num_bins - 1)
    count = np.bincount(place, minlength=num_bins)
    means = [np.bincount(place, values, num_bins) / np.maximum(count, 1) for values in (chances, hits)]
    return Reliability(count, means[0], means[1], float(log_loss(tempered, labels)))
