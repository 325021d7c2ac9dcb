"""Graphs of PyTorch Geometric, in and out."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, HeteroData

from gatas.errors import GatasWarning, GraphError
from gatas.graph.graph import Graph
from gatas.graph.inputs import Ints, as_array, as_indices
from gatas.graph.nodes import NodeTable

MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


def from_pyg(data: Data | HeteroData | Sequence[Data], *, inverse: bool = False, undirected: bool = False) -> Graph:
    """A graph from `Data`, `HeteroData`, or several `Data` side by side.

    `Data`: edge_index (or a sparse adj_t), edge_type, edge_weight or a one-column edge_attr, x, y, *_mask, batch.
    `HeteroData`: node types become ranges of ids named `type/number`, triples become edge types `source__relation__target`.
    """
    if isinstance(data, HeteroData):
        from gatas.graph.hetero import from_hetero

        return from_hetero(data, inverse=inverse, undirected=undirected)
    parts = [data] if isinstance(data, Data) else list(data)
    if not parts or not all(isinstance(part, Data) for part in parts):
        raise GraphError(f"from_pyg takes Data, HeteroData or a list of Data; a {type(data).__name__} came.")
    return _from_data(parts, inverse=inverse, undirected=undirected)


def to_pyg(graph: Graph) -> Data | HeteroData:
    """`HeteroData` for a graph with node types, `Data` otherwise (edge_type, edge_weight and batch where there are any)."""
    if graph.nodes.node_type is None:
        return _to_data(graph)
    from gatas.graph.hetero import to_hetero

    return to_hetero(graph)


def _from_data(parts: Sequence[Data], *, inverse: bool, undirected: bool) -> Graph:
    sizes = [_num_nodes(part) for part in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    num_nodes, several = int(starts[-1]), len(parts) > 1
    titles = [f"graph {number}, " if several else "" for number in range(len(parts))]
    ends = [edge_ends(part, size, size, title) for part, size, title in zip(parts, sizes, titles, strict=True)]
    graph_id = np.repeat(np.arange(len(parts)), sizes) if several else joined(parts, "batch")
    num_graphs = 1 if graph_id is None else len(np.unique(graph_id))
    return Graph.from_edges(
        np.concatenate([source + start for (source, _), start in zip(ends, starts[:-1], strict=True)]),
        np.concatenate([target + start for (_, target), start in zip(ends, starts[:-1], strict=True)]),
        joined(parts, "edge_type"),
        num_nodes=num_nodes,
        weight=edge_weight(parts),
        inverse=inverse,
        undirected=undirected,
        graph_id=graph_id,
        nodes=NodeTable(
            num_nodes,
            features=as_columns(joined(parts, "x")),
            labels=node_labels(joined(parts, "y"), num_nodes, num_graphs),
            splits=_splits(parts, num_nodes),
        ),
    )


def _num_nodes(part: Data) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns when it has to guess the number of nodes from the edges
        count = part.num_nodes
    if count is None:
        raise GraphError("the Data has neither nodes nor edges; expected x, num_nodes or edge_index.")
    return int(count)


def edge_ends(store: Any, num_sources: int, num_targets: int, title: str) -> tuple[Ints, Ints]:
    """Sources and targets of a graph or of an edge type. Checked before they are shifted, or they could hit another's nodes."""
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
    """Edge index and values of a sparse adj_t, entry by entry: repeats are for the graph to judge."""
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
    """edge_weight, a one-column edge_attr, or the values of adj_t unless all are 1."""
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
    """An attribute of all graphs or types, one after the other; None if none of them has it."""
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
    """An attribute as an array; sparse tensors are filled up."""
    sparse = isinstance(value, torch.Tensor) and value.layout != torch.strided
    return as_array(value.to_dense() if sparse else value)


def as_columns(features: NDArray[Any] | None) -> NDArray[Any] | None:
    """A vector is a matrix of one column."""
    return features[:, None] if features is not None and features.ndim == 1 else features


def node_labels(labels: NDArray[Any] | None, num_nodes: int, num_graphs: int) -> NDArray[Any] | None:
    """Labels of nodes; those of whole graphs are not used."""
    if labels is None:
        return None
    if len(labels) != num_nodes and len(labels) == num_graphs:
        warnings.warn(f"y labels {num_graphs} graphs, not their nodes, and was not used.", GatasWarning, stacklevel=5)
        return None
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _splits(parts: Sequence[Data], num_nodes: int) -> dict[str, Ints]:
    masks = {name: joined(parts, attribute) for name, attribute in MASKS.items()}
    return {name: nodes_in_mask(mask, MASKS[name], num_nodes) for name, mask in masks.items() if mask is not None}


def nodes_in_mask(mask: NDArray[Any], attribute: str, num_nodes: int) -> Ints:
    """The nodes for which a mask, one truth value per node, is true."""
    if mask.shape != (num_nodes,):
        raise GraphError(
            f"{attribute} has shape {mask.shape}; expected ({num_nodes},). Choose one of several splits first, "
            f"such as data.{attribute} = data.{attribute}[:, 0]."
        )
    if not ((mask == 0) | (mask == 1)).all():
        raise GraphError(f"{attribute} holds other values than true and false. Make a mask of node numbers first.")
    return np.flatnonzero(mask)


def _to_data(graph: Graph) -> Data:
    nodes = graph.nodes
    data = Data(edge_index=tensor_ends(graph.source, graph.neighbour), num_nodes=graph.num_nodes)
    if graph.num_edge_types > 1:
        data.edge_type = torch.from_numpy(graph.edge_type.astype(np.int64))
    if graph.weight is not None:
        data.edge_weight = torch.from_numpy(graph.weight.copy())
    if graph.graph_id is not None:
        data.batch = torch.from_numpy(graph.graph_id.astype(np.int64))
    if nodes.features is not None:
        dense = nodes.features if isinstance(nodes.features, np.ndarray) else nodes.features.toarray()
        data.x = torch.from_numpy(dense.copy())
    if nodes.labels is not None:
        data.y = torch.from_numpy(nodes.labels.copy())
    for name, split in nodes.splits.items():
        data[MASKS.get(name, f"{name}_mask")] = as_tensor_mask(split, graph.num_nodes)
    return data


def tensor_ends(source: NDArray[Any], target: NDArray[Any]) -> torch.Tensor:
    """An edge_index."""
    return torch.from_numpy(np.stack([source, target]).astype(np.int64))


def as_tensor_mask(split: NDArray[Any], num_nodes: int) -> torch.Tensor:
    """Node numbers as a mask."""
    mask = torch.zeros(num_nodes, dtype=torch.bool)
    mask[torch.from_numpy(split.copy())] = True
    return mask
