"""`Nearby`: rows of some nodes of a graph, over no more of it than their walks can reach."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.graph import Graph
from gatas.graph.edges import EdgeList
from gatas.graph.extended import ExtendedGraph, joined_lists, local_graph
from gatas.graph.inputs import Ints
from gatas.transitions.build import Builder, Rows
from gatas.transitions.cost import count_walks, entry_bytes, walks_cost
from gatas.transitions.table import Row, Setting, checked_targets, only_row

MOST = 0.5
"""The share of all edges from which on it is cheaper to make all of the graph ready, once."""


class Nearby:
    """Rows computed when they are asked for, with the interface of `Transitions`; the last are kept for the next draw.

    The nodes within reach are numbered anew in their order, so that sums run as over the whole graph: rows are the same bits.
    """

    def __init__(self, graph: Graph | ExtendedGraph, setting: Setting) -> None:
        self.graph = graph
        self.setting = replace(setting, num_nodes=graph.num_nodes, node_ids=None, graph_fingerprint="")
        self._whole: tuple[Builder, NDArray[np.float64]] | None = None
        self._last: tuple[Ints, Rows] | None = None

    def row(self, target: int) -> Row:
        """Return the candidates of one node."""
        return only_row(self.rows([target]))

    def rows(self, targets: Any) -> Rows:
        """Return the candidates of several nodes, in the order asked for, which may repeat."""
        wanted = checked_targets(targets, self.setting.num_nodes)
        if self._last is None or not np.array_equal(self._last[0], wanted):
            self._last = wanted, self._made(wanted)
        return self._last[1]

    def _made(self, wanted: Ints) -> Rows:
        reached = None if self._whole is not None else self._within_reach(wanted)
        if reached is None:
            self._whole = self._whole or self._ready(self.graph if isinstance(self.graph, Graph) else self.graph.joined())
            return self._rows(*self._whole, wanted)
        nodes, edges = reached
        source, target = np.searchsorted(nodes, edges.source), np.searchsorted(nodes, edges.target)
        near = local_graph(replace(edges, source=source, target=target), len(nodes), self.graph.edge_type_names)
        rows = self._rows(*self._ready(near), np.searchsorted(nodes, wanted))
        return replace(rows, node=nodes[rows.node].astype(np.int32))

    def _within_reach(self, wanted: Ints) -> tuple[Ints, EdgeList] | None:
        """Nodes that walks from some can come to, ascending, and the edges these go over; None if that is most of all."""
        nodes = frontier = np.unique(wanted)
        found: list[EdgeList] = []
        for _ in range(self.setting.num_steps):
            found.append(self.graph.edges_from(frontier))
            if sum(map(len, found)) > MOST * self.graph.num_edges:
                return None
            frontier = np.setdiff1d(found[-1].target, nodes)
            nodes = np.union1d(nodes, frontier)
        return nodes, joined_lists(found)

    def _ready(self, graph: Graph) -> tuple[Builder, NDArray[np.float64]]:
        """A graph to be walked, and how many walks leave each node."""
        setting = self.setting
        builder = Builder(graph, setting, None)
        return builder, count_walks(graph, setting.num_steps, setting.max_degree)

    def _rows(self, builder: Builder, walks: NDArray[np.float64], wanted: Ints) -> Rows:
        bytes_per_entry = entry_bytes(builder.graph.num_relations, self.setting.num_steps)
        return builder.rows(wanted, walks_cost(walks[wanted], self.setting.max_candidates, bytes_per_entry))
