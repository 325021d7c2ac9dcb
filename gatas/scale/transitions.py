"""The transitions of all nodes: parts are rows, the whole is the store that one process would write."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import StoreError
from gatas.graph import Graph
from gatas.graph.saved import KINDS, id_arrays
from gatas.graph.storage import NamedArrays, Streamed, open_store, store_fingerprint, write_store
from gatas.scale.parts import Part
from gatas.scale.task import Job, Outline
from gatas.transitions import OnDemand
from gatas.transitions.build import Kind
from gatas.transitions.cost import Caps, table_bytes
from gatas.transitions.prepared import Prepared, prepared
from gatas.transitions.table import COLUMNS, SHARD_ENTRIES, parameters_of, shard_column

WALK_SECONDS, ENTRY_SECONDS = 2.2e-8, 4e-7
"""Processor seconds, about, for one walk and for one entry that is kept: measured in docs/scale.md."""
PIECE = 1 << 22
"""Entries that are copied at a time."""


@dataclass(frozen=True)
class TransitionsTask:
    """T⁽⁰⁾ … T⁽ᶜ⁾ of a stored graph."""

    graph: str
    num_steps: int = 3
    kind: Kind = "walk"
    max_candidates: Caps = None
    max_degree: int | None = None
    revisits: bool = False
    device: str | None = None
    shard_entries: int = SHARD_ENTRIES

    name = "transitions"

    @property
    def data(self) -> Path:
        return Path(self.graph)

    def identity(self) -> dict[str, Any]:
        return {
            "task": self.name,
            "graph": store_fingerprint(Path(self.graph), KINDS),
            "num_steps": self.num_steps,
            "kind": self.kind,
            "max_candidates": self.max_candidates,
            "max_degree": self.max_degree,
            "revisits": self.revisits,
            "device": self.device,
        }

    def outline(self, scratch: Path) -> Outline:
        limits: Any = {"max_candidates": self.max_candidates, "max_degree": self.max_degree, "revisits": self.revisits}
        source = OnDemand(Graph.open(self.graph), self.num_steps, self.kind, **limits, scratch=scratch)
        return Outline(row_seconds(source), num_bytes(source), 1, *prepared(source))

    def arrays(self, job: Job, part: Part, threads: int) -> NamedArrays:
        graph, source = _opened(Path(self.graph), job.folder, job.key, threads)
        targets = np.arange(part.first, part.last)
        if self.device is None:
            rows = source.rows(targets)
        else:
            from gatas.transitions.on_device import build_rows

            rows = build_rows(graph, source.setting, targets, self.device, lambda share: None)
        return {column: getattr(rows, column) for column in COLUMNS}

    def assemble(self, job: Job, out: Path, overwrite: bool) -> dict[str, Any]:
        _, source = _opened(Path(self.graph), job.folder, job.key, 1)
        shards = shards_of(job, self.num_steps, self.shard_entries)
        arrays: dict[str, Any] = {
            shard_column(number, column): streamed(job, shard, column, self.num_steps)
            for number, shard in enumerate(shards)
            for column in COLUMNS
        }
        arrays |= id_arrays(source.setting.node_ids)
        parameters = parameters_of(source.setting, len(shards))
        try:
            write_store(out, "transitions", arrays, parameters, overwrite=overwrite)
        except StoreError:
            if not _is_there(out, arrays, parameters):  # another driver of this job may have been quicker
                raise
        num_bytes = sum(array.nbytes for name, array in arrays.items() if name.startswith("shard-"))
        entries = sum(piece.num_entries for shard in shards for piece in shard)
        return {"rows": source.setting.num_nodes, "entries": entries, "bytes": num_bytes}


def row_seconds(source: OnDemand) -> NDArray[np.float64]:
    """Estimate the seconds that each node's row takes to make."""
    seconds = np.full(source.setting.num_nodes, ENTRY_SECONDS)
    for walks, cap in zip(source.walks, source.builder.caps, strict=True):
        seconds += WALK_SECONDS * walks + ENTRY_SECONDS * np.minimum(walks, cap)
    return seconds


