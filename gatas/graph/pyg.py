"""Graphs of PyTorch Geometric as a `Graph`: edges, types, weights; what is known about nodes is in `gatas.datasets.pyg`."""

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError, MissingExtraError
from gatas.graph.graph import Graph
from gatas.graph.ids import NodeIds
from gatas.graph.inputs import Ints, as_array, as_indices

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData


def from_pyg(data: "Data | HeteroData | Sequence[Data]", *, inverse: bool = False, undirected: bool = False) -> Graph:
    """Make a graph of `Data`, `HeteroData`, or several `Data` side by side.

    `Dataset.from_pyg` also takes features, labels, splits and links.

    Args:
        data: `Data` with edge_index (or a sparse adj_t), edge_type, edge_weight or a one-column edge_attr; or `HeteroData`,
            whose node types become ranges of ids named `type/number` and whose triples become edge types
            `source__relation__target`.
        inverse: Give every edge type an inverse type of its own.
        undirected: Add the reverse of every edge under the same type.
    """
    if is_hetero(data):
        return _from_hetero(data, inverse=inverse, undirected=undirected)
    return _from_data(parts_of(data), inverse=inverse, undirected=undirected)


def import_pyg(module: str) -> Any:
    """Import a module of PyTorch Geometric, such as `data`; where it is not installed, say how to."""
    try:
        import_module("torch_geometric")
    except ModuleNotFoundError as error:
        if error.name != "torch_geometric":  # installed, but something that it needs is not
            raise
        raise MissingExtraError("this needs PyTorch Geometric, which is not installed", "pyg") from None
    return import_module(f"torch_geometric.{module}")


def is_data(data: Any) -> "TypeGuard[Data]":
    """Whether it is PyG's `Data`."""
    return isinstance(data, import_pyg("data").Data)


def is_hetero(data: Any) -> "TypeGuard[HeteroData]":
    """Whether it is PyG's `HeteroData`."""
    return isinstance(data, import_pyg("data").HeteroData)


def parts_of(data: Any) -> "list[Data]":
    """Return one or several `Data` as a list; anything else is refused."""
    parts = [data] if is_data(data) else list(data) if isinstance(data, list | tuple) else []
    if not parts or not all(map(is_data, parts)):
        raise GraphError(f"expected Data, HeteroData or a list of Data; a {type(data).__name__} came.")
    return parts


