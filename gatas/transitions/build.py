"""Rows of transitions, counted and filled by the kernels in blocks of equal work, on any number of threads."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GatasWarning, TransitionError
from gatas.graph import Graph
from gatas.graph.arrays import collected
from gatas.graph.inputs import Ints, frozen
from gatas.ops.threads import available_threads
from gatas.progress import ProgressCallback
from gatas.transitions import kernels
from gatas.transitions.cost import (
    COUNTABLE_WALKS,
    NO_LIMIT,
    Caps,
    Cost,
    caps_by_step,
    entry_bytes,
    fits,
    node_slices,
    path_dtype,
    refuse_if_too_large,
    table_bytes,
)

Kind = Literal["walk", "count"]

BLOCK_WALKS = 1 << 24
"""Walks per block at most: some tenths of a second, after which a build can be interrupted."""

SMALL_WALKS = 5e4
"""Walks per block at least: a millisecond or two, beside some tenths of one for passing a block to a thread."""

LONG_BUILD_WALKS = 1e11
"""From here on, minutes or hours: said before it starts."""

MANY_NODES = 1 << 18
"""From here on masses lie on pages, so that memory goes by what a row meets. Below, where all take 2 MiB, it is no quicker."""


@dataclass(frozen=True)
class Walks:
    """Which walks make a row, and how much is kept of it."""

    num_steps: int
    kind: Kind = "walk"
    max_candidates: Caps = None  # of each step
    max_degree: int | None = None  # of nodes that walks go on through
    revisits: bool = False  # whether a node may be met again one step after it was first met


@dataclass(frozen=True, eq=False)
class Rows:
    """Transitions of several targets, one after another, each ascending by (path, node) and so by step.

    Step t of row r is the slice `indptr[r * (C + 1) + t] : indptr[r * (C + 1) + t + 1]`.
    """

    num_steps: int
    indptr: Ints  # (rows · (C + 1) + 1,)
    node: NDArray[np.int32]
    path: NDArray[Any]  # the smallest integers that hold them
    probability: NDArray[np.float32]  # T⁽ᵗ⁾ at the entry's step
    dropped_mass: NDArray[np.float32]  # (rows, C + 1) what max_candidates and max_degree left out of each T⁽ᵗ⁾

    @property
    def num_rows(self) -> int:
        return (len(self.indptr) - 1) // (self.num_steps + 1)

    @property
    def step(self) -> NDArray[np.int8]:
        """Return the step of every entry."""
        steps = np.tile(np.arange(self.num_steps + 1, dtype=np.int8), self.num_rows)
        return np.repeat(steps, np.diff(self.indptr))


class Builder:
    """A graph made ready for walking: builds the rows of any targets."""

    def __init__(
        self,
        graph: Graph,
        walks: Walks,
        num_threads: int | None,
        adjacency: kernels.Adjacency | None = None,  # where it was made before
        scratch: Path | None = None,
    ) -> None:
        self.graph = graph
        self.num_steps = walks.num_steps
        self.caps = caps_by_step(walks.max_candidates, walks.num_steps)
        self.max_degree = walks.max_degree or NO_LIMIT
        self.num_threads = num_threads or available_threads()
        self.path_dtype = path_dtype(graph.num_relations, walks.num_steps)
        self.adjacency = adjacency or adjacency_in_runs(graph, walks, scratch)
        self._spare: list[kernels.Workspace] = []

    def rows(self, targets: Ints, cost: Cost, progress: ProgressCallback | None = None) -> Rows:
        """Fill rows into room for the most that they may have; where there is no such room, count them first.

        Refuses what would not fit, before and after counting.
        """
        if cost.num_walks > COUNTABLE_WALKS:
            refuse_if_too_large(cost.num_entries, cost.num_bytes, "up to")
        if cost.num_walks > LONG_BUILD_WALKS:
            warnings.warn(
                f"the build looks at {cost.num_walks:.2g} edges, at 5e7 to 3e8 a second and core. Fewer steps or targets make "
                "it shorter, and max_degree does; max_candidates saves memory, not time.",
                GatasWarning,
                stacklevel=3,
            )
        blocks = equal_blocks(cost.walks, self.num_threads)
        report = progress or (lambda share: None)
        if fits(cost.num_bytes):
            return self._filled(targets, blocks, np.floor(cost.entries.sum(axis=1)).astype(np.int64), report)
        counts = np.zeros((len(targets), self.num_steps + 1), np.int64)

        def count(first: int, last: int) -> None:
            wanted, out = targets[first:last], counts[first:last]
            with self._workspace() as workspace:
                kernels.count_rows(self.adjacency, workspace, wanted, self.num_steps, self.max_degree, out)

        self._run(count, blocks, lambda share: report(0.4 * share))
        kept = np.minimum(counts, self.caps).sum(axis=1)
        total = int(kept.sum())
        bytes_per_entry = entry_bytes(self.graph.num_relations, self.num_steps)
        refuse_if_too_large(total, table_bytes(total, counts.size, bytes_per_entry), "exactly")
        return self._filled(targets, blocks, kept, lambda share: report(0.4 + 0.6 * share))

    def _filled(self, targets: Ints, blocks: list[tuple[int, int]], most: Ints, report: ProgressCallback) -> Rows:
        """Fill rows of at most so many entries each. Room that is not needed is never written to, and let go of."""
        num_steps = self.num_steps
        counts = np.zeros((len(targets), num_steps + 1), np.int64)
        dropped_mass = np.zeros((len(targets), num_steps + 1), np.float32)
        room = int(most.sum())
        node, path, probability = np.empty(room, np.int32), np.empty(room, self.path_dtype), np.empty(room, np.float32)
        start = np.concatenate([[0], np.cumsum(most, dtype=np.int64)])

        def fill(first: int, last: int) -> None:
            own = slice(start[first], start[last])
            with self._workspace() as workspace:
                kernels.fill_rows(
                    self.adjacency,
                    workspace,
                    targets[first:last],
                    num_steps,
                    self.max_degree,
                    self.caps,
                    counts[first:last],
                    node[own],
                    path[own],
                    probability[own],
                    dropped_mass[first:last],
                )

        self._run(fill, blocks, report)
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        for array in (node, path, probability):
            for first, last in blocks:  # each block is written without gaps; those between blocks are closed
                size = indptr[last * (num_steps + 1)] - (at := indptr[first * (num_steps + 1)])
                if at < start[first]:
                    array[at : at + size] = array[start[first] : start[first] + size]
            array.resize(indptr[-1], refcheck=False)
        return Rows(num_steps, indptr, node, path, probability, dropped_mass)

    def _run(self, work: Callable[[int, int], None], blocks: list[tuple[int, int]], report: ProgressCallback) -> None:
        if len(blocks) == 1 or self.num_threads == 1:
            for done, block in enumerate(blocks, 1):
                work(*block)
                report(done / len(blocks))
            return
        pool = _pool(self.num_threads, os.getpid())
        waiting = [pool.submit(work, *block) for block in blocks]
        try:
            for done, block_done in enumerate(as_completed(waiting), 1):
                block_done.result()
                report(done / len(blocks))
        except BaseException:  # Ctrl-C among them: what has not begun never does
            for not_begun in waiting:
                not_begun.cancel()
            wait(waiting)
            raise

    @contextmanager
    def _workspace(self) -> Iterator[kernels.Workspace]:
        """One that no other thread has; kept for later blocks, unless an error may have left marks in it."""
        try:
            workspace = self._spare.pop()
        except IndexError:
            workspace = self._new_workspace()
        yield workspace
        self._spare.append(workspace)

    def _new_workspace(self) -> kernels.Workspace:
        num_nodes, num_types = self.graph.num_nodes, self.graph.num_edge_types
        node_words, type_words = num_nodes // kernels.WORD + 1, num_types // kernels.WORD + 1
        node_words = -(-node_words // kernels.WORD) * kernels.WORD  # whole words of `met_words`, which may all be marked
        many, met_words = num_nodes >= MANY_NODES, node_words // kernels.WORD
        return kernels.Workspace(
            mass=np.zeros(0 if many else num_nodes, np.float64),
            met=np.zeros(node_words, np.uint64),
            met_words=np.zeros(met_words, np.uint64),
            met_parts=np.zeros(met_words // kernels.WORD + 1 if many else 0, np.uint64),
            place=np.empty(node_words if many else 0, np.uint32),
            seen=np.zeros(node_words, np.uint64),
            types=np.empty(num_types, np.int32),
            type_bits=np.zeros(type_words, np.uint64),
            type_words=np.zeros(type_words // kernels.WORD + 1, np.uint64),
            first_run=np.empty(num_types, np.int64),
        )


@lru_cache(maxsize=2)
def _pool(num_threads: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay: to start them for every batch takes about as long as its rows. A forked process has its own."""
    return ThreadPoolExecutor(num_threads, thread_name_prefix="rows")