def num_bytes(source: OnDemand) -> float:
    """Return the largest size that the table can have, in bytes."""
    setting, entries = source.setting, 0.0
    for walks, cap in zip(source.walks, source.builder.caps, strict=True):
        entries += float(np.minimum(walks, cap).sum())
    return table_bytes(entries, setting.num_nodes * (setting.num_steps + 1), source.entry_bytes)


@lru_cache(maxsize=1)
def _opened(graph: Path, folder: Path, key: str, threads: int) -> tuple[Graph, Prepared]:
    """Open what all parts share, mapped once in a process."""
    opened = Graph.open(graph)
    return opened, Prepared(opened, open_store(folder / "plan", "plan"), threads)


@dataclass(frozen=True)
class Piece:
    """Some rows of a part, and their entries there."""

    part: Part
    first_row: int
    last_row: int
    first_entry: int
    last_entry: int

    @property
    def num_entries(self) -> int:
        return self.last_entry - self.first_entry


def shards_of(job: Job, num_steps: int, shard_entries: int) -> list[list[Piece]]:
    """Cut shards as in a table that is saved whole, whatever the parts are."""
    shards: list[list[Piece]] = [[]]
    room = shard_entries
    for part in job.parts:
        ends = np.array(job.read(part).array("indptr")[:: num_steps + 1])
        row, rows = 0, len(ends) - 1
        while row < rows:
            last = int(np.searchsorted(ends, ends[row] + room, side="right")) - 1
            if last <= row and shards[-1]:
                shards.append([])
                room = shard_entries
                continue
            last = max(last, row + 1)  # one row may be larger than a shard
            shards[-1].append(Piece(part, row, last, int(ends[row]), int(ends[last])))
            room -= int(ends[last] - ends[row])
            row = last
    return shards


def streamed(job: Job, shard: list[Piece], column: str, num_steps: int) -> Streamed:
    """Return a shard's column, as it is copied from the parts."""
    num_rows, num_entries = sum(piece.last_row - piece.first_row for piece in shard), sum(piece.num_entries for piece in shard)
    dtype = job.read(shard[0].part).array(column).dtype
    shape = {"indptr": (num_rows * (num_steps + 1) + 1,), "dropped_mass": (num_rows, num_steps + 1)}.get(column, (num_entries,))
    return Streamed(dtype, shape, lambda: pieces_of(job, shard, column, num_steps + 1))


def pieces_of(job: Job, shard: list[Piece], column: str, num_levels: int) -> Iterator[NDArray[Any]]:
    offset = 0
    if column == "indptr":
        yield np.zeros(1, np.int64)
    for piece in shard:
        array = job.read(piece.part).array(column)
        if column == "indptr":
            for levels in _some(piece.first_row * num_levels + 1, piece.last_row * num_levels + 1):
                yield array[levels] + (offset - piece.first_entry)
            offset += piece.num_entries
        elif column == "dropped_mass":
            yield from (array[rows] for rows in _some(piece.first_row, piece.last_row))
        else:
            yield from (array[entries] for entries in _some(piece.first_entry, piece.last_entry))


def _some(first: int, last: int) -> Iterator[slice]:
    return (slice(start, min(start + PIECE, last)) for start in range(first, last, PIECE))


def _is_there(out: Path, arrays: dict[str, Any], parameters: dict[str, Any]) -> bool:
    """Whether a store holds arrays of these shapes, with these parameters."""
    try:
        store = open_store(out, "transitions")
    except StoreError:
        return False
    shapes = {name: (array.dtype, tuple(array.shape)) for name, array in arrays.items()}
    return parameters == store.parameters and shapes == {name: (a.dtype, a.shape) for name, a in store.arrays.items()}