def _from_data(parts: "Sequence[Data]", *, inverse: bool, undirected: bool) -> Graph:
    sizes = [num_nodes_of(part) for part in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    titles = [f"graph {number}, " if len(parts) > 1 else "" for number in range(len(parts))]
    ends = [edge_ends(part, size, size, title) for part, size, title in zip(parts, sizes, titles, strict=True)]
    return Graph.from_edges(
        np.concatenate([source + start for (source, _), start in zip(ends, starts[:-1], strict=True)]),
        np.concatenate([target + start for (_, target), start in zip(ends, starts[:-1], strict=True)]),
        joined(parts, "edge_type"),
        num_nodes=int(starts[-1]),
        weight=edge_weight(parts),
        inverse=inverse,
        undirected=undirected,
    )


def _from_hetero(data: "HeteroData", *, inverse: bool, undirected: bool) -> Graph:
    counts = node_counts(data)
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    sources, targets, kinds = [], [], []
    for number, triple in enumerate(data.edge_types):
        start, _, end = triple
        if start not in counts or end not in counts:
            raise GraphError(f"the edge type {triple} has a node type without nodes; known are {', '.join(counts)}.")
        source, target = edge_ends(data[triple], counts[start], counts[end], f"edge type {triple}, ")
        sources.append(source + starts[start])
        targets.append(target + starts[end])
        kinds.append(np.full(len(source), number))
    return Graph.from_edges(
        np.concatenate(sources) if sources else [],
        np.concatenate(targets) if targets else [],
        np.concatenate(kinds) if kinds else None,
        num_nodes=sum(counts.values()),
        weight=edge_weight([data[triple] for triple in data.edge_types]),
        inverse=inverse,
        undirected=undirected,
        node_ids=NodeIds.of([f"{kind}/{row}" for kind, count in counts.items() for row in range(count)]),
        edge_type_names=["__".join(triple) for triple in data.edge_types],
    )


def node_counts(data: "HeteroData") -> dict[str, int]:
    """Return the number of nodes of each node type."""
    counts = {kind: _count(data, kind) for kind in data.node_types}
    if not counts:
        raise GraphError("the HeteroData has no node types.")
    return counts


def _count(data: "HeteroData", kind: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns where it cannot tell; an error is raised below
        count = data[kind].num_nodes
    if count is None:
        raise GraphError(f"the node type {kind!r} has neither x nor num_nodes. Set data[{kind!r}].num_nodes.")
    return int(count)


def num_nodes_of(part: "Data") -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns when it has to guess the number of nodes from the edges
        count = part.num_nodes
    if count is None:
        raise GraphError("the Data has neither nodes nor edges; expected x, num_nodes or edge_index.")
    return int(count)


def edge_ends(store: Any, num_sources: int, num_targets: int, title: str) -> tuple[Ints, Ints]:
    """Return sources and targets of a graph or of an edge type.

    They are checked before they are shifted, or they could hit another's nodes.
    """
    index, adjacency = store.get("edge_index"), _adjacency(store)
    if index is None and adjacency is not None:
        index = adjacency[0]
    array = np.empty((2, 0), np.int64) if index is None else as_array(index)
    if array.ndim != 2 or array.shape[0] != 2:
        raise GraphError(f"{title}edge_index has shape {array.shape}; expected (2, number of edges).")
    ends = []
    for what, column, limit in (("source", array[0], num_sources), ("target", array[1], num_targets)):
        nodes = as_indices(column, what, lambda at: f"{title}edge {at}")
        if nodes.max(initial=-1) >= limit:
            at = int(np.argmax(nodes >= limit))
            raise GraphError(
                f"{title}edge {at}: {what} is node {nodes[at]}, but there are {limit} nodes (0 to {limit - 1}). "
                f"Set num_nodes={nodes.max() + 1}, or renumber the nodes."
            )
        ends.append(nodes)
    return ends[0], ends[1]


def _adjacency(store: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return edge index and values of a sparse adj_t, entry by entry: repeats are for the graph to judge."""
    matrix = store.get("adj_t")
    if matrix is None or store.get("edge_index") is not None:
        return None
    if not isinstance(matrix, torch.Tensor) or matrix.layout == torch.strided:
        raise GraphError(
            f"adj_t is a {'dense tensor' if isinstance(matrix, torch.Tensor) else type(matrix).__name__}; expected a torch "
            "sparse tensor. Convert it with torch_geometric.utils.to_edge_index, or keep edge_index."
        )
    entries: Any = matrix.detach()
    entries = entries if entries.layout == torch.sparse_coo else entries.to_sparse_coo()
    return entries._indices().flip(0), entries._values()  # adj_t holds (target, source); `indices()` would add up repeats


def edge_weight(stores: Sequence[Any]) -> NDArray[Any] | None:
    """Return edge_weight, a one-column edge_attr, or the values of adj_t unless all are 1."""
    weight = joined(stores, "edge_weight")
    if weight is not None:
        return weight
    attributes = joined(stores, "edge_attr")
    if attributes is None:
        matrices = [matrix for store in stores if (matrix := _adjacency(store)) is not None]
        values = [as_array(matrix[1]) for matrix in matrices]
        if not values or len(values) < len(stores) or all((part == 1).all() for part in values):
            return None
        return np.concatenate(values)
    if attributes.ndim == 2 and attributes.shape[1] != 1:
        warnings.warn(
            f"edge_attr has {attributes.shape[1]} columns and was not used: edges carry a type and a weight.",
            GatasWarning,
            stacklevel=5,
        )
        return None
    return attributes.reshape(-1) if attributes.ndim == 2 else attributes


def joined(stores: Sequence[Any], name: str) -> NDArray[Any] | None:
    """Join an attribute of all graphs or types, one after the other; None if none of them has it."""
    values = [store.get(name) for store in stores]
    if all(value is None for value in values):
        return None
    if any(value is None for value in values):
        raise GraphError(f"only some of the graphs or edge types have {name!r}. Give it to all of them, or to none.")
    arrays = [np.atleast_1d(dense(value)) for value in values]
    if len({array.shape[1:] for array in arrays}) > 1:
        shapes = ", ".join(str(array.shape) for array in arrays[:4])
        raise GraphError(f"{name} differs in width between the graphs: {shapes}. Give all of them the same columns.")
    return np.concatenate(arrays)


def dense(value: Any) -> NDArray[Any]:
    """Return an attribute as an array; sparse tensors are filled up."""
    sparse = isinstance(value, torch.Tensor) and value.layout != torch.strided
    return as_array(value.to_dense() if sparse else value)