def adjacency_in_runs(graph: Graph, walks: Walks, scratch: Path | None = None) -> kernels.Adjacency:
    """The graph's edges, with the runs of equal type among each node's edges and what a node's mass is scaled by.

    With a `scratch` folder the arrays lie in files there, which have no names any more: they go when they are let go of.
    """
    arrays = collected(_runs(graph, walks), RUN_DTYPES, scratch)
    return adjacency_of(graph, walks, {name: frozen(array) for name, array in arrays.items()})  # frozen, as stored ones are


def adjacency_of(graph: Graph, walks: Walks, runs: dict[str, NDArray[Any]]) -> kernels.Adjacency:
    """Put a graph's edges and their runs together, always of the same types, so that kernels are compiled once."""
    return kernels.Adjacency(
        neighbour=graph.neighbour,
        weight=frozen(np.empty(0, np.float32)) if graph.weight is None else graph.weight,
        num_relations=graph.num_relations,
        counts=walks.kind == "count",
        revisits=walks.revisits,
        **runs,
    )


RUN_DTYPES = {"run_indptr": np.int64, "run_type": np.int32, "run_start": np.int64, "scale": np.float64}


def _runs(graph: Graph, walks: Walks) -> Iterator[dict[str, NDArray[Any]]]:
    """Some nodes at a time, so that a mapped graph is never copied whole. With revisits, self-edges are runs of type -1."""
    count = 0
    yield {"run_indptr": np.zeros(1, np.int64)}
    for first, last in node_slices(graph):
        start, stop = int(graph.indptr[first]), int(graph.indptr[last])
        source = np.repeat(np.arange(last - first), np.diff(graph.indptr[first : last + 1]))
        types = graph.edge_type[start:stop]
        begins = np.ones(stop - start, bool)
        begins[1:] = (types[1:] != types[:-1]) | (source[1:] != source[:-1])
        if walks.revisits:
            to_itself = source + first == graph.neighbour[start:stop]
            types = np.where(to_itself, -1, types)
            begins |= to_itself
            begins[1:] |= to_itself[:-1]
        at = np.flatnonzero(begins)
        per_node = np.bincount(source[at], minlength=last - first)
        scale = np.ones(last - first) if walks.kind == "count" else inverse_degree(graph, first, last)
        run_indptr = count + np.cumsum(per_node)
        count += len(at)
        yield {"run_indptr": run_indptr, "run_type": types[at], "run_start": start + at, "scale": scale}
    yield {"run_start": np.array([graph.num_edges])}


