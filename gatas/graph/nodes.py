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
from gatas.graph.inputs import Ints, as_array, as_features, as_indices, frozen

UNLABELLED = -1
SPLITS = ("train", "valid", "test")


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
    features: NDArray[np.float32] | sparse.csr_array | None = None
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

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _checked_types(self, types: Any) -> NDArray[np.int16]:
        indices = as_indices(types, "node type", node_place)
        if len(indices) != self.num_nodes:
            raise GraphError(f"node_type has {len(indices)} values, but the graph has {self.num_nodes} nodes.")
        if indices.max(initial=-1) >= len(self.node_type_names):
            raise GraphError(f"node_type {indices.max()} has no name; {len(self.node_type_names)} names were given.")
        return frozen(indices.astype(np.int16))


def check_features(features: Any, num_nodes: int) -> NDArray[np.float32] | sparse.csr_array:
    """Dense or sparse (N, F) float32 features."""
    if not sparse.issparse(features):
        return frozen(as_features(features, num_nodes, node_place))
    matrix = sparse.csr_array(features).astype(np.float32)
    if matrix.shape[0] != num_nodes:
        raise GraphError(f"features have {matrix.shape[0]} rows, but the graph has {num_nodes} nodes.")
    if not np.isfinite(matrix.data).all():
        row = int(np.searchsorted(matrix.indptr, np.argmin(np.isfinite(matrix.data)), side="right")) - 1
        raise GraphError(f"node {row} has a feature that is not finite. Fill or drop missing values first.")
    return matrix


def check_labels(labels: Any, num_nodes: int, num_classes: int | None) -> NDArray[Any]:
    """(N,) class numbers with -1 for unlabelled, or a (N, L) matrix of zeros and ones."""
    array = as_array(labels)
    if array.ndim not in (1, 2) or len(array) != num_nodes:
        raise GraphError(
            f"labels have shape {array.shape}, but the graph has {num_nodes} nodes; expected ({num_nodes},) class numbers "
            f"or ({num_nodes}, labels) zeros and ones."
        )
    if array.ndim == 2:
        wrong = (array != 0) & (array != 1)
        if wrong.any():
            row, column = (int(at[0]) for at in np.nonzero(wrong))
            raise GraphError(f"node {row}: label {column} is {array[row, column]}; expected 0 or 1.")
        return frozen(array.astype(np.uint8))
    if array.dtype.kind not in "iu":
        raise GraphError(
            f"labels have type {array.dtype} (first value {array[0] if array.size else None!r}); expected integers, "
            "-1 for nodes without a label."
        )
    classes = array.astype(np.int64)
    wrong = (classes < UNLABELLED) | (classes >= (num_classes if num_classes is not None else np.inf))
    if wrong.any():
        at = int(np.argmax(wrong))
        known = f"0 to {num_classes - 1}" if num_classes is not None else "0 and up"
        raise GraphError(f"node {at}: label is {array[at]}; expected {known}, or -1 for a node without a label.")
    return frozen(classes)


def check_splits(splits: Mapping[str, Any], num_nodes: int, labels: NDArray[Any] | None) -> Mapping[str, Ints]:
    """Disjoint, non-empty sets of nodes; masks become indices."""
    checked = {name: _split_indices(name, split, num_nodes) for name, split in splits.items()}
    owner = np.full(num_nodes, -1)
    for number, (name, nodes) in enumerate(checked.items()):
        if not nodes.size:
            raise GraphError(f"the split {name!r} is empty. Leave it out, or give it nodes.")
        taken = owner[nodes] >= 0
        if taken.any():
            node = int(nodes[np.argmax(taken)])
            raise GraphError(
                f"node {node} is in the splits {list(checked)[owner[node]]!r} and {name!r}. A node in two splits leaks "
                "what is tested into training; put it into one."
            )
        owner[nodes] = number
    if labels is not None and labels.ndim == 1 and "train" in checked:
        unlabelled = int((labels[checked["train"]] == UNLABELLED).sum())
        if unlabelled:
            warnings.warn(f"{unlabelled} training nodes have no label and teach nothing.", GatasWarning, stacklevel=4)
        absent = np.setdiff1d(labels[labels >= 0], labels[checked["train"]])
        if absent.size:
            warnings.warn(
                f"{absent.size} classes have no training node (the first is {absent[0]}); none can be predicted.",
                GatasWarning,
                stacklevel=4,
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
        raise GraphError(f"the split {name!r} holds node {nodes.max()}, but the graph has {num_nodes} nodes.")
    if np.unique(nodes).size != nodes.size:
        raise GraphError(f"the split {name!r} holds a node more than once.")
    return frozen(nodes)
