"""`ExtendedGraph`: a graph with a few more nodes and edges, made without copying it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GraphError
from gatas.graph.edges import EdgeList, collapsed, without_zeros
from gatas.graph.graph import Graph
from gatas.graph.ids import as_integer, as_text, index_among, refuse_unknown_id
from gatas.graph.inputs import Ints


@dataclass(frozen=True, eq=False)
class ExtendedIds:
    """Ids of a graph's nodes and of new ones after them: integers if all are, or else text."""

    graph: Graph
    new: tuple[int | str, ...]
    are_integers: bool

    @classmethod
    def of(cls, graph: Graph, ids: list[Any]) -> "ExtendedIds | None":
        """Return None where the ids of old nodes are their indices, and the new have the next."""
        integers = [as_integer(one) for one in ids]
        if graph.node_ids is None and integers == list(range(graph.num_nodes, graph.num_nodes + len(ids))):
            return None
        are_integers = None not in integers and (graph.node_ids is None or graph.node_ids.are_integers)
        new = integers if are_integers else [as_text(one) for one in ids]
        if None in new:
            raise GraphError(f"the id {ids[new.index(None)]!r} is neither an integer below 2^63 nor text. Give another.")
        extended = cls(graph, tuple(new), are_integers)  # type: ignore[arg-type]
        if len(extended._index) < len(extended.new) or any(graph.get_index(one) >= 0 for one in extended.new):
            twice = next(one for k, one in enumerate(extended.new) if graph.get_index(one) >= 0 or one in extended.new[:k])
            raise GraphError(f"duplicate id {twice!r}: ids must be distinct. Rename or remove one of the nodes.")
        return extended

    @cached_property
    def _index(self) -> dict[int | str, int]:
        """Return the index of each new node by its id."""
        return {one: self.graph.num_nodes + k for k, one in enumerate(self.new)}

    def take(self, indices: Any) -> list[int | str]:
        """Return the ids of nodes given by index."""
        found: list[int | str] = []
        for index in np.asarray(indices).tolist():
            one = self.new[index - self.graph.num_nodes] if index >= self.graph.num_nodes else self.graph.id_of(index)
            found.append(one if self.are_integers else str(one))
        return found

    def indices(self, ids: list[Any]) -> Ints:
        """Return the index of each id; integers may be written as text, and text that is a number as an integer."""
        wanted = [as_integer(one) if self.are_integers else as_text(one) for one in ids]
        found = [-1 if one is None else self._index.get(one, -1) for one in wanted]
        found = [self.graph.get_index(ids[k]) if index < 0 else index for k, index in enumerate(found)]
        if -1 in found:
            old = self.graph.node_ids
            refuse_unknown_id(
                ids[found.index(-1)], [*self.new, *(range(self.graph.num_nodes) if old is None else old.tolist())]
            )
        return np.array(found, np.int64)


class ExtendedGraph:
    """A graph with new nodes after its own; new edges may join any of them. It has what a `Predictor` needs of a `Graph`.

    Only nodes that new edges start from have a list of edges of their own; of all others the graph's is read.
    """

    def __init__(self, graph: Graph, ids: list[Any]) -> None:
        self.graph, self.num_nodes = graph, graph.num_nodes + len(ids)
        self.node_ids = ExtendedIds.of(graph, ids)
        self.edge_type_names, self.relation_names, self.inverse_of = (
            graph.edge_type_names,
            graph.relation_names,
            graph.inverse_of,
        )
        self.changed = np.empty(0, np.int64)
        self.own = graph.edges_from(self.changed)

    def add(self, source: Ints, edge_type: Ints, target: Ints, weight: NDArray[np.float32] | None) -> None:
        """Add edges, once; repeats collapse, as in every graph."""
        given = without_zeros(EdgeList(source, edge_type, target, weight))
        self.changed = np.unique(given.source)
        before = self.graph.edges_from(self.changed[self.changed < self.graph.num_nodes])
        self.own = collapsed(joined_lists([before, given]), self.num_nodes, "collapse")

    @property
    def num_edges(self) -> int:
        old = self.changed[self.changed < self.graph.num_nodes]
        return self.graph.num_edges - int((self.graph.indptr[old + 1] - self.graph.indptr[old]).sum()) + len(self.own)

    def edges_from(self, nodes: Ints) -> EdgeList:
        """Return all edges of some nodes."""
        changed = np.isin(nodes, self.changed)
        old = nodes[~changed & (nodes < self.graph.num_nodes)]
        return joined_lists([self.graph.edges_from(old), self.own.take(np.isin(self.own.source, nodes[changed]))])

    def joined(self) -> Graph:
        """Return old and new nodes as one graph, whose ids are the indices."""
        edges = self.edges_from(np.arange(self.num_nodes))
        return local_graph(edges, self.num_nodes, self.edge_type_names)

    def id_of(self, index: int) -> int | str:
        """Return the id that a user knows this node by."""
        return int(index) if self.node_ids is None else self.node_ids.take([index])[0]

    def index_of(self, node_id: int | str) -> int:
        """Return the index of the node with this id; an integer written as text will do."""
        if self.node_ids is not None:
            return int(self.node_ids.indices([node_id])[0])
        return index_among(node_id, self.num_nodes)


def local_graph(edges: EdgeList, num_nodes: int, edge_type_names: tuple[str, ...]) -> Graph:
    """Make a graph of edges that are in order already, or nearly."""
    return Graph.from_edges(
        edges.source,
        edges.target,
        edges.edge_type,
        num_nodes=num_nodes,
        weight=edges.weight,
        edge_type_names=edge_type_names,
    )


def joined_lists(parts: list[EdgeList]) -> EdgeList:
    """Join lists of edges, one after another."""
    columns = [[getattr(part, name) for part in parts] for name in ("source", "edge_type", "target")]
    source, kind, target = (np.concatenate(column) for column in columns)
    weights = [part.weight for part in parts if part.weight is not None]
    return EdgeList(source, kind, target, np.concatenate(weights) if weights else None)
