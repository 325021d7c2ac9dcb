"""`Graph`: typed directed edges in CSR, the ids of nodes, and which edge type is the inverse of which."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GraphError
from gatas.graph.counts import counted
from gatas.graph.edges import (
    MAX_NODES,
    EdgeList,
    Repeated,
    checked_range,
    collapsed,
    inverse_names,
    listed_edges,
    numbered_types,
    with_inverse_types,
    with_reverses,
    without_zeros,
)
from gatas.graph.ids import NodeIds, as_integer, index_among
from gatas.graph.inputs import Ints, Where, as_array, as_count, kept, sealed

SLICE = 1 << 20
"""Values that are checked at once: a mapped graph is larger than memory."""

SELF_LOOP = 0
"""Relation 0, added to every node (§3.1); relation k + 1 is the data's edge type k."""

NO_INVERSE = -1
"""What `Graph.inverse_of` holds for an edge type whose edges have no counterpart in the other direction."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A typed directed multigraph. Immutable; checked once, here.

    The edges of node i are `neighbour[indptr[i]:indptr[i + 1]]`, ascending by (edge_type, neighbour), each at most once.
    Nodes have an index from 0 on, and the id that users know them by. `inverse_of[k]` is the edge type that edges of type k
    have in the other direction: another type, k itself where edges are undirected, or -1.
    """

    indptr: Ints  # (N + 1,)
    neighbour: NDArray[np.int32]  # (E,)
    edge_type: NDArray[Any]  # (E,) int16, or int32 from 32,768 types on
    num_edge_types: int
    weight: NDArray[np.float32] | None = None  # (E,)
    node_ids: NodeIds | None = None  # None: the ids are the indices
    edge_type_names: tuple[str, ...] = ()
    inverse_of: tuple[int, ...] = ()  # by edge type
    num_repeated: int = 0  # listed edges that were repeats of another

    def __post_init__(self) -> None:
        for name in ("indptr", "neighbour", "edge_type", "weight"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, kept(as_array(array)))
        self._check_edges()
        if self.node_ids is not None and len(self.node_ids) != self.num_nodes:
            raise GraphError(f"{len(self.node_ids)} node ids were given for {self.num_nodes} nodes.")
        self._check_edge_types()

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
        node_ids: NodeIds | Sequence[int] | Sequence[str] | None = None,
        edge_type_names: Sequence[str] = (),
        inverse_of: Sequence[int] | None = None,
        where: Where = "edge {}".format,
    ) -> "Graph":
        """Make a graph from integer arrays.

        Args:
            source: Index of the node that each edge starts from.
            target: Index of the node that each edge points to.
            edge_type: Type of each edge, from 0 on; all edges are of one type if it is left out.
            num_nodes: Number of nodes; one more than the largest index if it is left out.
            num_edge_types: Number of edge types; if it is left out, types that do not occur are renumbered away.
            weight: Positive weight of each edge.
            inverse: Give every edge type an inverse type of its own, with every edge in the other direction.
            undirected: Add the reverse of every edge under the same type.
            repeated: `"collapse"` makes one edge of repeats (their weights add up), `"count"` makes a weight of their number.
            node_ids: The ids that users know nodes by; indices if left out.
            edge_type_names: A name for each type; the type's number if left out.
            inverse_of: For edges that the data itself lists in both directions: the type that each type has in the other
                direction, -1 for none. Known without being given where `inverse` or `undirected` is set.
            where: Names the place of an edge in error messages.

        >>> Graph.from_edges([0, 0, 1], [1, 2, 2], undirected=True).num_edges
        6
        """
        if inverse and undirected:
            raise GraphError("inverse and undirected were both asked for; choose one: types of their own, or the same type.")
        if inverse_of is not None and (inverse or undirected):
            raise GraphError("inverse_of was given beside inverse or undirected, which say it themselves. Leave one out.")
        if repeated not in ("collapse", "count"):
            raise GraphError(f"repeated is {repeated!r}; expected 'collapse' or 'count'.")
        edges = listed_edges(source, target, edge_type, weight, where)
        num_nodes = checked_range(edges, num_nodes, where)
        types, names = numbered_types(edges.edge_type, num_edge_types, edge_type_names, where)
        edges = collapsed(without_zeros(replace(edges, edge_type=types)), num_nodes, repeated)
        if inverse:
            edges = with_inverse_types(edges, len(names), num_nodes)
            inverse_of = (*range(len(names), 2 * len(names)), *range(len(names)))
            names = (*names, *inverse_names(names))
        if undirected:
            edges = with_reverses(edges, num_nodes)
            inverse_of = range(len(names))
        counts = np.bincount(edges.source, minlength=num_nodes)
        return cls(
            indptr=sealed(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])),
            neighbour=sealed(edges.target.astype(np.int32)),
            edge_type=sealed(edges.edge_type.astype(np.int16 if len(names) < 2**15 else np.int32)),
            num_edge_types=len(names),
            weight=edges.weight,
            node_ids=NodeIds.of(node_ids) if node_ids is not None and not isinstance(node_ids, NodeIds) else node_ids,
            edge_type_names=names,
            inverse_of=() if inverse_of is None else tuple(inverse_of),
            num_repeated=edges.num_repeated,
        )

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = False) -> "Graph":
        """Map a saved graph into memory; `verify` reads every byte and compares its checksum."""
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
    def source(self) -> NDArray[np.int32]:
        """(E,) the node each edge starts from."""
        return np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.indptr))

    def edges_from(self, nodes: Ints) -> EdgeList:
        """Return all edges of some nodes, in their order."""
        first = self.indptr[nodes]
        degree = self.indptr[nodes + 1] - first
        edge = np.arange(degree.sum()) + np.repeat(first - np.cumsum(degree) + degree, degree)
        kind, target = self.edge_type[edge].astype(np.int64), self.neighbour[edge].astype(np.int64)
        return EdgeList(np.repeat(nodes, degree), kind, target, None if self.weight is None else self.weight[edge])

    def without_edges(self, mask: Any) -> "Graph":
        """Return the graph without the edges where `mask`, a truth value for each edge in the graph's order, is true.

        >>> Graph.from_edges([0, 0, 1], [1, 2, 2]).without_edges([False, True, False]).neighbour.tolist()
        [1, 2]
        """
        left_out = as_array(mask)
        if left_out.dtype != bool or left_out.shape != (self.num_edges,):
            raise GraphError(
                f"the mask is {left_out.dtype} of shape {left_out.shape}; expected a truth value for each of "
                f"{self.num_edges} edges."
            )
        stays = ~left_out
        before = np.concatenate([[0], np.cumsum(stays, dtype=np.int64)])
        return replace(
            self,
            indptr=sealed(before[self.indptr]),
            neighbour=sealed(self.neighbour[stays]),
            edge_type=sealed(self.edge_type[stays]),
            weight=None if self.weight is None else sealed(self.weight[stays]),
        )

    @property
    def original_edge_types(self) -> list[int]:
        """Edge types as the data has them: of two types that are each other's inverse, the first."""
        return [kind for kind, inverse in enumerate(self.inverse_of) if inverse in (NO_INVERSE, kind) or inverse > kind]

    def id_of(self, index: int) -> int | str:
        """Return the id that a user knows this node by."""
        if isinstance(index, float | str) or not 0 <= index < self.num_nodes:
            raise GraphError(f"there is no node with index {index!r}; indices are 0 to {self.num_nodes - 1}.")
        return int(index) if self.node_ids is None else self.node_ids[index]

    def index_of(self, node_id: int | str) -> int:
        """Return the index of the node with this id; an integer written as text will do."""
        if self.node_ids is not None:
            return int(self.node_ids.indices([node_id])[0])
        return index_among(node_id, self.num_nodes)

    def get_index(self, node_id: int | str) -> int:
        """Return the index of the node with this id, or -1. Quick for callers that look up again and again."""
        if self.node_ids is not None:
            return self.node_ids.get(node_id)
        index = as_integer(node_id)
        return index if index is not None and 0 <= index < self.num_nodes else -1

    def __repr__(self) -> str:
        sizes = f"{counted(self.num_nodes, 'node')}, {counted(self.num_edges, 'edge')}"
        types = counted(self.num_edge_types, "edge type")
        return f"Graph({sizes}, {types}{', weighted' if self.weight is not None else ''})"

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
        """Check bounds and order, in slices, so that a mapped graph is never copied whole."""
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

    def _check_edge_types(self) -> None:
        names = self.edge_type_names or tuple(str(number) for number in range(self.num_edge_types))
        inverse_of = self.inverse_of or (NO_INVERSE,) * self.num_edge_types
        object.__setattr__(self, "edge_type_names", names)
        object.__setattr__(self, "inverse_of", tuple(int(inverse) for inverse in inverse_of))
        if len(names) != self.num_edge_types:
            raise GraphError(f"{len(names)} edge type names were given for {self.num_edge_types} types.")
        if len(set(names)) != self.num_edge_types:
            twice = next(name for name in names if names.count(name) > 1)
            raise GraphError(f"two edge types are named {twice!r}. Names must be distinct: rename one of them.")
        if len(inverse_of) != self.num_edge_types:
            raise GraphError(
                f"inverse_of has {len(inverse_of)} values for {self.num_edge_types} edge types. Give one for each."
            )
        for kind, inverse in enumerate(self.inverse_of):
            known = inverse == NO_INVERSE or (0 <= inverse < self.num_edge_types and self.inverse_of[inverse] == kind)
            if not known:
                raise GraphError(
                    f"inverse_of[{kind}] is {inverse}; expected -1, or a type of which {kind} is the inverse in turn."
                )


def _slices(length: int) -> list[tuple[int, int]]:
    """Cut so that what is computed of a slice is small."""
    return [(first, min(first + SLICE, length)) for first in range(0, length, SLICE)]
