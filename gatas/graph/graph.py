"""`Graph`: typed directed edges in CSR, and whatever is known about the nodes."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError
from gatas.graph.edges import (
    MAX_NODES,
    Repeated,
    checked_range,
    collapsed,
    listed_edges,
    with_inverse_types,
    with_reverses,
)
from gatas.graph.inputs import Ints, Where, as_indices, frozen
from gatas.graph.names import Names
from gatas.graph.nodes import NodeTable, node_place

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
    nodes: NodeTable = field(default=None)  # type: ignore[assignment]  # filled below: never None afterwards
    num_repeated: int = 0  # listed edges that were repeats of another

    def __post_init__(self) -> None:
        self._check_edges()
        self._check_nodes()
        if not self.edge_type_names:
            object.__setattr__(self, "edge_type_names", tuple(str(number) for number in range(self.num_edge_types)))
        if len(self.edge_type_names) != self.num_edge_types or len(set(self.edge_type_names)) != self.num_edge_types:
            raise GraphError(
                f"{len(set(self.edge_type_names))} distinct edge type names were given for {self.num_edge_types} types."
            )
        for name in ("indptr", "neighbour", "edge_type", "weight", "graph_id"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, frozen(array))

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
        compact, names = _numbered_types(edges.edge_type, num_edge_types, edge_type_names, where)
        edges = collapsed(replace(edges, edge_type=compact), num_nodes, repeated)
        if inverse:
            edges = with_inverse_types(edges, len(names), num_nodes)
            names = (*names, *(f"{name}⁻¹" for name in names))
        if undirected:
            edges = with_reverses(edges, num_nodes)
        counts = np.bincount(edges.source, minlength=num_nodes)
        return cls(
            indptr=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
            neighbour=edges.target.astype(np.int32),
            edge_type=edges.edge_type.astype(np.int16 if len(names) < 2**15 else np.int32),
            num_edge_types=len(names),
            weight=edges.weight,
            graph_id=None if graph_id is None else as_indices(graph_id, "graph", node_place).astype(np.int32),
            node_names=Names.of(node_names) if node_names is not None and not isinstance(node_names, Names) else node_names,
            edge_type_names=names,
            nodes=nodes if nodes is not None else NodeTable(num_nodes),
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
        return ("self", *self.edge_type_names)

    @property
    def num_graphs(self) -> int:
        return 1 if self.graph_id is None else int(self.graph_id.max()) + 1

    @property
    def source(self) -> NDArray[np.int32]:
        """(E,) the node each edge starts from."""
        return np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.indptr))

    def name(self, node: int) -> int | str:
        """The id a user knows this node by."""
        return int(node) if self.node_names is None else self.node_names[node]

    def find(self, name: int | str) -> int:
        """The node with this id; an integer written as text will do."""
        if self.node_names is not None:
            return int(self.node_names.find([name])[0])
        if not str(name).isdecimal() or int(name) >= self.num_nodes:
            raise GraphError(f"there is no node {name!r}; nodes are numbered 0 to {self.num_nodes - 1}.")
        return int(name)

    def __repr__(self) -> str:
        return (
            f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} edges, {self.num_edge_types} edge types"
            f"{', weighted' if self.weight is not None else ''}"
            f"{f', {self.num_graphs} graphs' if self.graph_id is not None else ''})"
        )

    def _check_edges(self) -> None:
        indptr, neighbour = np.asarray(self.indptr), np.asarray(self.neighbour)
        expected = (("indptr", indptr, "int64"), ("neighbour", neighbour, "int32"))
        for name, array, dtype in expected:
            if array.ndim != 1 or array.dtype != dtype:
                raise GraphError(f"{name} has type {array.dtype} and shape {array.shape}; expected a vector of {dtype}.")
        if self.edge_type.dtype not in (np.int16, np.int32):
            raise GraphError(f"edge_type has type {self.edge_type.dtype}; expected int16 or int32.")
        if not 2 <= indptr.size <= MAX_NODES + 1:
            raise GraphError(f"the graph has {indptr.size - 1:,} nodes; expected 1 to {MAX_NODES:,}.")
        if indptr[0] != 0 or indptr[-1] != neighbour.size or (np.diff(indptr) < 0).any():
            raise GraphError(f"indptr must ascend from 0 to the number of edges, {neighbour.size}; it ends at {indptr[-1]}.")
        for name in ("edge_type", "weight"):
            column = getattr(self, name)
            if column is not None and column.shape != neighbour.shape:
                raise GraphError(f"{name} has {column.shape} values for {neighbour.size} edges.")
        if neighbour.size:
            self._check_edge_values()

    def _check_edge_values(self) -> None:
        """Bounds and order, in slices, so that a mapped graph is never copied whole."""
        starts = np.zeros(self.num_edges, bool)
        starts[self.indptr[:-1][np.diff(self.indptr) > 0]] = True
        for first in range(0, self.num_edges, 1 << 24):
            last = min(first + (1 << 24), self.num_edges)
            node, kind = self.neighbour[first:last], self.edge_type[first:last]
            if node.min() < 0 or node.max() >= self.num_nodes:
                raise GraphError(f"neighbour holds a node outside 0 to {self.num_nodes - 1}.")
            if kind.min() < 0 or kind.max() >= self.num_edge_types:
                raise GraphError(f"edge_type holds a type outside 0 to {self.num_edge_types - 1}.")
            before = max(first - 1, 0)
            node, kind = self.neighbour[before:last], self.edge_type[before:last]
            ascends = (kind[1:] > kind[:-1]) | ((kind[1:] == kind[:-1]) & (node[1:] > node[:-1]))
            if not (ascends | starts[before + 1 : last]).all():
                raise GraphError("the edges of a node must ascend by (edge_type, neighbour), without repeats.")
            if self.weight is not None:
                weight = self.weight[first:last]
                if not (np.isfinite(weight) & (weight > 0)).all():
                    raise GraphError("weights must be positive and finite.")

    def _check_nodes(self) -> None:
        if self.nodes is None:
            object.__setattr__(self, "nodes", NodeTable(self.num_nodes))
        if self.nodes.num_nodes != self.num_nodes:
            raise GraphError(f"the node table has {self.nodes.num_nodes} rows, but the graph has {self.num_nodes} nodes.")
        if self.node_names is not None and len(self.node_names) != self.num_nodes:
            raise GraphError(f"{len(self.node_names)} node names were given for {self.num_nodes} nodes.")
        if self.graph_id is None:
            return
        if self.graph_id.shape != (self.num_nodes,) or self.graph_id.min() < 0:
            raise GraphError(f"graph_id has shape {self.graph_id.shape}; expected {self.num_nodes} numbers from 0 on.")
        crossing = self.graph_id[self.source] != self.graph_id[self.neighbour]
        if crossing.any():
            at = int(np.argmax(crossing))
            raise GraphError(
                f"the edge from node {self.source[at]} to node {self.neighbour[at]} joins two graphs. "
                "Put both nodes into one graph, or remove the edge."
            )


def _numbered_types(
    types: Ints, num_edge_types: int | None, names: Sequence[str], where: Where
) -> tuple[Ints, tuple[str, ...]]:
    """Edge types from 0 without gaps, and a name for each. A given number of types is taken as it is."""
    if num_edge_types is None and names:
        num_edge_types = len(names)
    if num_edge_types is not None:
        if types.size and types.max() >= num_edge_types:
            at = int(types.argmax())
            raise GraphError(
                f"{where(at)} has type {types[at]}, but there are {num_edge_types} types (0 to {num_edge_types - 1}). "
                f"Pass num_edge_types={types[at] + 1}, or renumber the types."
            )
        return types, tuple(names) or tuple(str(number) for number in range(num_edge_types))
    used, compact = np.unique(types, return_inverse=True)
    if used.size and used[-1] >= used.size:
        warnings.warn(
            f"edge types are numbered up to {used[-1]}, but only {used.size} occur; they were renumbered 0 to "
            f"{used.size - 1} and keep their numbers as names. Pass num_edge_types to keep the numbers.",
            GatasWarning,
            stacklevel=3,
        )
    return compact.astype(np.int64), tuple(str(number) for number in used)