def inverse_degree(graph: Graph, first: int, last: int) -> NDArray[np.float64]:
    """1 / (total weight of a node's edges), of nodes `first` to `last`.

    Self-edges count in no degree; a node without other edges gets 0.
    """
    start, stop = graph.indptr[first], graph.indptr[last]
    source = np.repeat(np.arange(last - first), np.diff(graph.indptr[first : last + 1]))
    weight = (source + first != graph.neighbour[start:stop]).astype(np.float64)
    if graph.weight is not None:
        weight *= graph.weight[start:stop]
    degree = np.bincount(source, weight, minlength=last - first)
    return np.divide(1.0, degree, out=np.zeros(last - first), where=degree > 0)


def equal_blocks(work: NDArray[np.float64], num_threads: int) -> list[tuple[int, int]]:
    """Consecutive ranges of rows of about equal work, several for each thread if there is enough of it."""
    if not len(work):
        return []
    total = np.cumsum(work + 50.0)  # a row costs something even if it has no edges
    count = max(1, min(8 * num_threads, int(total[-1] / SMALL_WALKS)), int(np.ceil(total[-1] / BLOCK_WALKS)))
    cuts = np.searchsorted(total, np.linspace(0, total[-1], count + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [len(work)]])).tolist()
    return list(pairwise(edges))


def check_settings(walks: Walks, num_threads: int | None = None) -> None:
    """Refuse settings that make no sense."""
    num_steps, max_candidates = walks.num_steps, walks.max_candidates
    if walks.kind not in ("walk", "count"):
        raise TransitionError(f"kind is {walks.kind!r}; expected 'walk' (the paper's) or 'count' (shortest walks counted).")
    _check_positive("num_steps", num_steps, "")
    caps = max_candidates if isinstance(max_candidates, Sequence) else (max_candidates,)
    if len(caps) not in (1, num_steps):
        raise TransitionError(
            f"max_candidates has {len(caps)} numbers for {num_steps} steps; expected one for each, or one for all."
        )
    for cap in caps if max_candidates is not None else ():
        _check_positive("max_candidates", cap, ", or None to keep all")
    if walks.max_degree is not None:
        _check_positive("max_degree", walks.max_degree, ", or None to go on through all nodes")
    if not isinstance(walks.revisits, bool):
        raise TransitionError(f"revisits is {walks.revisits!r}; expected True (nodes may be met again a step later) or False.")
    if num_threads is not None:
        _check_positive("num_threads", num_threads, ", or None for all cores")


def _check_positive(name: str, value: Any, otherwise: str) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= NO_LIMIT:
        raise TransitionError(f"{name} is {value!r}; expected a whole number from 1 on{otherwise}.")
