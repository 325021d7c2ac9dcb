"""The typed edges that a peer may learn from: the graph's and the training links, all of them both ways."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gatas.datasets import Dataset
from gatas.graph.inputs import Ints


@dataclass(frozen=True)
class TypedEdges:
    """Each edge once in either direction, ascending by (edge_type, source, target)."""

    source: Ints
    edge_type: Ints  # as the data set's `names` are numbered; types that are never asked for come after them
    target: Ints
    num_nodes: int
    num_types: int

    @property
    def indptr(self) -> Ints:
        """(num_types · num_nodes + 1,) where the edges of each node of each type begin."""
        row = self.edge_type * self.num_nodes + self.source
        counts = np.bincount(row, minlength=self.num_types * self.num_nodes)
        return np.concatenate([[0], np.cumsum(counts)])

    def untyped(self) -> NDArray[np.int64]:
        """(2, E) sources and targets, each pair of nodes once."""
        pairs = np.unique(self.source * self.num_nodes + self.target)
        return np.stack(np.divmod(pairs, self.num_nodes))


def type_names(dataset: Dataset) -> list[str]:
    """The types asked for, then the graph's others; an inverse type counts as the type it is the inverse of."""
    return list(dict.fromkeys([*dataset.names, *(name.removesuffix("⁻¹") for name in dataset.graph.edge_type_names)]))


def typed_edges(dataset: Dataset) -> TypedEdges:
    """An inverse type counts as the type it is the inverse of, since both directions are there anyway."""
    graph, train = dataset.graph, dataset.splits["train"]
    names = type_names(dataset)
    of_type = np.array([names.index(name.removesuffix("⁻¹")) for name in graph.edge_type_names], np.int64)
    links = train.label == 1
    source = np.concatenate([graph.source, train.source[links]]).astype(np.int64)
    target = np.concatenate([graph.neighbour, train.target[links]]).astype(np.int64)
    kind = np.concatenate([of_type[graph.edge_type], train.edge_type[links]])
    rows = np.stack([np.tile(kind, 2), np.concatenate([source, target]), np.concatenate([target, source])])
    size = graph.num_nodes
    numbers = np.unique((rows[0] * size + rows[1]) * size + rows[2])
    return TypedEdges(numbers // size % size, numbers // size**2, numbers % size, size, len(names))
