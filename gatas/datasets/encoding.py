"""Columns of a node table as one matrix of features, and the same for nodes that come later.

A column belongs to the node types that have any value in it: others have zeros there, and so have columns of their own.
"""

from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, Field
from scipy import sparse

from gatas.datasets.column_values import Mask, column_of, present_values
from gatas.datasets.encoded_columns import (
    UNTYPED,
    Category,
    Column,
    Hashed,
    IndexLists,
    Lists,
    NodeTypes,
    Number,
    Quantile,
)
from gatas.datasets.node_table import Features
from gatas.errors import GraphError
from gatas.graph.counts import counted
from gatas.graph.tables import Table, codes_of

FORMAT = 1

EncodedColumn = Number | Quantile | Category | Hashed | Lists | IndexLists


class Encoding(BaseModel, frozen=True, extra="forbid"):
    """How columns become features: what was learned of them in training, to be done again with other nodes."""

    format: int = FORMAT
    types: tuple[str, ...]
    missing: Literal["refuse", "fill"]
    columns: tuple[Annotated[EncodedColumn, Field(discriminator="kind")], ...]

    @property
    def names(self) -> list[str]:
        """The columns of a table that features are made of."""
        return [name for column in self.columns for name in column.sources]

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

    def encoded(self, table: Table, node_types: NodeTypes) -> Features:
        """Return (n, F) features of the nodes of a table: sparse where a column holds indices, else dense."""
        parts = []
        for column in self.columns:
            values = column_of(table, column.name)
            gaps = self.gaps(table, column, values, node_types)
            if values is None or pa.types.is_null(values.type):
                values = pa.nulls(table.num_rows, _BLANK[column.kind])
            parts.append(column.encoded(table, values, node_types, gaps, self.missing))
        if len(parts) == 1:
            return parts[0]
        dense = [part for part in parts if isinstance(part, np.ndarray)]
        if len(dense) == len(parts):
            return np.concatenate(dense, axis=1)
        return sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in parts], format="csr"))

    def gaps(self, table: Table, column: Column, values: Any, node_types: NodeTypes) -> Mask:
        """Find nodes without a value whose type has some; they are refused, unless they may be filled."""
        present = np.zeros(table.num_rows, np.bool_) if values is None else present_values(values)
        gaps: Mask = np.isin(node_types.index, column.types) & ~present
        if not gaps.any():
            return gaps
        if values is None and self.missing == "refuse":
            file = column.file if isinstance(column, IndexLists) else None
            hint = f" In training it was the file {file}: for a file of new nodes there is --new-features." if file else ""
            raise GraphError(
                f"{table.path} has no column {column.name!r}, which the model was trained on. Add it, or train with "
                f"data.missing: fill (the mean, or no category).{hint}"
            )
        if self.missing == "refuse":
            row = int(np.argmax(gaps))
            own = node_types.index == node_types.index[row]
            of = f" of type {node_types.names[node_types.index[row]]!r}" if len(node_types.names) > 1 else ""
            count, verb = int((gaps & own).sum()), "has" if (gaps & own).sum() == 1 else "have"
            raise GraphError(
                f"{table.path}, column {column.name!r}: {count:,} of {counted(int(own.sum()), 'node')}{of} {verb} no "
                f"value, the first in row {row + 1}. Fill them in, or set data.missing: fill (the mean, or no category)."
            )
        return gaps


_BLANK = {
    "number": pa.float64(),
    "quantile": pa.float64(),
    "category": pa.string(),
    "hashed": pa.string(),
    "list": pa.list_(pa.float64()),
    "indices": pa.list_(pa.int64()),
}
