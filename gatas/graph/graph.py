"""`Graph`: typed directed edges in CSR, and whatever is known about the nodes."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError
from gatas.graph.edges import (
    MAX_NODES,
    EdgeList,
    Repeated,
    checked_range,
    collapsed,
    listed_edges,
    numbered_types,
    with_inverse_types,
    with_reverses,
    without_zeros,
)
from gatas.graph.inputs import Ints, Where, as_array, as_count, as_indices, kept, sealed
from gatas.graph.names import Names, as_number
from gatas.graph.nodes import NOTHING_KNOWN, NodeTable, node_place

SLICE = 1 << 20
"""Values that are checked at once: a mapped graph is larger than memory."""

SELF_LOOP = 0
"""Relation 0, added to every node (§3.1); relation k + 1 is the data's edge type k."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A typed directed multigraph, or several side by side. Immutable; checked once, here.

    The edges of node i are `neighbour[indptr[i]:indptr[i + 1]]`, ascending by (edge_type, neighbour), each at most once.
    """

    indptr: Ints  # (N + 1,)
    neighbour: NDArray[np.int32]  # (E,)
    edge_type: NDArray[Any]  # (E,) int16, or int32 from 32,768 types on
    num_edge_types: int
    weight: NDArray[np.float32] | None = None  # (E,)
    graph_id: NDArray[np.int32] | None = None  # (N,) from 0 on; no edge leaves its graph
    node_names: Names | None = None  # None: nodes are known by their numbers
    edge_type_names: tuple[str, ...] = ()
    nodes: NodeTable = NOTHING_KNOWN
    num_repeated: int = 0  # listed edges that were repeats of another

    def __post_init__(self) -> None:
        for name in ("indptr", "neighbour", "edge_type", "weight", "graph_id"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, kept(as_array(array)))
        self._check_edges()
        self._check_nodes()
        if not self.edge_type_names:
            object.__setattr__(self, "edge_type_names", tuple(str(number) for number in range(self.num_edge_types)))
        if len(self.edge_type_names) != self.num_edge_types:
            raise GraphError(f"{len(self.edge_type_names)} edge type names were given for {self.num_edge_types} types.")
        if len(set(self.edge_type_names)) != self.num_edge_types:
            twice = next(name for name in self.edge_type_names if self.edge_type_names.count(name) > 1)
            raise GraphError(f"two edge types are named {twice!r}. Names must be distinct: rename one of them.")

    @classmethod
    def from_edges(
        cls,
        source: Any,
        target: Any,
        edge_type: Any = None,
        *,
        num_nodes: int | None = None,
        num_edge_types: int | None = None,
        weight: Any = None,
        inverse: bool = False,
        undirected: bool = False,
        repeated: Repeated = "collapse",
        graph_id: Any = None,
        node_names: Names | Sequence[int] | Sequence[str] | None = None,
        edge_type_names: Sequence[str] = (),
        nodes: NodeTable | None = None,
        where: Where = "edge {}".format,
    ) -> "Graph":
        """Make a graph from integer arrays.

        `inverse` gives every type an inverse type of its own, `undirected` adds the reverse edge under the same type.
        Repeated edges collapse to one (their weights add up); `repeated="count"` makes a weight of their number.

        >>> Graph.from_edges([0, 0, 1], [1, 2, 2], undirected=True).num_edges
        6
        """
        if inverse and undirected:
            raise GraphError("inverse and undirected were both asked for; choose one: types of their own, or the same type.")
        if repeated not in ("collapse", "count"):
            raise GraphError(f"repeated is {repeated!r}; expected 'collapse' or 'count'.")
        edges = listed_edges(source, target, edge_type, weight, where)
        num_nodes = checked_range(edges, num_nodes, where)
        types, names = numbered_types(edges.edge_type, num_edge_types, edge_type_names, where)
        edges = collapsed(without_zeros(replace(edges, edge_type=types)), num_nodes, repeated)
        if inverse:
            edges = with_inverse_types(edges, len(names), num_nodes)
            names = (*names, *(f"{name}⁻¹" for name in names))
        if undirected:
            edges = with_reverses(edges, num_nodes)
        counts = np.bincount(edges.source, minlength=num_nodes)
        return cls(
            indptr=sealed(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])),
            neighbour=sealed(edges.target.astype(np.int32)),
            edge_type=sealed(edges.edge_type.astype(np.int16 if len(names) < 2**15 else np.int32)),
            num_edge_types=len(names),
            weight=edges.weight,
            graph_id=None if graph_id is None else _numbered_graphs(graph_id),
            node_names=Names.of(node_names) if node_names is not None and not isinstance(node_names, Names) else node_names,
            edge_type_names=names,
            nodes=NOTHING_KNOWN if nodes is None else nodes,
            num_repeated=edges.num_repeated,
        )

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = False) -> "Graph":
        """Map a saved graph into memory; `verify` reads every byte and checks its sum."""
        from gatas.graph.saved import open_graph

        return open_graph(Path(folder), verify=verify)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a folder of .npy files with a manifest: all of it, or nothing."""
        from gatas.graph.saved import save_graph

        save_graph(self, Path(folder), overwrite=overwrite)

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.neighbour)

    @property
    def num_relations(self) -> int:
        """|𝓡̃|: the data's edge types and the self-loop."""
        return self.num_edge_types + 1

    @property
    def relation_names(self) -> tuple[str, ...]:
        """Names by relation, the self-loop first."""
        return ("self" if "self" not in self.edge_type_names else "(self-loop)", *self.edge_type_names)

    @property
    def num_graphs(self) -> int:
        return 1 if self.graph_id is None else int(self.graph_id.max()) + 1

    @property
    def source(self) -> NDArray[np.int32]:
        """(E,) the node each edge starts from."""
        return np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.indptr))

    def edges_from(self, nodes: Ints) -> EdgeList:
        """All edges of some nodes, in their order."""
        first = self.indptr[nodes]
        degree = self.indptr[nodes + 1] - first
        edge = np.arange(degree.sum()) + np.repeat(first - np.cumsum(degree) + degree, degree)
        kind, target = self.edge_type[edge].astype(np.int64), self.neighbour[edge].astype(np.int64)
        return EdgeList(np.repeat(nodes, degree), kind, target, None if self.weight is None else self.weight[edge])

    def name(self, node: int) -> int | str:
        """The id a user knows this node by."""
        if isinstance(node, float | str) or not 0 <= node < self.num_nodes:
            raise GraphError(f"there is no node {node!r}; nodes are numbered 0 to {self.num_nodes - 1}.")
        return int(node) if self.node_names is None else self.node_names[node]

    def find(self, name: int | str) -> int:
        """The node with this id; an integer written as text will do."""
        if self.node_names is not None:
            return int(self.node_names.find([name])[0])
        number = as_number(name)
        if number is None or not 0 <= number < self.num_nodes:
            raise GraphError(f"there is no node {name!r}; nodes are numbered 0 to {self.num_nodes - 1}.")
        return number

    def place(self, name: int | str) -> int:
        """The same without complaint: -1 for an id that no node has. Quick for those who ask again and again."""
        if self.node_names is not None:
            return self.node_names.place(name)
        number = as_number(name)
        return number if number is not None and 0 <= number < self.num_nodes else -1

    def __repr__(self) -> str:
        return (
            f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} edges, {self.num_edge_types} edge types"
            f"{', weighted' if self.weight is not None else ''}"
            f"{f', {self.num_graphs} graphs' if self.graph_id is not None else ''})"
        )

    def _check_edges(self) -> None:
        columns = (
            ("indptr", self.indptr, ("int64",)),
            ("neighbour", self.neighbour, ("int32",)),
            ("edge_type", self.edge_type, ("int16", "int32")),
            ("weight", self.weight, ("float32",)),
        )
        for name, array, dtypes in columns:
            if array is not None and (array.ndim != 1 or array.dtype not in dtypes):
                expected = " or ".join(dtypes)
                raise GraphError(f"{name} has type {array.dtype} and shape {array.shape}; expected a vector of {expected}.")
            if name in ("edge_type", "weight") and array is not None and array.size != self.num_edges:
                raise GraphError(f"{name} has {array.size} values for {self.num_edges} edges. Give one per edge.")
        object.__setattr__(self, "num_edge_types", as_count(self.num_edge_types, "num_edge_types"))
        indptr = self.indptr
        if not 2 <= indptr.size <= MAX_NODES + 1:
            raise GraphError(f"the graph has {indptr.size - 1:,} nodes; expected 1 to {MAX_NODES:,}.")
        falls = any((indptr[first + 1 : last + 1] < indptr[first:last]).any() for first, last in _slices(self.num_nodes))
        if indptr[0] != 0 or indptr[-1] != self.num_edges or falls:
            raise GraphError(
                f"indptr must ascend from 0 to the number of edges, {self.num_edges}; it starts at {indptr[0]}, ends at "
                f"{indptr[-1]}{' and falls in between' if falls else ''}."
            )
        if self.num_edges:
            self._check_edge_values()

    def _check_edge_values(self) -> None:
        """Bounds and order, in slices, so that a mapped graph is never copied whole."""
        for first, last in _slices(self.num_edges):
            node, kind = self.neighbour[first:last], self.edge_type[first:last]
            if node.min() < 0 or node.max() >= self.num_nodes:
                raise GraphError(f"neighbour holds a node outside 0 to {self.num_nodes - 1}.")
            if kind.min() < 0 or kind.max() >= self.num_edge_types:
                raise GraphError(f"edge_type holds a type outside 0 to {self.num_edge_types - 1}.")
            before = max(first - 1, 0)
            node, kind = self.neighbour[before:last], self.edge_type[before:last]
            ascends = (kind[1:] > kind[:-1]) | ((kind[1:] == kind[:-1]) & (node[1:] > node[:-1]))
            begins = self.indptr[slice(*np.searchsorted(self.indptr, (before + 1, last)))]  # of a node, between two edges here
            ascends[begins - before - 1] = True
            if not ascends.all():
                raise GraphError("the edges of a node must ascend by (edge_type, neighbour), without repeats.")
            if self.weight is not None:
                weight = self.weight[first:last]
                if not (np.isfinite(weight) & (weight > 0)).all():
                    raise GraphError("weights must be positive and finite.")

    def _check_nodes(self) -> None:
        if self.nodes is NOTHING_KNOWN:
            object.__setattr__(self, "nodes", NodeTable(self.num_nodes))
        if self.nodes.num_nodes != self.num_nodes:
            raise GraphError(f"the node table has {self.nodes.num_nodes} rows, but the graph has {self.num_nodes} nodes.")
        if self.node_names is not None and len(self.node_names) != self.num_nodes:
            raise GraphError(f"{len(self.node_names)} node names were given for {self.num_nodes} nodes.")
        graph_id = self.graph_id
        if graph_id is None:
            return
        if graph_id.dtype != np.int32 or graph_id.shape != (self.num_nodes,) or graph_id.min() < 0:
            raise GraphError(
                f"graph_id has type {graph_id.dtype} and shape {graph_id.shape}; expected {self.num_nodes} int32 from 0 on."
            )
        source = self.source
        crossing = graph_id[source] != graph_id[self.neighbour]
        if crossing.any():
            at = int(np.argmax(crossing))
            raise GraphError(
                f"the edge from node {source[at]} to node {self.neighbour[at]} joins two graphs. "
                "Put both nodes into one graph, or remove the edge."
            )


def _slices(length: int) -> list[tuple[int, int]]:
    """Cut so that what is computed of a slice is small."""
    return [(first, min(first + SLICE, length)) for first in range(0, length, SLICE)]


def _numbered_graphs(graph_id: Any) -> NDArray[np.int32]:
    """Graphs from 0 without gaps."""
    given = as_indices(graph_id, "graph", node_place)
    used, numbers = np.unique(given, return_inverse=True)
    if used.size and used[-1] >= used.size:
        warnings.warn(
            f"graphs are numbered up to {used[-1]}, but only {used.size} occur; they were renumbered 0 to {used.size - 1}.",
            GatasWarning,
            stacklevel=3,
        )
    return numbers.astype(np.int32)
