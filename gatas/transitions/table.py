"""`Transitions`: T⁽⁰⁾ … T⁽ᶜ⁾ as rows of (node, path, step, probability), in memory, mapped from disk, or on demand."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GraphError, StoreError, TransitionError
from gatas.graph import Graph, NodeIds
from gatas.graph.inputs import Ints, as_array, as_count, as_indices
from gatas.graph.saved import id_arrays, stored_ids, structure_fingerprint
from gatas.graph.storage import Store, open_store, write_store
from gatas.progress import ProgressCallback
from gatas.transitions.build import Builder, Kind, Rows, Walks, check_settings
from gatas.transitions.cost import Caps, entry_bytes, estimate_cost, walks_by_step, walks_cost
from gatas.transitions.watching import watcher

SHARD_ENTRIES = 1 << 26
"""Entries per stored shard at most, unless one row has more: some 600 MB."""


@dataclass(frozen=True, eq=False)
class Row:
    """One target's candidates, ascending by (path, node) and so by step; the first is its self-loop."""

    node: NDArray[np.int32]
    path: NDArray[np.int64]
    step: NDArray[np.int8]
    probability: NDArray[np.float32]
    dropped_mass: NDArray[np.float32]  # (C + 1,) by step


@dataclass(frozen=True, kw_only=True)
class Setting(Walks):
    """What a table was built for: how its rows are to be read."""

    num_nodes: int
    relation_names: tuple[str, ...]
    node_ids: NodeIds | None
    graph_fingerprint: str

    @classmethod
    def of(cls, graph: Graph, walks: Walks) -> "Setting":
        return cls.made(walks, graph, structure_fingerprint(graph))

    @classmethod
    def made(cls, walks: Walks, graph: Graph, fingerprint: str) -> "Setting":
        """Make the setting of a graph whose fingerprint is known."""
        return cls(
            **vars(walks),
            num_nodes=graph.num_nodes,
            relation_names=graph.relation_names,
            node_ids=graph.node_ids,
            graph_fingerprint=fingerprint,
        )


class TransitionSource(Protocol):
    """What a sampler needs, wherever the rows come from."""

    @property
    def setting(self) -> Setting: ...

    def row(self, target: int) -> Row: ...

    def rows(self, targets: Any) -> Rows: ...


