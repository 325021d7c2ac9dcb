"""Columns of a node table as one matrix of features, and the same for nodes that come later.

A column belongs to the node types that have any value in it: others have zeros there, and so have columns of their own. A
number becomes one column, text (or what is `categorical`) one for each value, a list one for each place.
"""

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field

from gatas.datasets.column_values import Mask, as_categories, as_lists, as_numbers, column_of, present_values
from gatas.errors import GatasWarning, GraphError
from gatas.graph.inputs import Floats, Ints
from gatas.graph.tables import Table, codes_of

UNTYPED = ("",)
"""The names of node types where no column says of what type nodes are."""
FORMAT = 1


@dataclass(frozen=True)
class NodeTypes:
    """The type of each node; all alike where there are no types."""

    index: Ints
    names: tuple[str, ...]


class Column(BaseModel, frozen=True, extra="forbid"):
    """A column of the table, and the numbers of the node types that have values in it."""

    name: str
    types: tuple[int, ...]


class Number(Column):
    """(x - shift) / scale; a gap that may be filled is the mean."""

    kind: Literal["number"] = "number"
    mean: float
    shift: float
    scale: float

    @property
    def width(self) -> int:
        return 1

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: str) -> Floats:
        numbers = as_numbers(table, self.name, values)
        present = ~np.isnan(numbers)
        filled = (np.where(gaps, self.mean, numbers) - self.shift) / self.scale
        with np.errstate(over="ignore"):
            column: Floats = np.where(present | gaps, filled, 0.0).astype(np.float32)[:, None]
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise GraphError(
                f"{table.place(row, self.name)}: {numbers[row]:g} is too large. Rescale the column, or take logarithms."
            )
        return column


class Category(Column):
    """A column for each value, in ascending order; a gap is none of them."""

    kind: Literal["category"] = "category"
    values: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.values)

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: str) -> Floats:
        texts = as_categories(table, self.name, values)
        found = pc.index_in(texts, value_set=pa.array(self.values, pa.string()))
        codes: Ints = np.asarray(pc.fill_null(found, -1))
        self._refuse_unseen(table, texts, np.asarray(texts.is_valid()) & (codes < 0), missing)
        columns: Floats = (codes[:, None] == np.arange(len(self.values))).astype(np.float32)
        return columns

    def _refuse_unseen(self, table: Table, texts: Any, unseen: Mask, missing: str) -> None:
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
        warnings.warn(
            f"{table.path}, column {self.name!r}: {int(unseen.sum()):,} values that training did not have, such as "
            f"{texts[row].as_py()!r}, were taken for no category.",
            GatasWarning,
            stacklevel=5,
        )


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

    def encoded(self, table: Table, values: Any, node_types: NodeTypes, gaps: Mask, missing: str) -> Floats:
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


EncodedColumn = Number | Category | Lists


class Encoding(BaseModel, frozen=True, extra="forbid"):
    """How columns become features: what was learned of them in training, to be done again with other nodes."""

    format: int = FORMAT
    types: tuple[str, ...]
    missing: Literal["refuse", "fill"]
    columns: tuple[Annotated[EncodedColumn, Field(discriminator="kind")], ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def node_types(self, table: Table) -> NodeTypes:
        """Return the types of nodes that come later, with the indices that training gave them."""
        if self.types == UNTYPED:
            return NodeTypes(np.zeros(table.num_rows, np.int64), UNTYPED)
        known = ", ".join(map(repr, self.types))
        if "node_type" not in table.columns:
            raise GraphError(f"{table.path} does not say of what type nodes are; training had {known}. Add the column.")
        codes, names = codes_of(table, "node_type")
        if unseen := [name for name in names if name not in self.types]:
            row = int(np.argmax(codes == names.index(unseen[0])))
            raise GraphError(
                f"{table.place(row, 'node_type')}: no node of training was of type {unseen[0]!r}, only of {known}."
            )
        return NodeTypes(np.array([self.types.index(name) for name in names], np.int64)[codes], self.types)

    def encoded(self, table: Table, node_types: NodeTypes) -> Floats:
        """Return (n, F) features of the nodes of a table."""
        parts = []
        for column in self.columns:
            values = column_of(table, column.name)
            gaps = self.gaps(table, column, values, node_types)
            if values is None or pa.types.is_null(values.type):
                values = pa.nulls(table.num_rows, _BLANK[column.kind])
            parts.append(column.encoded(table, values, node_types, gaps, self.missing))
        return np.concatenate(parts, axis=1)

    def gaps(self, table: Table, column: Column, values: Any, node_types: NodeTypes) -> Mask:
        """Find nodes without a value whose type has some; they are refused, unless they may be filled."""
        present = np.zeros(table.num_rows, np.bool_) if values is None else present_values(values)
        gaps: Mask = np.isin(node_types.index, column.types) & ~present
        if not gaps.any():
            return gaps
        if values is None and self.missing == "refuse":
            raise GraphError(
                f"{table.path} has no column {column.name!r}, which the model was trained on. Add it, or train with "
                "data.missing: fill (the mean, or no category)."
            )
        if self.missing == "refuse":
            row = int(np.argmax(gaps))
            own = node_types.index == node_types.index[row]
            of = f" of type {node_types.names[node_types.index[row]]!r}" if len(node_types.names) > 1 else ""
            raise GraphError(
                f"{table.path}, column {column.name!r}: {int((gaps & own).sum()):,} of {int(own.sum()):,} nodes{of} have no "
                f"value, the first in row {row + 1}. Fill them in, or set data.missing: fill (the mean, or no category)."
            )
        return gaps


_BLANK = {"number": pa.float64(), "category": pa.string(), "list": pa.list_(pa.float64())}
