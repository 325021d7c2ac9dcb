"""Batches for the loss over lists: links, and the nodes among which their ends are to be found."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from gatas.graph.inputs import Ints
from gatas.tasks.batches import Batches


@dataclass(frozen=True)
class Links:
    """Typed links by node index."""

    source: Ints
    edge_type: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.source)


def list_batches(
    links: Links,
    folds: Ints,
    fold_order: Ints,
    batch_size: int,
    num_candidates: int,
    chances: NDArray[np.float64] | None,
    pool: Ints,
    generator: np.random.Generator,
) -> Batches:
    """Cut links into batches of one fold each, in the order of folds that is given, each with its candidates.

    Candidates are the ends of the batch's own links and nodes that are drawn from the `pool`, ascending, each once: all of it,
    where it has no more than `num_candidates`. Every batch has equally many. The pool is ascending and holds the ends of all
    links; `chances` are the cumulated ones of its nodes to be drawn; None: all alike.
    """
    rows = [part for fold in fold_order for part in _cut(folds, fold, batch_size, generator)]
    width = min(batch_size, len(links))
    count = min(len(pool), num_candidates + 2 * width)
    columns: dict[str, list[NDArray[Any]]] = {}
    for own in rows:
        full = np.resize(own, width)  # what fills up a short batch has weight 0
        source, target = links.source[full], links.target[full]
        candidates = _candidates(np.union1d(source, target), count, chances, pool, generator)
        found: dict[str, NDArray[Any]] = {
            "source": source,
            "edge_type": links.edge_type[full],
            "target": target,
            "source_slot": np.searchsorted(candidates, source),
            "target_slot": np.searchsorted(candidates, target),
            "candidates": candidates,
            "weight": (np.arange(width) < len(own)).astype(np.float32),
        }
        for name, column in found.items():
            columns.setdefault(name, []).append(column)
    stacked = {name: np.stack(parts) for name, parts in columns.items()}
    return Batches(stacked, np.empty(0, np.int64), np.array([folds[own[0]] for own in rows]))


def chance_of_candidates(
    links: Links, batch_size: int, num_candidates: int, chances: NDArray[np.float64] | None, pool: Ints
) -> NDArray[np.float64] | None:
    """Return how likely each node of the pool is among the candidates that `list_batches` takes; None where all always are."""
    width = min(batch_size, len(links))
    count = min(len(pool), num_candidates + 2 * width)
    if count == len(pool):
        return None
    ends = np.bincount(np.searchsorted(pool, np.concatenate([links.source, links.target])), minlength=len(pool))
    no_end = (1 - np.minimum(ends / len(links), 1)) ** width
    drawn = np.full(len(pool), 1 / len(pool))
    if chances is not None:
        drawn = (drawn + np.diff(chances, prepend=0.0) / chances[-1]) / 2
    draws = brentq(lambda number: (1 - no_end * np.exp(-number * drawn)).sum() - count, 0, 1e6 * len(pool))
    found: NDArray[np.float64] = 1 - no_end * np.exp(-draws * drawn)
    return found


def _cut(folds: Ints, fold: int, batch_size: int, generator: np.random.Generator) -> list[Ints]:
    own = generator.permutation(np.flatnonzero(folds == fold))
    return [own[first : first + batch_size] for first in range(0, len(own), batch_size)]


def _candidates(
    ends: Ints, count: int, chances: NDArray[np.float64] | None, pool: Ints, generator: np.random.Generator
) -> Ints:
    """Draw nodes beside the ends of links until there are `count`, each once."""
    if count == len(pool):
        return pool
    taken = np.zeros(len(pool), np.bool_)
    taken[np.searchsorted(pool, ends)] = True
    missing = count - len(ends)
    while missing > 0:
        more = _drawn(2 * missing, chances, len(pool), generator)
        new = generator.permutation(np.unique(more[~taken[more]]))[:missing]
        taken[new] = True
        missing -= len(new)
    return pool[taken]


def _drawn(count: int, chances: NDArray[np.float64] | None, size: int, generator: np.random.Generator) -> Ints:
    """Draw places below `size`; by `chances` mixed with an equal share for all, so that any number of distinct ones is met."""
    uniform = generator.integers(size, size=count)
    if chances is None:
        return uniform
    place = np.searchsorted(chances, generator.random(count) * chances[-1], side="right").clip(max=size - 1)
    return np.where(generator.random(count) < 0.5, place, uniform)
