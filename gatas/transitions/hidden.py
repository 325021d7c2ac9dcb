"""Rows of the graph without some links, so that links asked for in training are hidden as those of a test are.

The links are dealt into folds. While the links of one fold are asked for, rows come from the graph that has none of them: not
in the other direction, not under the inverse type, and with no path through them. One table serves a whole fold, and the next
fold's is made in the background.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import TransitionError
from gatas.graph import Graph
from gatas.graph.inputs import Ints
from gatas.transitions.build import Walks, check_settings
from gatas.transitions.cost import available_memory
from gatas.transitions.table import OnDemand, Transitions, TransitionSource, checked_targets

KEPT_SHARE = 0.25
"""The share of the memory available at the start that finished tables may take together."""


def link_edges(
    graph: Graph, edge_types: Any, source: Any, kind: Any, target: Any, *, reverse: bool = False
) -> NDArray[np.bool_]:
    """Return which of the graph's edges, in its order, are the given links.

    Args:
        graph: The graph that may hold the links as edges.
        edge_types: The graph's edge type of each type of link; -1 where it has none.
        source: Index of the node that each link starts from.
        kind: Type of each link.
        target: Index of the node that each link points to.
        reverse: Also take the reverses of links, under the same type, for data that holds both out together.

    An edge that is a link walked back (of the inverse type, or of the same where edges are undirected) is taken too.
    """
    edges = _edges_of_links(graph, edge_types, source, kind, target, reverse)
    mask = np.zeros(graph.num_edges, bool)
    mask[edges[edges >= 0]] = True
    return mask


def assign_folds(num_links: int, num_folds: int, seed: int, *, group: Any = None) -> Ints:
    """Deal links into folds of equal size, in an order drawn from the seed; links of the same `group` share a fold."""
    if num_folds < 1:
        raise TransitionError(f"num_folds is {num_folds}; expected a whole number from 1 on.")
    groups = np.arange(num_links) if group is None else np.unique(group, return_inverse=True)[1]
    if len(groups) != num_links:
        raise TransitionError(f"group has {len(groups)} values for {num_links} links. Give one for each.")
    sizes = np.bincount(groups)
    order = np.random.default_rng([seed % 2**64, num_links, num_folds]).permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    fold_of_group = np.empty(len(sizes), np.int64)
    fold_of_group[order] = before * num_folds // max(num_links, 1)
    return fold_of_group[groups]


def link_groups(source: Any, kind: Any, target: Any, *, reverse: bool = False) -> Ints:
    """Number links so that repeats of a link have the same number, and with `reverse` a link and its reverse too."""
    first, last, kinds = (np.asarray(column, np.int64) for column in (source, target, kind))
    if reverse:
        first, last = np.minimum(first, last), np.maximum(first, last)
    order = np.lexsort((last, first, kinds))
    columns = np.stack([kinds[order], first[order], last[order]])
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(np.append(False, (columns[:, 1:] != columns[:, :-1]).any(axis=0)))[: len(order)]
    return group


class HiddenFolds:
    """Transitions of a graph without the links of a fold, for each of several folds.

    Tables are made by one thread in the background. Finished ones are kept while all of them fit in a share of memory; beyond
    that, only the one asked for last and the one announced last are.
    """

    def __init__(
        self,
        graph: Graph,
        walks: Walks,
        source: Any,
        kind: Any,
        target: Any,
        fold: Any,
        edge_types: Any,
        *,
        reverse: bool = False,
        on_demand: bool = False,
        device: str | None = None,
        num_threads: int | None = None,
        kept_bytes: float | None = None,
    ) -> None:
        """Find the edges of all links. Finished tables take `kept_bytes`, or a quarter of the available memory, at most."""
        check_settings(walks, num_threads)
        if on_demand and device is not None:
            raise TransitionError(
                f"rows on demand are made where they are drawn from, but device {device!r} was given. Leave one out."
            )
        self.graph, self.walks = graph, walks
        self.on_demand, self.device, self.num_threads = on_demand, device, num_threads
        self._edges = _edges_of_links(graph, edge_types, source, kind, target, reverse)
        self._fold = _checked_folds(fold, len(self._edges))
        self._kept_bytes = KEPT_SHARE * available_memory() if kept_bytes is None else kept_bytes
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hidden-folds")
        self._tables: dict[int, Future[TransitionSource]] = {}
        self._lock = threading.Lock()
        self._present = self._next = -1

    @property
    def num_folds(self) -> int:
        return int(self._fold.max(initial=-1)) + 1

    def hidden_edges(self, fold: int) -> NDArray[np.bool_]:
        """Return which of the graph's edges are links of a fold."""
        edges = self._edges[self._fold == self._checked(fold)]
        mask = np.zeros(self.graph.num_edges, bool)
        mask[edges[edges >= 0]] = True
        return mask

    def graph_without(self, fold: int) -> Graph:
        """Return the graph without the links of a fold."""
        return self.graph.without_edges(self.hidden_edges(fold))

    def ahead(self, fold: int) -> None:
        """Make a fold's table in the background, unless it is at hand or being made."""
        with self._lock:
            self._next = self._checked(fold)
            self._asked(fold)

    def table(self, fold: int) -> TransitionSource:
        """Return the rows of the graph without the links of a fold; what went wrong in the background is raised here."""
        with self._lock:
            self._present = self._checked(fold)
            asked = self._asked(fold)
        table = asked.result()
        with self._lock:
            self._let_go()
        return table

    def close(self) -> None:
        """Let go of all tables, and end the thread once it is done with the present one. Happens by itself with the object."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._tables.clear()

    def _checked(self, fold: int) -> int:
        if not 0 <= fold < self.num_folds:
            raise TransitionError(f"there is no fold {fold}; folds are 0 to {self.num_folds - 1}.")
        return int(fold)

    def _asked(self, fold: int) -> "Future[TransitionSource]":
        """Return the only call that makes this fold's table; one that failed is made again."""
        known = self._tables.get(fold)
        if known is None or (known.done() and known.exception() is not None):
            self._let_go()
            known = self._tables[fold] = self._pool.submit(self._made, fold)
        return known

    def _made(self, fold: int) -> TransitionSource:
        graph, walks = self.graph_without(fold), self.walks
        limits: Any = {"max_degree": walks.max_degree, "revisits": walks.revisits}
        if self.on_demand:
            return OnDemand(graph, walks.num_steps, walks.kind, walks.max_candidates, self.num_threads, **limits)
        return Transitions.build(
            graph, walks.num_steps, walks.kind, None, walks.max_candidates, self.num_threads, **limits, device=self.device
        )

    def _let_go(self) -> None:
        """Drop the tables that are too many; the first that were made stay, so that some are at hand in every epoch."""
        total = 0
        for fold, made in list(self._tables.items()):
            if not made.done() or made.exception() is not None:
                continue
            total += held_bytes(made.result())
            if total > self._kept_bytes and fold not in (self._present, self._next):
                total -= held_bytes(made.result())
                del self._tables[fold]


