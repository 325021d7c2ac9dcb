"""What is asked of a graph, with its splits: classes of nodes (`NodeTargets`), numbers of nodes (`NumberTargets`), or typed
links (`LinkTargets`)."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.negatives import Ends
from gatas.datasets.node_table import distinct_values, node_place
from gatas.errors import GatasWarning, GraphError
from gatas.graph.counts import counted
from gatas.graph.inputs import Ints, as_array, as_indices, frozen, owned

Task = Literal["node classification", "multi-label node classification", "node regression", "link prediction"]

UNLABELLED = -1
SPLITS = ("train", "valid", "test")
MAX_CLASSES = 2**20


@dataclass(frozen=True, eq=False)
class NodeTargets:
    """Classes of N nodes, and the labelled nodes of each split."""

    labels: NDArray[Any]  # (N,) int64 with -1 for unlabelled, or (N, L) uint8 for any number of labels a node
    class_names: tuple[str, ...] = ()
    splits: Mapping[str, Ints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = check_labels(self.labels, len(self.class_names) or None)
        count = labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=UNLABELLED)) + 1
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "class_names", self.class_names or tuple(str(label) for label in range(count)))
        object.__setattr__(self, "splits", check_splits(self.splits, len(labels)))
        if "train" in self.splits:
            self._warn_of_absent_classes()

    def __reduce__(self) -> tuple[Any, ...]:
        """Be picklable: the read-only mapping of `splits` is not."""
        return NodeTargets, (self.labels, self.class_names, dict(self.splits))

    @property
    def multi_label(self) -> bool:
        """Whether a node may have any number of classes."""
        return self.labels.ndim == 2

    @property
    def task(self) -> Task:
        return "multi-label node classification" if self.multi_label else "node classification"

    @property
    def names(self) -> tuple[str, ...]:
        """What is predicted: the classes."""
        return self.class_names

    def without_label(self, nodes: Ints) -> Ints:
        """Return those of some nodes that have no label."""
        return nodes[:0] if self.multi_label else nodes[self.labels[nodes] == UNLABELLED]

    def __repr__(self) -> str:
        kinds = ("label", "labels") if self.multi_label else ("class", "classes")
        return f"NodeTargets({counted(len(self.class_names), *kinds)}; {described_splits(self.splits)})"

    def _warn_of_absent_classes(self) -> None:
        training = self.labels[self.splits["train"]]
        if self.multi_label:
            absent = np.flatnonzero(self.labels.any(axis=0) & ~training.any(axis=0))
        else:
            classes = distinct_values(self.labels)
            absent = np.setdiff1d(classes[classes > UNLABELLED], training)
        if absent.size:
            first = self.class_names[int(absent[0])]
            warnings.warn(
                f"{counted(absent.size, 'class has', 'classes have')} no training node (the first is {first!r}); none can be "
                "predicted.",
                GatasWarning,
                stacklevel=4,
            )


@dataclass(frozen=True, eq=False)
class NumberTargets:
    """One or several numbers of each of N nodes, in the user's units, and the nodes of each split, which have one at least."""

    values: NDArray[np.float64]  # (N, T); NaN: not known
    target_names: tuple[str, ...] = ()
    splits: Mapping[str, Ints] = field(default_factory=dict)

    task: Task = field(default="node regression", init=False, repr=False)

    def __post_init__(self) -> None:
        values = check_numbers(self.values, len(self.target_names) or None)
        object.__setattr__(self, "values", values)
        names = tuple(f"target {number}" for number in range(values.shape[1])) if values.shape[1] > 1 else ("target",)
        object.__setattr__(self, "target_names", self.target_names or names)
        object.__setattr__(self, "splits", check_splits(self.splits, len(values)))
        if "train" in self.splits:
            self._check_training()

    def __reduce__(self) -> tuple[Any, ...]:
        """Be picklable: the read-only mapping of `splits` is not."""
        return NumberTargets, (self.values, self.target_names, dict(self.splits))

    @property
    def names(self) -> tuple[str, ...]:
        """What is predicted: the numbers."""
        return self.target_names

    def without_label(self, nodes: Ints) -> Ints:
        """Return those of some nodes of which no number is known."""
        return nodes[np.isnan(self.values[nodes]).all(1)]

    def standard(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (T,) means and standard deviations over training nodes; 1 where a number is the same for all."""
        training = self.values[self.splits["train"]]
        mean, deviation = np.nanmean(training, axis=0), np.nanstd(training, axis=0)
        return mean, np.where(deviation > 0, deviation, 1.0)

    def __repr__(self) -> str:
        return f"NumberTargets({counted(len(self.target_names), 'number')}; {described_splits(self.splits)})"

    def _check_training(self) -> None:
        unknown = np.isnan(self.values[self.splits["train"]]).all(0)
        if unknown.any():
            name = self.target_names[int(np.argmax(unknown))]
            raise GraphError(f"no training node has a number for {name!r}. Give some, or leave the target out.")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Typed pairs of nodes: positives (label 1), which are links, and negatives (label 0), which are not."""

    source: Ints
    edge_type: Ints  # which of the link types is asked for
    target: Ints
    label: NDArray[np.int8]

    def __post_init__(self) -> None:
        for name in ("source", "edge_type", "target"):
            object.__setattr__(self, name, frozen(as_indices(getattr(self, name), name, f"{name} of pair {{}}".format)))
        label = as_array(self.label)
        usable = np.isin(label, (0, 1))
        if not usable.all():
            at = int(np.argmin(usable))
            raise GraphError(f"pair {at}: label is {label.item(at)!r}; expected 1 for a link, 0 for a negative.")
        object.__setattr__(self, "label", frozen(owned(label, np.int8)))
        lengths = {len(self.source), len(self.edge_type), len(self.target), len(self.label)}
        if len(lengths) > 1:
            raise GraphError(f"the columns of pairs have {sorted(lengths)} values; expected one of each per pair.")

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Pairs({int(self.label.sum()):,} positives, {int((self.label == 0).sum()):,} negatives)"


@dataclass(frozen=True, eq=False)
class LinkTargets:
    """Types of link that are asked for, and the typed pairs of each split.

    Where the training split has positives only, negatives are drawn in every epoch, from the nodes in `ends` if there are any.
    """

    link_types: tuple[str, ...]
    splits: Mapping[str, Pairs]
    ends: Ends | None = field(default=None, repr=False)  # nodes that negatives are drawn from, by type; None: any
    ranked: bool = False  # whether links are to be ranked among all nodes: the data came without negatives to tell them from

    task: Task = field(default="link prediction", init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.link_types:
            raise GraphError("no type of link is asked for. Name one at least.")
        for name, pairs in self.splits.items():
            if not isinstance(pairs, Pairs):
                raise GraphError(f"the split {name!r} is a {type(pairs).__name__}; expected Pairs.")
            if not len(pairs):
                raise GraphError(f"the split {name!r} is empty. Leave it out, or give it pairs.")
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Be picklable: the read-only mapping of `splits` is not."""
        return LinkTargets, (self.link_types, dict(self.splits), self.ends, self.ranked)

    @property
    def names(self) -> tuple[str, ...]:
        """What is predicted: the types of link."""
        return self.link_types

    def __repr__(self) -> str:
        return f"LinkTargets({counted(len(self.link_types), 'type')}; {described_splits(self.splits)})"


Targets = NodeTargets | NumberTargets | LinkTargets


def described_splits(splits: Mapping[str, Any]) -> str:
    """Return `train 208, valid 69, test 69`."""
    return ", ".join(f"{name} {len(rows):,}" for name, rows in splits.items())


def check_labels(labels: Any, num_classes: int | None) -> NDArray[Any]:
    """Return (N,) class numbers with -1 for unlabelled, or a (N, L) matrix of zeros and ones."""
    array = as_array(labels)
    if array.ndim not in (1, 2):
        raise GraphError(f"labels have shape {array.shape}; expected (nodes,) class numbers or (nodes, labels) zeros and ones.")
    return frozen(_label_matrix(array, num_classes) if array.ndim == 2 else _classes(array, num_classes))


def _label_matrix(array: NDArray[Any], num_classes: int | None) -> NDArray[np.uint8]:
    if array.dtype.kind not in "iufb":
        raise GraphError(f"labels have type {array.dtype}; expected a matrix of zeros and ones.")
    if num_classes is not None and array.shape[1] != num_classes:
        raise GraphError(f"labels have {array.shape[1]} columns, but there are {num_classes} class names. Give one per column.")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row, column = (int(at[0]) for at in np.nonzero(wrong))
        raise GraphError(f"{node_place(row)}: label {column} is {array[row, column]}; expected 0 or 1.")
    return owned(array, np.uint8)


def _classes(array: NDArray[Any], num_classes: int | None) -> Ints:
    if array.dtype.kind not in "iu":
        raise GraphError(
            f"labels have type {array.dtype} (first value {array.item(0) if array.size else None!r}); expected integers, "
            "-1 for nodes without a label. Cast whole numbers with .astype('int64')."
        )
    limit = MAX_CLASSES if num_classes is None else num_classes
    if array.size and not UNLABELLED <= int(array.min()) <= int(array.max()) < limit:
        at = int(np.argmax((array < UNLABELLED) | (array >= limit)))
        known = f"0 to {limit - 1}"
        raise GraphError(f"{node_place(at)}: label is {array[at]}; expected {known}, or -1 for a node without a label.")
    return owned(array, np.int64)


def check_numbers(values: Any, num_targets: int | None) -> NDArray[np.float64]:
    """Return (N, T) finite numbers, or NaN for what is not known."""
    array = as_array(values)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "iuf":
        raise GraphError(
            f"numbers have shape {array.shape} and type {array.dtype}; expected (nodes,) or (nodes, targets) numbers."
        )
    if num_targets is not None and array.shape[1] != num_targets:
        raise GraphError(f"numbers have {array.shape[1]} columns, but there are {num_targets} names. Give one per column.")
    found = owned(array, np.float64)
    if np.isinf(found).any():
        row, column = (int(at[0]) for at in np.nonzero(np.isinf(found)))
        raise GraphError(f"{node_place(row)}: number {column} is {found[row, column]}; expected a finite one, or NaN for none.")
    return frozen(found)


def check_splits(splits: Mapping[str, Any], num_nodes: int) -> Mapping[str, Ints]:
    """Return disjoint, non-empty sets of nodes; masks become indices."""
    checked = {name: _split_indices(name, split, num_nodes) for name, split in splits.items()}
    for number, (name, nodes) in enumerate(checked.items()):
        if not nodes.size:
            raise GraphError(f"the split {name!r} is empty. Leave it out, or give it nodes.")
        for earlier in list(checked)[:number]:
            if (twice := np.intersect1d(checked[earlier], nodes)).size:
                raise GraphError(
                    f"node {twice[0]} is in the splits {earlier!r} and {name!r}. A node in two splits leaks what is tested "
                    "into training; put it into one."
                )
    return MappingProxyType(checked)


def _split_indices(name: str, split: Any, num_nodes: int) -> Ints:
    array = as_array(split)
    if array.dtype == bool:
        if array.shape != (num_nodes,):
            raise GraphError(f"the mask of split {name!r} has shape {array.shape}; expected ({num_nodes},).")
        return frozen(np.flatnonzero(array))
    nodes = as_indices(array, "node", lambda at: f"split {name!r}, entry {at}")
    if nodes.size and nodes.max() >= num_nodes:
        at = int(np.argmax(nodes >= num_nodes))
        raise GraphError(
            f"split {name!r}, entry {at}: node is {nodes[at]}, but the graph has {num_nodes} nodes (0 to {num_nodes - 1})."
        )
    ordered = np.sort(nodes)
    if (ordered[1:] == ordered[:-1]).any():
        node = ordered[int(np.argmax(ordered[1:] == ordered[:-1]))]
        raise GraphError(f"the split {name!r} holds node {node} more than once. Keep it once.")
    return frozen(nodes)
