"""`Dataset`: a graph, one table of what is known about its nodes, and what is to be predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from gatas.datasets.config import DataConfig
from gatas.datasets.encoding import Encoding
from gatas.datasets.negatives import Ends
from gatas.datasets.node_table import Features, NodeTable
from gatas.datasets.python_settings import NetworkxSettings, PygSettings
from gatas.datasets.targets import (
    LinkTargets,
    NodeTargets,
    NumberTargets,
    Pairs,
    Targets,
    Task,
    described_splits,
)
from gatas.errors import GraphError
from gatas.graph import Graph
from gatas.graph.counts import counted
from gatas.graph.inputs import Ints

SLICE = 1 << 20
"""Edges that are checked at a time: a mapped graph may be larger than memory."""


NOTHING_KNOWN = NodeTable(0)
"""Stands for a table of a graph's nodes about which nothing is known."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """What a model is trained and measured on. Checked when made.

    Args:
        name: What results call it.
        graph: Structure, ids and relations.
        targets: `NodeTargets` (classes of nodes), `NumberTargets` (numbers of nodes) or `LinkTargets` (typed links), with
            their splits.
        nodes: Features, node types and graph ids of the nodes; nothing is known of them if left out.
        note: What a reader of results must know, such as "rebuilt labels".
        origin: The tables or the store that it was read from, if any.
        encoding: How columns of these tables became features.
        store: The folder that it is mapped from, if it is: of such data only what is needed is read.
    """

    name: str
    graph: Graph
    targets: Targets
    nodes: NodeTable = NOTHING_KNOWN
    note: str = ""
    origin: DataConfig | None = None
    encoding: Encoding | None = None
    store: Path | None = None

    def __post_init__(self) -> None:
        if self.nodes is NOTHING_KNOWN:
            object.__setattr__(self, "nodes", NodeTable(self.graph.num_nodes))
        if self.nodes.num_nodes != self.graph.num_nodes:
            raise GraphError(
                f"{self.name}: the node table has {self.nodes.num_nodes} rows, but the graph has {self.graph.num_nodes} nodes."
            )
        if self.nodes.graph_id is not None:
            self._check_graphs()
        if isinstance(self.targets, LinkTargets):
            self._check_link_targets(self.targets)
        else:
            self._check_node_targets(self.targets)

    @classmethod
    def for_nodes(
        cls,
        graph: Graph,
        labels: Any,
        splits: Mapping[str, Any],
        *,
        class_names: Sequence[str] = (),
        features: Any = None,
        node_type: Any = None,
        node_type_names: Sequence[str] = (),
        graph_id: Any = None,
        name: str = "own data",
        note: str = "",
    ) -> "Dataset":
        """Make a data set for node classification from arrays.

        Args:
            graph: The graph.
            labels: (N,) class numbers with -1 for nodes without a label, or (N, L) zeros and ones for any number of labels.
            splits: Nodes of `train`, `valid` and `test`, as indices or as masks.
            class_names: Names of the classes; their numbers if left out.
            features: (N, F) numbers, dense or as a SciPy sparse matrix.
            node_type: (N,) number of each node's type.
            node_type_names: Names of the node types.
            graph_id: (N,) which of several graphs each node is in.
            name: What results call the data.
            note: What a reader of results must know.
        """
        targets = NodeTargets(labels, tuple(class_names), splits)
        return cls(name, graph, targets, _node_table(graph, features, node_type, node_type_names, graph_id), note)

    @classmethod
    def for_numbers(
        cls,
        graph: Graph,
        values: Any,
        splits: Mapping[str, Any],
        *,
        target_names: Sequence[str] = (),
        features: Any = None,
        node_type: Any = None,
        node_type_names: Sequence[str] = (),
        graph_id: Any = None,
        name: str = "own data",
        note: str = "",
    ) -> "Dataset":
        """Make a data set for node regression from arrays.

        Args:
            graph: The graph.
            values: (N,) or (N, T) numbers in any units, NaN for what is not known.
            splits: Nodes of `train`, `valid` and `test`, as indices or as masks; each has one number at least.
            target_names: Names of the numbers.
            features: (N, F) numbers, dense or as a SciPy sparse matrix.
            node_type: (N,) number of each node's type.
            node_type_names: Names of the node types.
            graph_id: (N,) which of several graphs each node is in.
            name: What results call the data.
            note: What a reader of results must know.
        """
        targets = NumberTargets(values, tuple(target_names), splits)
        return cls(name, graph, targets, _node_table(graph, features, node_type, node_type_names, graph_id), note)

    @classmethod
    def for_links(
        cls,
        graph: Graph,
        splits: Mapping[str, Pairs],
        link_types: Sequence[str] | None = None,
        *,
        ends: Ends | None = None,
        features: Any = None,
        node_type: Any = None,
        node_type_names: Sequence[str] = (),
        name: str = "own data",
        note: str = "",
    ) -> "Dataset":
        """Make a data set for link prediction from arrays.

        Args:
            graph: The graph, without the links of `valid` and `test`.
            splits: Typed pairs of `train`, `valid` and `test`.
            link_types: Names of the types of link that pairs ask for; the graph's own edge types if left out.
            ends: Nodes that negatives are drawn from, by type of link; any nodes if left out.
            features: (N, F) numbers, dense or as a SciPy sparse matrix.
            node_type: (N,) number of each node's type.
            node_type_names: Names of the node types.
            name: What results call the data.
            note: What a reader of results must know.
        """
        own = [graph.edge_type_names[kind] for kind in graph.original_edge_types]
        targets = LinkTargets(tuple(own if link_types is None else link_types), splits, ends)
        return cls(name, graph, targets, _node_table(graph, features, node_type, node_type_names, None), note)

    @classmethod
    def from_pyg(cls, data: Any, **settings: Unpack[PygSettings]) -> "Dataset":
        """Make a data set of PyTorch Geometric's data.

        Args:
            data: For classes of nodes: `Data`, `HeteroData`, or several `Data` side by side, with x, y and train_mask, val_mask
                and test_mask. For links: one of them, of whose edges (or of whose `edge_label_index`) some are held out by
                `ratios`; or the training, validation and test data that `RandomLinkSplit` returns, whose `edge_label_index` and
                `edge_label` are the pairs of each split and whose first edges are the graph.
            task: What is predicted.
            direction: `"inverse"` lets edges lead back under a type of their own, `"undirected"` under the same type,
                `"as given"` adds nothing. `"auto"` is `"undirected"` where every edge is listed in both directions, else
                `"inverse"`.
            link_types: Edge types whose links are predicted, named `source__relation__target` for `HeteroData`; all by default.
            ratios: Shares of nodes or links in train, valid and test, where the data does not say.
            class_names: Names of the classes; their numbers if left out.
            name: What results call the data.
            seed: Splits and negatives are a function of it.
        """
        from gatas.datasets.pyg import dataset_from_pyg

        return dataset_from_pyg(data, **settings)

    @classmethod
    def from_networkx(cls, graph: Any, **settings: Unpack[NetworkxSettings]) -> "Dataset":
        """Make a data set of a NetworkX graph.

        Args:
            graph: Nodes may be any integers or any text, which become ids.
            task: What is predicted.
            features: Node attributes that are numbers, or one that is a vector.
            label: Node attribute that holds the class, as a number or as text; none where a node has no label.
            split: Node attribute that says train, valid or test; drawn by `ratios` if left out.
            edge_type: Edge attribute that holds the type of an edge, if edges have it.
            weight: Edge attribute that holds the weight of an edge, if edges have it.
            direction: How edges of a directed graph lead back, as for tables: `"auto"` and `"inverse"` give each type an
                inverse, `"undirected"` adds reverse edges of the same type, `"as given"` adds nothing.
            link_types: Edge types whose links are predicted; all by default.
            ratios: Shares of nodes or links in train, valid and test, where the data does not say.
            name: What results call the data.
            seed: Splits and negatives are a function of it.

        >>> Dataset.from_networkx(graph, features=["age", "height"], label="club")
        """
        from gatas.datasets.networkx import dataset_from_networkx

        return dataset_from_networkx(graph, **settings)

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = False) -> "Dataset":
        """Map a saved data set; `verify` reads every byte and compares its checksum."""
        from gatas.datasets.saved import open_dataset_store

        return open_dataset_store(Path(folder), verify=verify)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a folder of .npy files with a manifest: all of it, or nothing."""
        from gatas.datasets.saved import save_dataset

        save_dataset(self, Path(folder), overwrite=overwrite)

    @property
    def task(self) -> Task:
        """What is predicted, in words."""
        return self.targets.task

    @property
    def names(self) -> tuple[str, ...]:
        """The classes or numbers of nodes, or the types of link."""
        return self.targets.names

    @property
    def splits(self) -> Mapping[str, Any]:
        """Node indices or `Pairs` by name of the split."""
        return self.targets.splits

    @property
    def features(self) -> Features | None:
        return self.nodes.features

    @property
    def node_targets(self) -> NodeTargets:
        """Classes and splits of nodes; refused where links are predicted."""
        if not isinstance(self.targets, NodeTargets):
            raise GraphError(f"{self.name} is for {self.task}; expected a data set with classes of nodes.")
        return self.targets

    @property
    def number_targets(self) -> NumberTargets:
        """Numbers and splits of nodes; refused where classes or links are predicted."""
        if not isinstance(self.targets, NumberTargets):
            raise GraphError(f"{self.name} is for {self.task}; expected a data set with numbers of nodes.")
        return self.targets

    @property
    def link_targets(self) -> LinkTargets:
        """Types of link and pairs by split; refused where classes of nodes are predicted."""
        if not isinstance(self.targets, LinkTargets):
            raise GraphError(f"{self.name} is for {self.task}; expected a data set with splits of Pairs.")
        return self.targets

    @property
    def mapped(self) -> bool:
        """Whether it lies in a store, of which only what is needed is read."""
        return self.store is not None

    def with_splits(self, splits: Mapping[str, Any]) -> "Dataset":
        """Return the data set with other splits: node indices or masks, or `Pairs`.

        >>> without_test = dataset.with_splits({name: dataset.splits[name] for name in ("train", "valid")})
        """
        targets = self.targets
        if isinstance(targets, NodeTargets):
            return replace(self, targets=replace(targets, splits=splits))
        if isinstance(targets, NumberTargets):
            return replace(self, targets=replace(targets, splits=splits))
        return replace(self, targets=replace(targets, splits=splits))

    @property
    def ranked(self) -> bool:
        """Whether links are to be ranked among all nodes: the data came without negatives to tell them from."""
        return isinstance(self.targets, LinkTargets) and self.targets.ranked

    def with_validation_edges(self) -> "Dataset":
        """Return the data set whose graph has the links of `valid` as edges too, for the final test of a trained model.

        They lead back as the graph's other edges do; where edges have weights, they get the mean weight of their type.
        """
        from gatas.datasets.validation_edges import with_validation_edges

        return with_validation_edges(self)

    def check_leaks(self, *, strict: bool = False, directed: bool = False) -> None:
        """Find held-out links that are edges of the graph, and negatives that are links; see `gatas.datasets.leaks`."""
        from gatas.datasets.leaks import check_leaks

        if isinstance(self.targets, LinkTargets):
            check_leaks(self, strict=strict, directed=directed)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self.summary()})"

    def _repr_html_(self) -> str:
        rows = {
            "task": self.task,
            "graph": repr(self.graph),
            "nodes": repr(self.nodes),
            "predicted": ", ".join(self.names[:20]),
            "splits": described_splits(self.splits),
            "note": self.note,
        }
        cells = (f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in rows.items() if value)
        return f"<table><caption>{escape(self.name)}</caption>{''.join(cells)}</table>"

    def summary(self) -> str:
        """Return `749 nodes, 5,954 edges of 6 types, 11 features; node classification, 4 classes; train 208, test 69`."""
        graph, nodes = self.graph, self.nodes
        words = {LinkTargets: ("type of link", "types of link"), NumberTargets: ("number", "numbers")}
        one, many = words.get(type(self.targets), ("class", "classes"))
        sizes = f"{counted(graph.num_nodes, 'node')}, {counted(graph.num_edges, 'edge')}"
        kinds = f"{counted(graph.num_edge_types, 'type')}, {counted(nodes.num_features, 'feature')}"
        asked = f"{self.task}, {counted(len(self.names), one, many)}"
        return f"{sizes} of {kinds}; {asked}; {described_splits(self.splits)}"

    def _check_graphs(self) -> None:
        graph, graph_id = self.graph, np.asarray(self.nodes.graph_id)
        for first in range(0, graph.num_edges, SLICE):
            neighbour = graph.neighbour[first : first + SLICE]
            source = np.searchsorted(graph.indptr, np.arange(first, first + len(neighbour)), side="right") - 1
            crossing = graph_id[source] != graph_id[neighbour]
            if crossing.any():
                at = int(np.argmax(crossing))
                one, other = graph.id_of(int(source[at])), graph.id_of(int(neighbour[at]))
                raise GraphError(
                    f"{self.name}: the edge from node {one!r} to node {other!r} joins two graphs. Put both nodes into one "
                    "graph, or remove the edge."
                )

    def _check_node_targets(self, targets: NodeTargets | NumberTargets) -> None:
        numbers = isinstance(targets, NumberTargets)
        rows = targets.values if isinstance(targets, NumberTargets) else targets.labels
        if len(rows) != self.graph.num_nodes:
            what, none = ("numbers", "NaN") if numbers else ("labels", "-1")
            raise GraphError(
                f"{self.name}: {what} have shape {rows.shape}, but the graph has {self.graph.num_nodes} nodes. Give "
                f"a {what[:-1]} for each node, {none} where there is none."
            )
        for name, nodes in targets.splits.items():
            if (unlabelled := targets.without_label(nodes)).size:
                others = f", nor have {unlabelled.size - 1:,} others of it" if unlabelled.size > 1 else ""
                raise GraphError(
                    f"{self.name}, split {name!r}: node {self.graph.id_of(int(unlabelled[0]))!r} has no "
                    f"{'number' if numbers else 'label'}{others}. A split "
                    "is learned from or measured: leave out what has none."
                )

    def _check_link_targets(self, targets: LinkTargets) -> None:
        if not all(pools.fit(self.graph.num_nodes) for pools in targets.ends or ()):
            raise GraphError(
                f"{self.name}: ends hold pools of negatives that are no nodes of the graph (0 to {self.graph.num_nodes - 1}). "
                "Make each of them with Pools.of, from node indices."
            )
        limits = {"source": self.graph.num_nodes, "target": self.graph.num_nodes, "edge_type": len(targets.link_types)}
        for name, pairs in targets.splits.items():
            for column, limit in limits.items():
                values: Ints = getattr(pairs, column)
                if values.max(initial=-1) >= limit:
                    at = int(np.argmax(values >= limit))
                    raise GraphError(
                        f"{self.name}, split {name!r}, pair {at}: {column} is {values[at]}, but only 0 to {limit - 1} are "
                        "known. What the graph has never seen cannot be asked for: remove the pair, or add it to the graph."
                    )


def _node_table(graph: Graph, features: Any, node_type: Any, node_type_names: Sequence[str], graph_id: Any) -> NodeTable:
    return NodeTable(graph.num_nodes, features, node_type, tuple(node_type_names), graph_id)
