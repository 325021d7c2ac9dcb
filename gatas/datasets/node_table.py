"""`NodeTable`: what is known about nodes besides their edges: features, node types, and which of several graphs they are in."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gatas.errors import GatasWarning, GraphError
from gatas.graph.counts import counted
from gatas.graph.inputs import Floats, Ints, as_array, as_features, as_indices, frozen, owned

MAX_NODE_TYPES = 2**15
SLICE = 1 << 20
"""Nodes that are looked at together: a column that is mapped from a file may be larger than memory."""

Features = Floats | sparse.csr_array


def node_place(row: int) -> str:
    """Name a node in an error message."""
    return f"node {row}"


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Features, types and graphs of N nodes, any of them absent.

    A node type without features has rows of zeros; where types have features of different widths, each has columns of
    its own and the matrix is sparse.
    """

    num_nodes: int
    features: Features | None = None  # (N, F)
    node_type: NDArray[np.int16] | None = None  # (N,)
    node_type_names: tuple[str, ...] = ()
    graph_id: NDArray[np.int32] | None = None  # (N,) from 0 on, where there are several graphs side by side

    def __post_init__(self) -> None:
        if self.features is not None:
            self._set("features", check_features(self.features, self.num_nodes))
        if self.node_type is not None:
            self._set("node_type", self._checked_types(self.node_type))
        if self.graph_id is not None:
            self._set("graph_id", _checked_graphs(self.graph_id, self.num_nodes))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def num_features(self) -> int:
        return 0 if self.features is None else int(self.features.shape[1])

    @property
    def num_graphs(self) -> int:
        return 1 if self.graph_id is None else int(self.graph_id.max()) + 1

    def __repr__(self) -> str:
        types = f", {counted(len(self.node_type_names), 'node type')}" if self.node_type is not None else ""
        graphs = f", {counted(self.num_graphs, 'graph')}" if self.graph_id is not None else ""
        return f"NodeTable({counted(self.num_nodes, 'node')}, {counted(self.num_features, 'feature')}{types}{graphs})"

    def _checked_types(self, types: Any) -> NDArray[np.int16]:
        indices = _whole_numbers(types, "node type", np.int16)
        if len(indices) != self.num_nodes:
            raise GraphError(f"node_type has {len(indices)} values, but the graph has {self.num_nodes} nodes.")
        if indices.max(initial=-1) >= min(len(self.node_type_names), MAX_NODE_TYPES):
            raise GraphError(
                f"node_type {indices.max()} has no name; {len(self.node_type_names)} names were given "
                f"(at most {MAX_NODE_TYPES:,})."
            )
        return frozen(owned(indices, np.int16))


def _checked_graphs(graph_id: Any, num_nodes: int) -> NDArray[np.int32]:
    """Number graphs from 0 without gaps."""
    given = _whole_numbers(graph_id, "graph", np.int32)
    if len(given) != num_nodes:
        raise GraphError(f"graph_id has {len(given)} values, but there are {num_nodes} nodes. Give one for each.")
    used = distinct_values(given)
    if used.size and used[-1] >= used.size:
        warnings.warn(
            f"graphs are numbered up to {used[-1]}, but only {used.size} occur; they were renumbered 0 to {used.size - 1}.",
            GatasWarning,
            stacklevel=4,
        )
        return frozen(np.searchsorted(used, given).astype(np.int32))
    return frozen(owned(given, np.int32))


def distinct_values(column: NDArray[Any]) -> Ints:
    """Return the values that occur in a column, ascending."""
    found = [np.unique(column[first : first + SLICE]) for first in range(0, len(column), SLICE)]
    return np.unique(np.concatenate([np.empty(0, np.int64), *found]))


def _whole_numbers(values: Any, what: str, dtype: type[np.generic]) -> NDArray[Any]:
    """Return numbers from 0 on; what is of this type and cannot be written to (it may be mapped) is not copied."""
    array = as_array(values)
    stays = array.dtype == dtype and array.ndim == 1 and not array.flags.writeable and array.min(initial=0) >= 0
    return array if stays else as_indices(array, what, node_place)


def check_features(features: Any, num_nodes: int) -> Features:
    """Return dense or sparse (N, F) float32 features, or refuse what is none."""
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
    """Make a read-only CSR matrix, its columns ascending and each at most once; it may come from a damaged file."""
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
