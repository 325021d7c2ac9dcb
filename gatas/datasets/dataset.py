"""`Dataset`: a graph, what is known of its nodes, and what is to be predicted."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.config import DataConfig
from gatas.datasets.encoding import Encoding
from gatas.datasets.negatives import Ends
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph, NodeTable
from gatas.graph.inputs import Ints, as_array, as_indices, frozen
from gatas.graph.nodes import UNLABELLED, Features

Task = Literal["node classification", "multi-label node classification", "link prediction"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Typed pairs of nodes: links (label 1) and pairs that are none (label 0)."""

    source: Ints
    edge_type: Ints  # which of the data set's `names` is asked for
    target: Ints
    label: NDArray[np.int8]

    def __post_init__(self) -> None:
        for name in ("source", "edge_type", "target"):
            object.__setattr__(self, name, frozen(as_indices(getattr(self, name), name, f"{name} of pair {{}}".format)))
        label = as_array(self.label)
        usable = np.isin(label, (0, 1))
        if not usable.all():
            at = int(np.argmin(usable))
            raise GraphError(f"pair {at}: label is {label.item(at)!r}; expected 1 for a link, 0 for none.")
        object.__setattr__(self, "label", frozen(label.astype(np.int8)))
        lengths = {len(self.source), len(self.edge_type), len(self.target), len(self.label)}
        if len(lengths) > 1:
            raise GraphError(f"the columns of pairs have {sorted(lengths)} values; expected one of each per pair.")

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a model is trained and measured on. Checked when made.

    For nodes `splits` holds node numbers and `names` the classes; for links `splits` holds `Pairs` and `names` the types
    of link that are asked for.
    """

    name: str
    graph: Graph
    features: Features | None
    labels: NDArray[Any] | None
    splits: Mapping[str, Any]
    task: Task
    names: tuple[str, ...]
    note: str = field(default="", repr=False)  # what a reader of results must know, such as "rebuilt labels"
    origin: DataConfig | None = field(default=None, repr=False)  # the files it was read from, if any
    encoding: Encoding | None = field(default=None, repr=False)  # how columns of those files became features
    ends: Ends | None = field(default=None, repr=False)  # nodes that pairs which are no links are drawn of; None: any

    def __post_init__(self) -> None:
        if self.task not in get_args(Task):
            raise GraphError(f"{self.name}: there is no task {self.task!r}; expected one of {', '.join(get_args(Task))}.")
        if self.task == "link prediction":
            self._check_links()
            return
        if self.labels is None:
            raise GraphError(f"{self.name}: node classification needs labels. Give the node table a label column.")
        table = NodeTable(
            self.graph.num_nodes, features=self.features, labels=self.labels, class_names=self.names, splits=self.splits
        )
        assert table.labels is not None
        if (table.labels.ndim == 2) != (self.task == "multi-label node classification"):
            raise GraphError(f"{self.name}: the task is {self.task}, but labels have shape {table.labels.shape}.")
        self._refuse_unlabelled(table)
        for column in ("features", "labels", "splits"):
            object.__setattr__(self, column, getattr(table, column))
        object.__setattr__(self, "names", table.class_names)

    def _refuse_unlabelled(self, table: NodeTable) -> None:
        """What has no label can neither be learned from nor measured."""
        assert table.labels is not None
        for name, nodes in table.splits.items():
            unlabelled = nodes[table.labels[nodes] == UNLABELLED] if table.labels.ndim == 1 else nodes[:0]
            if unlabelled.size:
                others = f", nor have {unlabelled.size - 1:,} others of it" if unlabelled.size > 1 else ""
                raise GraphError(
                    f"{self.name}, split {name!r}: node {self.graph.name(int(unlabelled[0]))!r} has no label{others}. A split "
                    "is learned from or measured: leave out what has none."
                )

    @classmethod
    def from_graph(cls, graph: Graph, *, name: str = "own data", note: str = "") -> "Dataset":
        """Node classification with the labels and splits that came with the graph."""
        nodes = graph.nodes
        several = nodes.labels is not None and nodes.labels.ndim == 2
        task: Task = "multi-label node classification" if several else "node classification"
        return cls(name, graph, nodes.features, nodes.labels, nodes.splits, task, nodes.class_names, note)

    @property
    def mapped(self) -> bool:
        """Whether it lies in a store, of which only what is needed is read."""
        return self.origin is not None and self.origin.store is not None

    def _check_links(self) -> None:
        for name, pairs in self.splits.items():
            if not isinstance(pairs, Pairs):
                raise GraphError(f"{self.name}: the split {name!r} is a {type(pairs).__name__}; expected Pairs.")
            if not len(pairs):
                raise GraphError(f"{self.name}: the split {name!r} is empty. Leave it out, or give it pairs.")
            for column, limit in (
                ("source", self.graph.num_nodes),
                ("target", self.graph.num_nodes),
                ("edge_type", len(self.names)),
            ):
                values = getattr(pairs, column)
                if values.max(initial=-1) >= limit:
                    at = int(np.argmax(values >= limit))
                    raise GraphError(
                        f"{self.name}, split {name!r}, pair {at}: {column} is {values[at]}, but only 0 to {limit - 1} are "
                        "known. What the graph has never seen cannot be asked for: remove the pair, or add it to the graph."
                    )
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))

    def check_leaks(self, *, strict: bool = False, directed: bool = False) -> None:
        """Find held-out links that stand in the graph, and negatives that are links: warn of them, or refuse (`strict`).

        A link's reverse gives it away too, unless (a, b) says nothing of (b, a) because links are `directed`.
        """
        if self.task != "link prediction":
            return
        found = []
        for name, pairs in self.splits.items():
            counts = np.zeros(3, np.int64)
            for kind in np.unique(pairs.edge_type):
                counts += self._leaks_of(name, kind, directed)
            leaked, reversed_links, wrong = counts.tolist()
            if leaked:
                found.append(f"{leaked} links of {name!r} are edges of the graph or training links: this gives them away")
            if reversed_links:
                found.append(f"{reversed_links} links of {name!r} are so in the other direction")
            if wrong:
                found.append(f"{wrong} negatives of {name!r} are links")
        if found and strict:
            raise GraphError(f"{self.name}: {'; '.join(found)}. Remove them, or accept them by strict=False.")
        if found:
            warnings.warn(f"{self.name}: {'; '.join(found)}.", GatasWarning, stacklevel=2)

    def _leaks_of(self, split: str, kind: int, directed: bool) -> Ints:
        """How many links of a type are known, how many the other way round, and how many negatives are links."""
        links, negatives = (self._pairs_of(self.splits[split], kind, label) for label in (1, 0))
        edges = self._edges_of(kind)
        asked = [self._pairs_of(pairs, kind, 1) for pairs in self.splits.values()]
        every = np.concatenate([edges, *asked])
        if edges.size and np.isin(self._reversed(edges), edges).all():  # of a symmetric type, the reverse is the same link
            every = np.concatenate([every, self._reversed(every)])
        leaked = turned = np.zeros(len(links), np.bool_)
        if split != "train":
            training = [self._pairs_of(self.splits["train"], kind, 1)] if "train" in self.splits else []
            known = np.concatenate([edges, *training])
            leaked = np.isin(links, known)
            turned = np.isin(self._reversed(links), known) & ~leaked & (not directed)
        return np.array([leaked.sum(), turned.sum(), np.isin(negatives, every).sum()])

    def _reversed(self, numbers: Ints) -> Ints:
        """Pairs the other way round."""
        source, target = np.divmod(numbers, self.graph.num_nodes)
        turned: Ints = target * self.graph.num_nodes + source
        return turned

    def _pairs_of(self, pairs: Pairs, kind: int, label: int) -> Ints:
        """Pairs of one type as numbers."""
        chosen = (pairs.edge_type == kind) & (pairs.label == label)
        numbers: Ints = pairs.source[chosen] * self.graph.num_nodes + pairs.target[chosen]
        return numbers

    def _edges_of(self, kind: int) -> Ints:
        """The graph's edges of an asked type as numbers; none if the graph does not have the type."""
        name = self.names[kind]
        if name not in self.graph.edge_type_names:
            return np.empty(0, np.int64)
        chosen = self.graph.edge_type == self.graph.edge_type_names.index(name)
        numbers: Ints = self.graph.source[chosen].astype(np.int64) * self.graph.num_nodes + self.graph.neighbour[chosen]
        return numbers