@dataclass(frozen=True, eq=False)
class Transitions:
    """A table with a row for each target, in one or more shards."""

    setting: Setting
    shards: tuple[Rows, ...]
    targets: Ints | None = None  # ascending; None: every node has a row

    @classmethod
    def build(
        cls,
        graph: Graph,
        num_steps: int = 3,
        kind: Kind = "walk",
        targets: Any = None,
        max_candidates: Caps = None,
        num_threads: int | None = None,
        *,
        max_degree: int | None = None,
        revisits: bool = False,
        device: str | None = None,
        progress: ProgressCallback | None = None,
    ) -> "Transitions":
        """Compute T⁽⁰⁾ … T⁽ᶜ⁾ exactly (§3.3).

        `kind="count"` counts shortest typed walks instead of multiplying probabilities. `targets` limits the rows,
        `max_candidates` keeps the likeliest of each (target, step) and records the mass of the rest; a tuple has a number for
        each step. Walks do not go on through nodes with more than `max_degree` edges, whose mass is recorded too. With
        `revisits` a node may be met again one step after it was first met (the target never is): neighbours occur at step 1
        and, over walks of two steps, at step 2. `device` runs it in torch. Refused if the table would not fit in memory.
        """
        progress = progress or watcher()
        walks = Walks(num_steps, kind, listed(max_candidates), max_degree, revisits)
        check_settings(walks, num_threads)
        setting = Setting.of(graph, walks)
        chosen = None if targets is None else np.unique(checked_targets(targets, graph.num_nodes))
        wanted = np.arange(graph.num_nodes) if chosen is None else chosen
        if device is not None:
            from gatas.transitions.on_device import build_rows

            report = progress or (lambda share: None)
            return cls(setting, (build_rows(graph, walks, wanted, device, report),), chosen)
        builder = Builder(graph, walks, num_threads)
        cost = estimate_cost(graph, num_steps, wanted, max_candidates, max_degree)
        return cls(setting, (builder.rows(wanted, cost, progress),), chosen)

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = False) -> "Transitions":
        """Map a saved table; `verify` reads every byte and checks its sum."""
        store = open_store(Path(folder), "transitions", verify=verify)
        try:
            return cls._assembled(store)
        except StoreError:
            raise
        except (GraphError, TransitionError, ValueError, TypeError, IndexError) as error:
            raise StoreError(f"{folder} is damaged: {error} Build the table again.") from error

    @classmethod
    def _assembled(cls, store: Store) -> "Transitions":
        names = store.parameter("relation_names")
        setting = Setting(
            **vars(stored_walks(store)),
            num_nodes=as_count(store.parameter("num_nodes"), "num_nodes"),
            relation_names=tuple(str(name) for name in names),
            node_ids=stored_ids(store.arrays),
            graph_fingerprint=str(store.parameter("graph_fingerprint")),
        )
        check_settings(setting)
        shards = []
        for number in range(as_count(store.parameter("num_shards"), "num_shards")):
            part = [store.array(shard_column(number, column)) for column in COLUMNS]
            shards.append(_checked_shard(Rows(setting.num_steps, *part), store.folder, number))
        table = cls(setting, tuple(shards), store.arrays.get("targets"))
        expected = setting.num_nodes if table.targets is None else len(table.targets)
        if not shards or table.num_rows != expected or not isinstance(names, list) or not names:
            raise StoreError(f"{store.folder} has {table.num_rows} rows for {expected} targets. Build the table again.")
        return table

    def save(self, folder: str | Path, *, overwrite: bool = False, shard_entries: int = SHARD_ENTRIES) -> None:
        """Write a folder of .npy shards with a manifest: all of it, or nothing."""
        setting = self.setting
        pieces = [piece for shard in self.shards for piece in _cut(shard, shard_entries)]
        arrays = {
            shard_column(number, column): getattr(piece, column) for number, piece in enumerate(pieces) for column in COLUMNS
        }
        arrays |= id_arrays(setting.node_ids)
        if self.targets is not None:
            arrays["targets"] = self.targets
        write_store(Path(folder), "transitions", arrays, parameters_of(setting, len(pieces)), overwrite=overwrite)

    @property
    def num_rows(self) -> int:
        return sum(shard.num_rows for shard in self.shards)

    @property
    def num_entries(self) -> int:
        return sum(len(shard.node) for shard in self.shards)

    @property
    def num_bytes(self) -> int:
        return sum(getattr(shard, column).nbytes for shard in self.shards for column in COLUMNS)

    def row(self, target: int) -> Row:
        """Return the candidates of one node."""
        return only_row(self.rows([target]))

    def rows(self, targets: Any) -> Rows:
        """Return the candidates of several nodes, in the order asked for, which may repeat."""
        positions = self.positions(checked_targets(targets, self.setting.num_nodes))
        shard = np.searchsorted(self._first_rows, positions, side="right") - 1
        return _gather(self.shards, shard, positions - self._first_rows[shard])

    @cached_property
    def _first_rows(self) -> Ints:
        return np.cumsum([0, *(shard.num_rows for shard in self.shards[:-1])])

    def positions(self, targets: Ints) -> Ints:
        """Return the position of each target's row."""
        if self.targets is None:
            return targets
        positions = np.searchsorted(self.targets, targets)
        found = np.take(self.targets, positions, mode="clip") == targets if len(self.targets) else targets < 0
        if not found.all():
            raise TransitionError(
                f"node {targets[np.argmin(found)]} has no row: the table was built for {len(self.targets)} of "
                f"{self.setting.num_nodes} nodes. Build it with that node among `targets`."
            )
        return positions

    def __repr__(self) -> str:
        setting = self.setting
        return f"Transitions({self.num_rows:,} rows, {self.num_entries:,} entries, {setting.num_steps} steps, {setting.kind})"


class OnDemand:
    """Rows computed when they are asked for, with the interface of `Transitions`: nothing is stored."""

    def __init__(
        self,
        graph: Graph,
        num_steps: int = 3,
        kind: Kind = "walk",
        max_candidates: Caps = None,
        num_threads: int | None = None,
        *,
        max_degree: int | None = None,
        revisits: bool = False,
        scratch: Path | None = None,
    ) -> None:
        """Make a graph ready for walking; what that takes lies in memory, or in nameless files of a `scratch` folder."""
        walks = Walks(num_steps, kind, listed(max_candidates), max_degree, revisits)
        check_settings(walks, num_threads)
        self.setting = Setting.of(graph, walks)
        try:
            self.builder = Builder(graph, walks, num_threads, scratch=scratch)
            self.walks = walks_by_step(graph, num_steps, max_degree, scratch)
        except OSError as error:
            raise TransitionError(f"{scratch} cannot be written to ({error.strerror or error}). Make room there.") from error
        self.entry_bytes = entry_bytes(graph.num_relations, num_steps)

    def row(self, target: int) -> Row:
        """Return the candidates of one node."""
        return only_row(self.rows([target]))

    def rows(self, targets: Any) -> Rows:
        """Return the candidates of several nodes, in the order asked for, which may repeat."""
        wanted = checked_targets(targets, self.setting.num_nodes)
        walks = np.stack([of_step[wanted] for of_step in self.walks], axis=1)
        return self.builder.rows(wanted, walks_cost(walks, self.setting.max_candidates, self.entry_bytes))


def opened_for(graph: Graph, folder: Path, walks: Walks) -> Transitions:
    """Open a stored table, which must be of this graph and have these settings."""
    table = Transitions.open(folder)
    wanted, found = Setting.of(graph, walks), table.setting
    for name in (*vars(walks), "graph_fingerprint"):
        if getattr(found, name) != getattr(wanted, name):
            raise TransitionError(
                f"{folder} has {name} {getattr(found, name)!r}, but {getattr(wanted, name)!r} is asked for. Build the table "
                "again, or change the settings."
            )
    return table


