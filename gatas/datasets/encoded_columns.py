"""Columns of a node table as columns of features, each kind with what was learned of it in training.

A number becomes one column, text (or what is `categorical`) one for each value or for the most frequent, or for hashes of
them; a list of numbers one for each place, a list of indices a sparse matrix.
"""

import warnings
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel
from scipy import sparse

from gatas.datasets.column_values import Mask, as_categories, as_lists, as_numbers
from gatas.datasets.index_lists import encode_indices
from gatas.datasets.node_table import Features
from gatas.errors import GatasWarning, GraphError
from gatas.graph.counts import counted
from gatas.graph.inputs import Floats, Ints
from gatas.graph.tables import Table

UNTYPED = ("",)
"""The names of node types where no column says of what type nodes are."""
Missing = Literal["refuse", "fill"]
WIDE = 1000
"""Categories of more columns than these make a sparse matrix."""
SPREAD = 12**0.5
"""Ranks between 0 and 1 have the deviation 1 / SPREAD."""


@dataclass(frozen=True)
class NodeTypes:
    """The type of each node; all alike where there are no types."""

    index: Ints
    names: tuple[str, ...]


class Column(BaseModel, frozen=True, extra="forbid"):
    """A column of the table, and the numbers of the node types that have values in it."""

    name: str
    types: tuple[int, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the table that it is made of."""
        return (self.name,)


class Number(Column):
    """(x - shift) / scale, of a number or of its logarithm; a gap that may be filled is the mean."""

    kind: Literal["number"] = "number"
    log: bool = False
    boolean: bool = False  # true and false in the table, 1 and 0 here
    mean: float
    shift: float
    scale: float

    @property
    def width(self) -> int:
        return 1

    @property
    def described(self) -> str:
        if self.scale == 1.0 and self.shift == 0.0:
            return "logarithm" if self.log else "number, as it is"
        return "logarithm, standardised" if self.log else "number, standardised"

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: Missing) -> Floats:
        numbers = as_numbers(table, self.name, values)
        present = ~np.isnan(numbers)
        given = signed_log(numbers) if self.log else numbers
        filled = (np.where(gaps, self.mean, given) - self.shift) / self.scale
        with np.errstate(over="ignore"):
            column: Floats = np.where(present | gaps, filled, 0.0).astype(np.float32)[:, None]
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise GraphError(
                f"{table.place(row, self.name)}: {numbers[row]:g} is too large. Rescale the column, or take logarithms."
            )
        return column


class Quantile(Column):
    """The share of training nodes that have less, between 0 and 1, or scaled to deviation 1; a gap that may be filled is 0.

    What lies outside of all that training had is clipped to it.
    """

    kind: Literal["quantile"] = "quantile"
    knots: tuple[float, ...]  # ascending
    ranks: tuple[float, ...]  # of each knot
    standardised: bool = True

    @property
    def width(self) -> int:
        return 1

    @property
    def described(self) -> str:
        return "rank among training nodes"

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: Missing) -> Floats:
        numbers = as_numbers(table, self.name, values)
        ranks = np.interp(numbers, self.knots, self.ranks)
        scaled = (ranks - 0.5) * SPREAD if self.standardised else ranks
        middle = 0.0 if self.standardised else 0.5
        filled = np.where(gaps, middle, scaled)
        column: Floats = np.where(~np.isnan(numbers) | gaps, filled, 0.0).astype(np.float32)[:, None]
        return column


class Category(Column):
    """A column for each value, in ascending order, and where there is an `other` one for all others; a gap is none of them."""

    kind: Literal["category"] = "category"
    values: tuple[str, ...]
    other: bool = False

    @property
    def width(self) -> int:
        return len(self.values) + self.other

    @property
    def described(self) -> str:
        return "the most frequent values, and other" if self.other else "one-hot"

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: Missing) -> Features:
        texts = as_categories(table, self.name, values)
        found = pc.index_in(texts, value_set=pa.array(self.values, pa.string()))
        codes: Ints = np.asarray(pc.fill_null(found, -1))
        unseen: Mask = np.asarray(texts.is_valid()) & (codes < 0)
        if self.other:
            codes = np.where(unseen, len(self.values), codes)
        else:
            self._refuse_unseen(table, texts, unseen, missing)
        return one_hot(codes, self.width)

    def _refuse_unseen(self, table: Table, texts: Any, unseen: Mask, missing: Missing) -> None:
        """Refuse values that training did not have; where gaps may be filled they count as none."""
        if not unseen.any():
            return
        row = int(np.argmax(unseen))
        if missing == "refuse":
            known = ", ".join(map(repr, self.values[:10])) + (" …" if len(self.values) > 10 else "")
            raise GraphError(
                f"{table.place(row, self.name)}: {texts[row].as_py()!r} was in no node of training, which had {known}. Give "
                "one of these, or train with data.missing: fill, which takes it for no category."
            )
        count, verb = int(unseen.sum()), "was" if unseen.sum() == 1 else "were"
        warnings.warn(
            f"{table.path}, column {self.name!r}: {counted(count, 'value')} that training did not have, such as "
            f"{texts[row].as_py()!r}, {verb} taken for no category.",
            GatasWarning,
            stacklevel=5,
        )


class Hashed(Column):
    """A column for each of a number of buckets, one of which every value falls into, known or not; a gap is in none."""

    kind: Literal["hashed"] = "hashed"
    buckets: int

    @property
    def width(self) -> int:
        return self.buckets

    @property
    def described(self) -> str:
        return "hashed values"

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: Missing) -> Features:
        texts = as_categories(table, self.name, values).dictionary_encode()
        buckets = np.array([zlib.crc32(text.encode()) % self.buckets for text in texts.dictionary.to_pylist()], np.int64)
        codes: Ints = np.asarray(pc.fill_null(texts.indices, -1))
        found = np.where(codes < 0, -1, buckets[codes] if len(buckets) else -1)
        return one_hot(found, self.buckets)


class Lists(Column):
    """Lists of numbers, not scaled. Where node types have lists of different lengths, each has columns of its own."""

    kind: Literal["list"] = "list"
    widths: tuple[int, ...]  # by node type

    @property
    def alike(self) -> bool:
        return len({width for width in self.widths if width}) < 2

    @property
    def width(self) -> int:
        return max(self.widths) if self.alike else sum(self.widths)

    @property
    def described(self) -> str:
        return "list of numbers"

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: Missing) -> Floats:
        rows, lengths, numbers = as_lists(table, self.name, values)
        widths = np.array(self.widths, np.int64)
        wrong = lengths != widths[node_types.index[rows]]
        if wrong.any():
            row, longest = int(rows[np.argmax(wrong)]), widths[node_types.index[rows[np.argmax(wrong)]]]
            length = lengths[np.argmax(wrong)]
            raise GraphError(f"{table.place(row, self.name)}: the list has {length} numbers, others of its type {longest}.")
        starts = np.zeros_like(widths) if self.alike else np.cumsum(widths) - widths
        matrix = np.zeros((table.num_rows, self.width), np.float32)
        within = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        matrix[np.repeat(rows, lengths), within + np.repeat(starts[node_types.index[rows]], lengths)] = numbers
        return matrix


class IndexLists(Column):
    """Lists of indices, each with 1 or with the value of another column; a gap that may be filled has none."""

    kind: Literal["indices"] = "indices"
    width: int
    values: str | None = None
    file: str | None = None  # that it came from in training, where it was no column of the table

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.name,) if self.values is None else (self.name, self.values)

    @property
    def described(self) -> str:
        values = "" if self.values is None else f" with {self.values}"
        return f"indices{values}, sparse" if self.file is None else f"{self.file}, sparse"

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: Missing) -> sparse.csr_array:
        return encode_indices(table, self, values, missing)


def one_hot(codes: Ints, width: int) -> Features:
    """Return a matrix with 1 in the column of each row's code, in none where it is negative; sparse if it is wide."""
    if width <= WIDE:
        columns: Floats = (codes[:, None] == np.arange(width)).astype(np.float32)
        return columns
    rows = np.flatnonzero(codes >= 0)
    ones = np.ones(len(rows), np.float32)
    return sparse.csr_array((ones, (rows, codes[rows])), shape=(len(codes), width))


def signed_log(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln(1 + |x|) with the sign of x."""
    logarithms: NDArray[np.float64] = np.sign(numbers) * np.log1p(np.abs(numbers))
    return logarithms
