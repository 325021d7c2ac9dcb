"""Indexed edges, sorted by DuckDB and made into the arrays of a graph as they come: each triplet once, in order.

What is done here batch by batch is what `gatas.graph.edges` does at once; the same edges give the same arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GraphError
from gatas.graph.arrays import ArrayWriter
from gatas.graph.edges import warn_of_differing_weights
from gatas.graph.inputs import FLOAT32, Ints

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 1 << 18
COLUMNS = ("source", "kind", "target", "added")


@dataclass(frozen=True)
class Order:
    """How triplets become sort keys: one number each where that fits, or three columns."""

    num_nodes: int
    num_types: int  # with inverse ones
    direction: str
    weighted: bool

    @property
    def packed(self) -> bool:
        return 2 * self.num_types * self.num_nodes**2 < 2**63

    def query(self, indexed: str) -> str:
        """Return SQL for listed edges (`added` = 0) and those that lead back, in order; equal ones as they are listed."""
        rest = ", weight, place" if self.weighted else ""
        kept = " WHERE weight > 0" if self.weighted else ""
        listed = f"SELECT source, kind, target, 0 AS added{rest} FROM {indexed}{kept}"
        if self.direction != "as given":
            kind = f"kind + {self.num_types // 2}" if self.direction == "inverse" else "kind"
            listed += f" UNION ALL SELECT target, {kind}, source, 1{rest} FROM {indexed}{kept}"
        weight, place = (", weight", ", place") if self.weighted else ("", "")
        if not self.packed:
            return f"SELECT source, kind, target, added{weight} FROM ({listed}) ORDER BY source, kind, target, added{place}"
        key = f"(((source * {self.num_types} + kind) * {self.num_nodes}) + target) * 2 + added"
        return f"SELECT {key} AS key{weight} FROM ({listed}) ORDER BY key{place}"

    def triplets(self, batch: Any) -> "Triplets":
        weight = np.asarray(batch.column("weight"), np.float64) if self.weighted else None
        if not self.packed:
            source, kind, target, added = (np.asarray(batch.column(name)).astype(np.int64) for name in COLUMNS)
            return Triplets(source, kind, target, added, weight)
        key = np.asarray(batch.column("key"))
        rest, target = np.divmod(key >> 1, self.num_nodes)
        return Triplets(*np.divmod(rest, self.num_types), target, key & 1, weight)


@dataclass(frozen=True)
class Triplets:
    """A run of sorted edges."""

    source: Ints
    kind: Ints
    target: Ints
    added: Ints
    weight: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: Any) -> "Triplets":
        weight = None if self.weight is None else self.weight[rows]
        return Triplets(self.source[rows], self.kind[rows], self.target[rows], self.added[rows], weight)

    def after(self, other: "Triplets") -> "Triplets":
        source, kind, target, added = (np.concatenate([getattr(other, name), getattr(self, name)]) for name in COLUMNS)
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = np.concatenate([other.weight, self.weight])
        return Triplets(source, kind, target, added, weight)

    @property
    def first(self) -> NDArray[np.bool_]:
        """Where an edge differs from the one before it; the first always does."""
        first = np.ones(len(self), bool)
        for column in (self.source, self.kind, self.target):
            first[1:] &= column[1:] == column[:-1]
        first[1:] = ~first[1:]
        return first


def whole_groups(batches: Iterator[Triplets]) -> Iterator[Triplets]:
    """Cut batches anew, so that equal edges are never in two pieces."""
    waiting: Triplets | None = None
    for batch in batches:
        rows = batch if waiting is None else batch.after(waiting)
        last = int(np.flatnonzero(rows.first)[-1]) if len(rows) else 0
        if last:
            yield rows.take(slice(0, last))
        waiting = rows.take(slice(last, None))
    if waiting is not None and len(waiting):
        yield waiting


@dataclass
class Csr:
    """The arrays of a graph, as far as they are written."""

    folder: Path
    order: Order
    num_repeated: int = 0
    differing: int = 0
    node: int = -1  # the last whose offset is written
    writers: dict[str, ArrayWriter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds: dict[str, Any] = {
            "indptr": np.int64,
            "neighbour": np.int32,
            "edge_type": np.int16 if self.order.num_types < 2**15 else np.int32,
        }
        kinds |= {"weight": np.float32} if self.order.weighted else {}
        self.writers = {name: ArrayWriter(self.folder, name, kind) for name, kind in kinds.items()}

    def append(self, rows: Triplets) -> None:
        first = rows.first
        starts = np.flatnonzero(first)
        listed = np.add.reduceat((rows.added == 0).astype(np.int64), starts)
        self.num_repeated += int(np.maximum(listed - 1, 0).sum())
        kept = rows.take(starts)
        if rows.weight is not None:
            self.writers["weight"].append(self._weights(rows, first, kept))
        nodes = np.arange(self.node + 1, int(kept.source[-1]) + 1)
        self.writers["indptr"].append(self.writers["neighbour"].length + np.searchsorted(kept.source, nodes))
        self.node = int(kept.source[-1])
        self.writers["neighbour"].append(kept.target)
        self.writers["edge_type"].append(kept.kind)

    def _weights(self, rows: Triplets, first: NDArray[np.bool_], kept: Triplets) -> NDArray[np.float32]:
        """Add up the weights of equal edges; an edge that is listed keeps its own, whatever its reverse has."""
        assert rows.weight is not None
        begins = first | np.concatenate([[True], rows.added[1:] != rows.added[:-1]])
        total = np.add.reduceat(rows.weight, np.flatnonzero(begins))
        if total.max() > FLOAT32.max:
            at = int(np.flatnonzero(begins)[total.argmax()])
            raise GraphError(
                f"the weights of the repeated edge from node {rows.source[at]} to node {rows.target[at]} add up to "
                f"{total.max():.3g}, but at most {FLOAT32.max:.0e} fits. Rescale the weights."
            )
        sums = total.astype(np.float32)
        chosen = first[begins]
        again = np.flatnonzero(~chosen)  # the added half of an edge that is listed too
        self.differing += int((sums[again] != sums[again - 1]).sum())
        found: NDArray[np.float32] = sums[chosen]
        return found

    def finish(self) -> dict[str, Any]:
        """Return what was written, and what was counted on the way."""
        rest = self.order.num_nodes - self.node
        self.writers["indptr"].append(np.full(rest, self.writers["neighbour"].length))
        if pairs := self.differing // 2:
            warn_of_differing_weights(pairs, stacklevel=4)
        arrays = {name: writer.finish() for name, writer in self.writers.items()}
        return {"arrays": arrays, "num_repeated": self.num_repeated}


def write_csr(connection: "duckdb.DuckDBPyConnection", indexed: str, order: Order, folder: Path) -> dict[str, Any]:
    """Sort edges, and write the arrays of a graph as they come."""
    csr = Csr(folder, order)
    batches = connection.sql(order.query(indexed)).to_arrow_reader(BATCH_ROWS)
    for rows in whole_groups(order.triplets(batch) for batch in batches):
        csr.append(rows)
    return csr.finish()