def stored_walks(store: Store) -> Walks:
    """Return the settings of walks that a store was built with; older stores have neither `max_degree` nor `revisits`."""
    num_steps, caps = as_count(store.parameter("num_steps"), "num_steps"), listed(store.parameter("max_candidates"))
    given = store.parameters
    return Walks(num_steps, store.parameter("kind"), caps, given.get("max_degree"), given.get("revisits", False))


def listed(caps: Caps) -> Caps:
    """Return a list of caps as a tuple, which can be compared; a single cap is returned as it is."""
    return tuple(caps) if isinstance(caps, Sequence) else caps


COLUMNS = ("indptr", "node", "path", "probability", "dropped_mass")


def parameters_of(setting: Setting, num_shards: int) -> dict[str, Any]:
    """Return the parameters of a stored table, in the form that JSON gives back."""
    caps = setting.max_candidates
    return {
        "num_nodes": setting.num_nodes,
        "num_steps": setting.num_steps,
        "kind": setting.kind,
        "max_candidates": list(caps) if isinstance(caps, Sequence) else caps,
        "max_degree": setting.max_degree,
        "revisits": setting.revisits,
        "relation_names": list(setting.relation_names),
        "graph_fingerprint": setting.graph_fingerprint,
        "num_shards": num_shards,
    }


def only_row(rows: Rows) -> Row:
    """Return the first of several rows, with paths as int64."""
    stop = int(rows.indptr[rows.num_steps + 1])
    return Row(
        rows.node[:stop],
        rows.path[:stop].astype(np.int64),
        rows.step[:stop],
        rows.probability[:stop],
        rows.dropped_mass[0],
    )


def checked_targets(targets: Any, num_nodes: int) -> Ints:
    """Return indices of nodes as int64; what is no index of a node is refused."""
    array = as_array(targets)
    if array.ndim > 1 or (array.size and array.dtype.kind not in "iu"):
        raise TransitionError(
            f"targets are {array.dtype} of shape {array.shape}; expected a list of node indices. Graph.index_of gives the "
            "index of an id, np.flatnonzero those of a mask."
        )
    try:
        indices = as_indices(np.atleast_1d(array), "target", "target {}".format)
    except GraphError as error:
        raise TransitionError(str(error)) from error
    if indices.size and indices.max() >= num_nodes:
        raise TransitionError(f"target {indices.max()} is not a node; indices are 0 to {num_nodes - 1}.")
    return indices


def _gather(shards: tuple[Rows, ...], shard: Ints, row: Ints) -> Rows:
    """Copy rows out of their shards, in the order asked for."""
    num_levels = shards[0].num_steps + 1
    level = row[:, None] * num_levels + np.arange(num_levels)
    counts = np.empty(level.shape, np.int64)
    for number, rows in enumerate(shards):
        here = shard == number
        counts[here] = rows.indptr[level[here] + 1] - rows.indptr[level[here]]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    result = Rows(
        shards[0].num_steps,
        indptr,
        np.empty(indptr[-1], np.int32),
        np.empty(indptr[-1], shards[0].path.dtype),
        np.empty(indptr[-1], np.float32),
        np.empty(level.shape, np.float32),
    )
    for out, (number, at) in enumerate(zip(shard.tolist(), row.tolist(), strict=True)):
        rows = shards[number]
        first, last = rows.indptr[at * num_levels], rows.indptr[(at + 1) * num_levels]
        into = slice(indptr[out * num_levels], indptr[(out + 1) * num_levels])
        for column in ("node", "path", "probability"):
            getattr(result, column)[into] = getattr(rows, column)[first:last]
        result.dropped_mass[out] = rows.dropped_mass[at]
    return result


def _cut(rows: Rows, shard_entries: int) -> list[Rows]:
    """Cut rows into shards of whole rows."""
    num_levels = rows.num_steps + 1
    ends = rows.indptr[::num_levels]
    pieces: list[Rows] = []
    first = 0
    while first < rows.num_rows or not pieces:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + shard_entries, side="right")) - 1)
        last = min(last, rows.num_rows)
        indptr = rows.indptr[first * num_levels : last * num_levels + 1]
        entries = slice(indptr[0], indptr[-1])
        pieces.append(
            Rows(
                rows.num_steps,
                indptr - indptr[0],
                rows.node[entries],
                rows.path[entries],
                rows.probability[entries],
                rows.dropped_mass[first:last],
            )
        )
        first = last
    return pieces


def shard_column(number: int, column: str) -> str:
    """Return the name of a stored array."""
    return f"shard-{number:05d}-{column}"


def _checked_shard(rows: Rows, folder: Path, number: int) -> Rows:
    lengths = {len(rows.node), len(rows.path), len(rows.probability), int(rows.indptr[-1]) if rows.indptr.size else -1}
    whole = rows.dropped_mass.shape == (rows.num_rows, rows.num_steps + 1)
    if len(lengths) > 1 or not whole or rows.indptr[0] != 0 or (np.diff(rows.indptr) < 0).any():
        raise StoreError(f"{folder}: the arrays of shard {number} do not fit together. Build the table again.")
    return rows
