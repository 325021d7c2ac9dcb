"""Differences between models that were run on the same seeds or splits, and which model is best beyond them."""

import math
import statistics
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

from scipy import stats

from gatas.experiments.results import spread

Pair = TypeVar("Pair", bound=Hashable)

BOLD = "Bold: the best, where it is significantly ahead of the next (paired by seed, 95 %) and neither was cut."


def interval(own: Mapping[Pair, float], other: Mapping[Pair, float]) -> tuple[float, float, float] | None:
    """The mean difference over the pairs that both have, with its 95 % interval (Student's t); None of fewer than two."""
    both = [own[pair] - other[pair] for pair in own if pair in other]
    if len(both) < 2:
        return None
    mean, half = statistics.fmean(both), stats.t.ppf(0.975, len(both) - 1) * spread(both) / math.sqrt(len(both))
    return mean, mean - half, mean + half


def difference(own: Mapping[Pair, float], other: Mapping[Pair, float]) -> str:
    """The mean difference and its interval for readers; a dash where there is none."""
    found = interval(own, other)
    return "–" if found is None else f"{found[0]:+.2f} ({found[1]:+.2f} to {found[2]:+.2f})"


def clear_best(measured: Mapping[str, Mapping[Pair, float]], cut: Collection[str] = ()) -> str | None:
    """The model with the highest mean, if its paired difference from the next is significant; None otherwise.

    A model that a limit has `cut` is never the best, and nobody is clearly ahead of it: it might have gone on to do better.
    """
    means = {model: statistics.fmean(values.values()) for model, values in measured.items() if values}
    if len(means) < 2:
        return None
    best, following = sorted(means, key=lambda model: -means[model])[:2]
    found = interval(measured[best], measured[following])
    return best if not {best, following} & set(cut) and found is not None and found[1] > 0 else None