def held_bytes(source: TransitionSource) -> int:
    """Return the bytes of memory that a source of rows holds."""
    if isinstance(source, Transitions):
        return source.num_bytes
    assert isinstance(source, OnDemand), type(source)
    arrays = [*source.walks, *(part for part in source.builder.adjacency if isinstance(part, np.ndarray))]
    return source.builder.graph.indptr.nbytes + sum(array.nbytes for array in arrays)


def _edges_of_links(graph: Graph, edge_types: Any, source: Any, kind: Any, target: Any, reverse: bool) -> Ints:
    """(links, 2 or 4) the edges that each link is: itself, and walked back; of its reverse too. -1 where there is none."""
    types = np.asarray(edge_types, np.int64)
    sources, targets = (checked_targets(column, graph.num_nodes) for column in (source, target))
    kinds = np.atleast_1d(np.asarray(kind))
    if not len(sources) == len(targets) == len(kinds):
        raise TransitionError(
            f"links have {len(sources)} sources, {len(kinds)} types and {len(targets)} targets; expected one of each for every "
            "link. Give columns of equal length."
        )
    if kinds.size and (kinds.dtype.kind not in "iu" or kinds.min() < 0 or kinds.max() >= len(types)):
        raise TransitionError(f"a link's type is not among the {len(types)} of edge_types (0 to {len(types) - 1}).")
    if types.size and (types.min() < -1 or types.max() >= graph.num_edge_types):
        raise TransitionError(f"edge_types holds a type outside 0 to {graph.num_edge_types - 1} that is not -1 either.")
    inverse_of = np.append(graph.inverse_of, -1).astype(np.int64)  # a type of -1 has the inverse -1
    forward, back = types[kinds.astype(np.int64)], inverse_of[types[kinds.astype(np.int64)]]
    places = [(sources, forward, targets), (targets, back, sources)]
    if reverse:
        places += [(targets, forward, sources), (sources, back, targets)]
    return np.stack([_edge_indices(graph, *place) for place in places], axis=1)


def _edge_indices(graph: Graph, source: Ints, edge_type: Ints, target: Ints) -> Ints:
    """Return the index of each edge, or -1, by bisection among the edges of its source: all at once, a halving at a time."""
    first, end = graph.indptr[source], graph.indptr[source + 1]
    last = end.copy()
    for _ in range(int((end - first).max(initial=0)).bit_length()):
        open_ = first < last
        middle = np.where(open_, (first + last) // 2, 0)
        kind, node = graph.edge_type[middle], graph.neighbour[middle]
        before = open_ & ((kind < edge_type) | ((kind == edge_type) & (node < target)))
        first, last = np.where(before, middle + 1, first), np.where(open_ & ~before, middle, last)
    found = np.minimum(first, max(graph.num_edges - 1, 0))
    if not graph.num_edges:
        return np.full(len(source), -1)
    there = (first < end) & (graph.edge_type[found] == edge_type) & (graph.neighbour[found] == target)
    return np.where(there, found, -1)


def _checked_folds(fold: Any, num_links: int) -> Ints:
    folds = np.atleast_1d(np.asarray(fold))
    if folds.shape != (num_links,) or (folds.size and (folds.dtype.kind not in "iu" or folds.min() < 0)):
        raise TransitionError(
            f"fold is {folds.dtype} of shape {folds.shape}; expected a whole number from 0 on for each of {num_links} links."
        )
    return folds.astype(np.int64)
