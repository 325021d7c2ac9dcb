"""`Grown`: a graph with a few more nodes and edges, made without copying it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GraphError
from gatas.graph.edges import EdgeList, collapsed, without_zeros
from gatas.graph.graph import Graph
from gatas.graph.inputs import Ints
from gatas.graph.names import as_number, as_text, refuse_unknown


@dataclass(frozen=True, eq=False)
class MoreNames:
    """Ids of a graph's nodes and of new ones after them: integers if all are, or else text."""

    graph: Graph
    new: tuple[int | str, ...]
    whole: bool

    @classmethod
    def of(cls, graph: Graph, names: list[Any]) -> "MoreNames | None":
        """None where old nodes are known by their numbers, and the new have the next."""
        numbers = [as_number(name) for name in names]
        if graph.node_names is None and numbers == list(range(graph.num_nodes, graph.num_nodes + len(names))):
            return None
        whole = None not in numbers and (graph.node_names is None or graph.node_names.whole)
        new = numbers if whole else [as_text(name) for name in names]
        if None in new:
            raise GraphError(f"the id {names[new.index(None)]!r} is neither an integer below 2^63 nor text. Give another.")
        more = cls(graph, tuple(new), whole)  # type: ignore[arg-type]
        if len(more.places) < len(more.new) or any(graph.place(name) >= 0 for name in more.new):
            twice = next(name for k, name in enumerate(more.new) if graph.place(name) >= 0 or name in more.new[:k])
            raise GraphError(f"the id {twice!r} names more than one node. Ids must be distinct.")
        return more

    @cached_property
    def places(self) -> dict[int | str, int]:
        """Of new nodes by their ids."""
        return {name: self.graph.num_nodes + k for k, name in enumerate(self.new)}

    def take(self, nodes: Any) -> list[int | str]:
        """The ids of several nodes."""
        found: list[int | str] = []
        for node in np.asarray(nodes).tolist():
            name = self.new[node - self.graph.num_nodes] if node >= self.graph.num_nodes else self.graph.name(node)
            found.append(name if self.whole else str(name))
        return found

    def find(self, names: list[Any]) -> Ints:
        """The nodes that carry these ids; integers may be written as text, and text that is a number as an integer."""
        wanted = [as_number(name) if self.whole else as_text(name) for name in names]
        found = [-1 if name is None else self.places.get(name, -1) for name in wanted]
        found = [self.graph.place(names[k]) if place < 0 else place for k, place in enumerate(found)]
        if -1 in found:
            old = self.graph.node_names
            refuse_unknown(names[found.index(-1)], [*self.new, *(range(self.graph.num_nodes) if old is None else old.tolist())])
        return np.array(found, np.int64)


class Grown:
    """A graph and, after its own, new nodes; new edges may join any of them. It has what answers need of a `Graph`.

    Only nodes that new edges start from have a list of edges of their own; of all others the graph's is read.
    """

    def __init__(self, graph: Graph, names: list[Any]) -> None:
        self.graph, self.num_nodes = graph, graph.num_nodes + len(names)
        self.node_names = MoreNames.of(graph, names)
        self.edge_type_names, self.relation_names = graph.edge_type_names, graph.relation_names
        self.changed = np.empty(0, np.int64)
        self.own = graph.edges_from(self.changed)

    def add(self, source: Ints, edge_type: Ints, target: Ints, weight: NDArray[np.float32] | None) -> None:
        """New edges, once; what repeats another collapses, as in every graph."""
        given = without_zeros(EdgeList(source, edge_type, target, weight))
        self.changed = np.unique(given.source)
        before = self.graph.edges_from(self.changed[self.changed < self.graph.num_nodes])
        self.own = collapsed(joined_lists([before, given]), self.num_nodes, "collapse")

    @property
    def num_edges(self) -> int:
        old = self.changed[self.changed < self.graph.num_nodes]
        return self.graph.num_edges - int((self.graph.indptr[old + 1] - self.graph.indptr[old]).sum()) + len(self.own)

    def edges_from(self, nodes: Ints) -> EdgeList:
        """All edges of some nodes."""
        changed = np.isin(nodes, self.changed)
        old = nodes[~changed & (nodes < self.graph.num_nodes)]
        return joined_lists([self.graph.edges_from(old), self.own.take(np.isin(self.own.source, nodes[changed]))])

    def joined(self) -> Graph:
        """All of it as a graph, whose nodes are known by their numbers."""
        edges = self.edges_from(np.arange(self.num_nodes))
        return local_graph(edges, self.num_nodes, self.edge_type_names)

    def name(self, node: int) -> int | str:
        """The id a user knows this node by."""
        return int(node) if self.node_names is None else self.node_names.take([node])[0]

    def find(self, name: int | str) -> int:
        """The node with this id; an integer written as text will do."""
        if self.node_names is not None:
            return int(self.node_names.find([name])[0])
        number = as_number(name)
        if number is None or not 0 <= number < self.num_nodes:
            raise GraphError(f"there is no node {name!r}; nodes are numbered 0 to {self.num_nodes - 1}.")
        return number


def local_graph(edges: EdgeList, num_nodes: int, edge_type_names: tuple[str, ...]) -> Graph:
    """A graph of edges that are in order already, or nearly."""
    return Graph.from_edges(
        edges.source,
        edges.target,
        edges.edge_type,
        num_nodes=num_nodes,
        weight=edges.weight,
        edge_type_names=edge_type_names,
    )


def joined_lists(parts: list[EdgeList]) -> EdgeList:
    """Edges of several lists, one after another."""
    columns = [[getattr(part, name) for part in parts] for name in ("source", "edge_type", "target")]
    source, kind, target = (np.concatenate(column) for column in columns)
    weights = [part.weight for part in parts if part.weight is not None]
    return EdgeList(source, kind, target, np.concatenate(weights) if weights else None)
