"""Batches: what a split or an epoch is cut into, all of one size so that one program serves them all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.graph.inputs import Ints

Columns = Mapping[str, NDArray[Any] | None]
"""None: the rows' own numbers."""
SHARED = ("candidates",)
"""Columns that belong to a batch as a whole, not to one of its rows each."""


@dataclass(frozen=True)
class Batches:
    """Columns of (num_batches, batch_size); what fills up a short batch has `weight` 0."""

    columns: dict[str, NDArray[Any]]
    place: Ints  # the slot of each row, from the smallest row on, among those of all batches
    fold: Ints | None = None  # (num_batches,) the fold of links that is hidden from the graph; None: none is

    @property
    def sizes(self) -> list[int]:
        """Count the rows of each batch that are not filling, which come first; of models side by side, the most."""
        meant = (self.columns["weight"] > 0).sum(-1).reshape(len(self), -1)
        return [int(size) for size in meant.max(1)]

    def __len__(self) -> int:
        return len(self.columns["weight"])


def generator_of(seed: int, *names: int) -> np.random.Generator:
    """Return a generator that is a function of the seed and of what is drawn from it."""
    return np.random.default_rng([seed % 2**64, *names])


def cut(rows: Ints, batch_size: int, groups: NDArray[Any] | None = None) -> list[Ints]:
    """Cut rows into batches of `batch_size`, in their order; with `groups` no batch holds rows of two."""
    if groups is None:
        return [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    return [batch for group in np.unique(groups[rows]) for batch in cut(rows[groups[rows] == group], batch_size)]


def fill(batches: list[Ints], columns: Columns, batch_size: int | None = None) -> Batches:
    """Look up each batch's rows in `columns`; short batches repeat a row of theirs, with weight 0."""
    batch_size = batch_size or max(len(batch) for batch in batches)
    rows = np.stack([np.resize(batch, batch_size) for batch in batches])  # (num_batches, batch_size)
    used = np.arange(batch_size) < np.array([len(batch) for batch in batches])[:, None]
    place = np.empty(int(used.sum()), np.int64)
    place[np.unique(rows[used], return_inverse=True)[1]] = np.flatnonzero(used)
    found = {name: rows if column is None else np.asarray(column)[rows] for name, column in columns.items()}
    return Batches({**found, "weight": used.astype(np.float32)}, place)


def stacked(several: list[Batches]) -> Batches:
    """Put the batches of several models side by side: (num_batches, M, batch_size)."""
    names = several[0].columns
    columns = {name: np.stack([one.columns[name] for one in several], axis=1) for name in names}
    return Batches(columns, several[0].place, several[0].fold)
