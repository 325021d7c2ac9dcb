"""What the data itself says of a node: type, classes or numbers, split, columns, edges and links; nothing is predicted."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets import Dataset, LinkTargets, NodeTargets, NumberTargets
from gatas.datasets.decoding import Value, decoded_columns
from gatas.datasets.encoded_columns import UNTYPED
from gatas.graph.inputs import Floats


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """An edge of a node, or a link that the model was trained or measured on; seen from the node."""

    type: str
    node: int | str
    weight: float | None
    in_graph: bool  # whether walks go over it
    split: str | None  # of a link that the model was trained or measured on


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node as the data has it; what is not known is None."""

    id: int | str
    type: str | None
    split: str | None
    labels: list[str] | None
    values: list[float | None] | None
    columns: dict[str, Value]
    num_columns: int | None  # None where no columns and edges were asked for
    edges: list[EdgeFacts]
    num_edges: int | None


class NodeDataReader:
    """Reads nodes of a data set by index."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset, self.graph = dataset, dataset.graph

    def read(self, node: int, top: int) -> KnownNode:
        """Return what is known of a node, with the first `top` columns and edges; none of them where `top` is 0."""
        columns, num_columns = self._columns(node, top) if top else ({}, None)
        edges, num_edges = self._edges(node, top) if top else ([], None)
        table = self.dataset.nodes
        return KnownNode(
            id=self.graph.id_of(node),
            type=None if table.node_type is None else table.node_type_names[table.node_type[node]],
            split=self._split(node),
            labels=self._labels(node),
            values=self._values(node),
            columns=columns,
            num_columns=num_columns,
            edges=edges,
            num_edges=num_edges,
        )

    @cached_property
    def _split_of(self) -> tuple[NDArray[np.int8], list[str]]:
        """Which split each node is in, -1 for none."""
        names, found = list(self.dataset.splits), np.full(self.graph.num_nodes, -1, np.int8)
        for number, name in enumerate(names):
            found[self.dataset.splits[name]] = number
        return found, names

    def _split(self, node: int) -> str | None:
        if isinstance(self.dataset.targets, LinkTargets):
            return None
        numbers, names = self._split_of
        return None if numbers[node] < 0 else names[numbers[node]]

    def _labels(self, node: int) -> list[str] | None:
        targets = self.dataset.targets
        if not isinstance(targets, NodeTargets):
            return None
        if targets.multi_label:
            return [targets.names[label] for label in np.flatnonzero(targets.labels[node])]
        label = int(targets.labels[node])
        return None if label < 0 else [targets.names[label]]

    def _values(self, node: int) -> list[float | None] | None:
        targets = self.dataset.targets
        if not isinstance(targets, NumberTargets):
            return None
        return [None if np.isnan(value) else float(value) for value in targets.values[node]]

    def _columns(self, node: int, top: int) -> tuple[dict[str, Value], int]:
        """Return columns as they were given, or where there were none, features that are not zero by their place."""
        dataset, features = self.dataset, self.dataset.features
        if features is None:
            return {}, 0
        own: Any = features[[node]]
        row: Floats = np.asarray(own.toarray() if hasattr(own, "toarray") else own)[0]
        if dataset.encoding is None:
            places = np.flatnonzero(row)
            return {f"feature {place}": float(f"{row[place]:.6g}") for place in places[:top].tolist()}, len(places)
        kind = 0 if dataset.nodes.node_type is None else int(dataset.nodes.node_type[node])
        if dataset.encoding.types != UNTYPED:
            kind = dataset.encoding.types.index(dataset.nodes.node_type_names[kind])
        columns = decoded_columns(dataset.encoding, row, kind)
        return dict(list(columns.items())[:top]), len(columns)

    def _edges(self, node: int, top: int) -> tuple[list[EdgeFacts], int]:
        """Return links of any split that are no edges of the graph, then edges; and how many of both there are."""
        graph, edges = self.graph, self.graph.edges_from(np.array([node]))
        names = [graph.edge_type_names[kind] for kind in edges.edge_type.tolist()]
        places = {edge: place for place, edge in enumerate(zip(names, edges.target.tolist(), strict=True))}
        links = list(dict.fromkeys(self._links(node)))
        trained = {places[link[:2]] for link in links if link[:2] in places and link[2] == "train"}
        others = [link for link in links if link[:2] not in places]
        found = [EdgeFacts(name, graph.id_of(other), None, in_graph=False, split=split) for name, other, split in others[:top]]
        for place in range(min(top - len(found), len(names))):
            weight = None if edges.weight is None else float(edges.weight[place])
            split = "train" if place in trained else None
            found.append(EdgeFacts(names[place], graph.id_of(int(edges.target[place])), weight, in_graph=True, split=split))
        return found, len(others) + len(names)

    def _links(self, node: int) -> list[tuple[str, int, str]]:
        """Return the type, the other end and the split of positives, as they are seen from a node."""
        targets, found = self.dataset.targets, list[tuple[str, int, str]]()
        if not isinstance(targets, LinkTargets):
            return found
        for split, pairs in targets.splits.items():
            for near, far, back in ((pairs.source, pairs.target, False), (pairs.target, pairs.source, True)):
                for place in np.flatnonzero((near == node) & (pairs.label == 1)).tolist():
                    name = targets.names[int(pairs.edge_type[place])]
                    found.append((self._inverse(name) if back else name, int(far[place]), split))
        return found

    def _inverse(self, name: str) -> str:
        """Return what a type of link is called from its target's side."""
        graph = self.graph
        kind = graph.edge_type_names.index(name) if name in graph.edge_type_names else -1
        inverse = graph.inverse_of[kind] if kind >= 0 else -1
        return graph.edge_type_names[inverse] if inverse >= 0 else f"{name}⁻¹"
