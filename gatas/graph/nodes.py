"""What is known about nodes besides their edges: features, labels, splits, types."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gatas.errors import GatasWarning, GraphError
from gatas.graph.inputs import Floats, Ints, as_array, as_features, as_indices, frozen, owned

UNLABELLED = -1
SPLITS = ("train", "valid", "test")
MAX_CLASSES = 2**20
SLICE = 1 << 20
"""Nodes that are looked at at once: what is mapped from a file may be larger than memory."""

Features = Floats | sparse.csr_array


def node_place(row: int) -> str:
    """Names a node in a message."""
    return f"node {row}"


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Features, labels and splits of N nodes, any of them absent.

    A node type without features has rows of zeros; where types have features of different widths, each has columns of
    its own and the matrix is sparse.
    """

    num_nodes: int
    features: Features | None = None
    labels: NDArray[Any] | None = None  # (N,) int64 with -1 for unlabelled, or (N, L) uint8 for several labels at once
    class_names: tuple[str, ...] = ()
    splits: Mapping[str, Ints] = field(default_factory=dict)
    node_type: NDArray[np.int16] | None = None
    node_type_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.features is not None:
            self._set("features", check_features(self.features, self.num_nodes))
        if self.labels is not None:
            labels = check_labels(self.labels, self.num_nodes, len(self.class_names) or None)
            count = labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=UNLABELLED)) + 1
            self._set("labels", labels)
            self._set("class_names", self.class_names or tuple(str(label) for label in range(count)))
        self._set("splits", check_splits(self.splits, self.num_nodes, self.labels))
        if self.node_type is not None:
            self._set("node_type", self._checked_types(self.node_type))

    def __reduce__(self) -> tuple[Any, ...]:
        """To be pickled: the proxy of `splits` cannot be."""
        splits = dict(self.splits)
        columns = (self.features, self.labels, self.class_names, splits, self.node_type, self.node_type_names)
        return NodeTable, (self.num_nodes, *columns)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _checked_types(self, types: Any) -> NDArray[np.int16]:
        indices = as_indices(types, "node type", node_place)
        if len(indices) != self.num_nodes:
            raise GraphError(f"node_type has {len(indices)} values, but the graph has {self.num_nodes} nodes.")
        if indices.max(initial=-1) >= min(len(self.node_type_names), 2**15):
            raise GraphError(
                f"node_type {indices.max()} has no name; {len(self.node_type_names)} names were given (at most {2**15:,})."
            )
        return frozen(owned(indices, np.int16))


def check_features(features: Any, num_nodes: int) -> Features:
    """Dense or sparse (N, F) float32 features."""
    if not sparse.issparse(features):
        return frozen(as_features(features, num_nodes, node_place))
    given: Any = features
    if given.ndim != 2 or given.dtype.kind not in "iufb":
        raise GraphError(f"features have shape {given.shape} and type {given.dtype}; expected a matrix of numbers.")
    if given.shape[0] != num_nodes:
        raise GraphError(
            f"features have {given.shape[0]} rows, but the graph has {num_nodes} nodes. Give one row per node, in node order."
        )
    matrix = _canonical(given)
    if not np.isfinite(matrix.data).all():
        at = int(np.argmin(np.isfinite(matrix.data)))
        row, column = int(np.searchsorted(matrix.indptr, at, side="right")) - 1, matrix.indices[at]
        raise GraphError(
            f"{node_place(row)}: feature column {column} is {matrix.data[at]}, which is not a finite float32. "
            "Fill or drop missing values first."
        )
    return matrix


def _canonical(given: Any) -> sparse.csr_array:
    """A read-only CSR matrix, its columns ascending and each at most once; it may come from a damaged file."""
    matrix: Any = sparse.csr_array(given)
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise GraphError(f"the sparse features are malformed: {error}.") from error
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32, copy=matrix.data.flags.writeable)  # what is mapped from a file stays there
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    matrix.data, matrix.indices, matrix.indptr = frozen(matrix.data), frozen(matrix.indices), frozen(matrix.indptr)
    canonical: sparse.csr_array = matrix
    return canonical


def check_labels(labels: Any, num_nodes: int, num_classes: int | None) -> NDArray[Any]:
    """(N,) class numbers with -1 for unlabelled, or a (N, L) matrix of zeros and ones."""
    array = as_array(labels)
    if array.ndim not in (1, 2) or len(array) != num_nodes:
        raise GraphError(
            f"labels have shape {array.shape}, but the graph has {num_nodes} nodes; expected ({num_nodes},) class numbers "
            f"or ({num_nodes}, labels) zeros and ones."
        )
    return frozen(_label_sets(array, num_classes) if array.ndim == 2 else _classes(array, num_classes))


def _label_sets(array: NDArray[Any], num_classes: int | None) -> NDArray[np.uint8]:
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


def check_splits(splits: Mapping[str, Any], num_nodes: int, labels: NDArray[Any] | None) -> Mapping[str, Ints]:
    """Disjoint, non-empty sets of nodes; masks become indices."""
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
    if labels is not None and "train" in checked:
        _warn_of_untaught(labels, labels[checked["train"]])
    return MappingProxyType(checked)


def _warn_of_untaught(labels: NDArray[Any], training: NDArray[Any]) -> None:
    """Count the training nodes without a label, and the classes without a training node."""
    if labels.ndim == 2:
        absent = np.flatnonzero(labels.any(axis=0) & ~training.any(axis=0))
    else:
        absent = np.setdiff1d(_used_classes(labels), training)
        if unlabelled := int((training == UNLABELLED).sum()):
            warnings.warn(f"{unlabelled} training nodes have no label and teach nothing.", GatasWarning, stacklevel=6)
    if absent.size:
        warnings.warn(
            f"{absent.size} classes have no training node (the first is {absent[0]}); none can be predicted.",
            GatasWarning,
            stacklevel=6,
        )


def _used_classes(labels: NDArray[Any]) -> Ints:
    """The classes that any node has, found in slices: labels may be mapped."""
    found = [np.unique(labels[first : first + SLICE]) for first in range(0, len(labels), SLICE)]
    classes = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    return classes[classes >= 0]


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


NOTHING_KNOWN = NodeTable(0)
"""What a graph starts from when no table is given."""
