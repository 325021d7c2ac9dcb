"""Graphs of PyTorch Geometric, in and out."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data, HeteroData

from gatas.errors import GatasWarning, GraphError
from gatas.graph.graph import Graph
from gatas.graph.inputs import as_array
from gatas.graph.names import Names
from gatas.graph.nodes import UNLABELLED, NodeTable

MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


def from_pyg(data: Data | HeteroData | Sequence[Data], *, inverse: bool = False, undirected: bool = False) -> Graph:
    """A graph from `Data`, `HeteroData`, or several `Data` side by side.

    `Data`: edge_index (or a sparse adj_t), edge_type, edge_weight or a one-column edge_attr, x, y, *_mask, batch.
    `HeteroData`: node types become ranges of ids named `type/number`, triples become edge types `source__relation__target`.
    """
    if isinstance(data, HeteroData):
        return _from_hetero(data, inverse=inverse, undirected=undirected)
    if isinstance(data, Data):
        return _from_data([data], inverse=inverse, undirected=undirected)
    parts = list(data)
    if not parts or not all(isinstance(part, Data) for part in parts):
        raise GraphError(f"from_pyg takes Data, HeteroData or a list of Data; a {type(data).__name__} came.")
    return _from_data(parts, inverse=inverse, undirected=undirected)


def to_pyg(graph: Graph) -> Data | HeteroData:
    """`HeteroData` for a graph with node types, `Data` otherwise (edge_type, edge_weight and batch where there are any)."""
    return _to_data(graph) if graph.nodes.node_type is None else _to_hetero(graph)


def _from_data(parts: Sequence[Data], *, inverse: bool, undirected: bool) -> Graph:
    sizes = np.array([_num_nodes(part) for part in parts])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    num_nodes = int(starts[-1])
    ends = [_edge_index(part) for part in parts]
    several = len(parts) > 1
    batch = _optional(parts, "batch")
    graph_id = np.repeat(np.arange(len(parts)), sizes) if several else batch
    return Graph.from_edges(
        np.concatenate([end[0] + start for end, start in zip(ends, starts, strict=False)]),
        np.concatenate([end[1] + start for end, start in zip(ends, starts, strict=False)]),
        _optional(parts, "edge_type"),
        num_nodes=num_nodes,
        weight=_edge_weight(parts),
        inverse=inverse,
        undirected=undirected,
        graph_id=graph_id,
        nodes=NodeTable(
            num_nodes,
            features=_dense_features(_optional(parts, "x")),
            labels=_labels(_optional(parts, "y"), num_nodes),
            splits=_masks(parts, num_nodes),
        ),
    )


def _num_nodes(part: Data) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns when it has to guess the number of nodes from the edges
        count = part.num_nodes
    if count is None:
        raise GraphError("the Data has neither nodes nor edges; expected x, num_nodes or edge_index.")
    return int(count)


def _edge_index(part: Data) -> NDArray[Any]:
    index = part.get("edge_index")
    if index is None:
        adjacency = part.get("adj_t", part.get("adj"))
        if adjacency is None:
            return np.empty((2, 0), np.int64)
        if not isinstance(adjacency, torch.Tensor):
            raise GraphError(
                f"adj_t is a {type(adjacency).__name__}; expected a torch sparse tensor. "
                "Convert it with torch_geometric.utils.to_edge_index, or keep edge_index."
            )
        index = adjacency.to_sparse_coo().coalesce().indices()
        index = index.flip(0) if "adj_t" in part else index  # adj_t holds (target, source)
    array = as_array(index)
    if array.ndim != 2 or array.shape[0] != 2:
        raise GraphError(f"edge_index has shape {array.shape}; expected (2, number of edges).")
    return array


def _edge_weight(parts: Sequence[Data]) -> NDArray[Any] | None:
    weight = _optional(parts, "edge_weight")
    if weight is not None:
        return weight
    attributes = _optional(parts, "edge_attr")
    if attributes is None:
        return None
    if attributes.ndim == 2 and attributes.shape[1] == 1:
        return attributes[:, 0]
    if attributes.ndim == 2:
        warnings.warn(
            f"edge_attr has {attributes.shape[1]} columns and was not used: edges carry a type and a weight.",
            GatasWarning,
            stacklevel=5,
        )
        return None
    return attributes


def _optional(parts: Sequence[Data], name: str) -> NDArray[Any] | None:
    """An attribute of all parts, joined; None if none of them has it."""
    values = [part.get(name) for part in parts]
    if all(value is None for value in values):
        return None
    if any(value is None for value in values):
        raise GraphError(f"only some of the graphs have {name!r}. Give it to all of them, or to none.")
    values = [
        value.to_dense() if isinstance(value, torch.Tensor) and value.layout != torch.strided else value for value in values
    ]
    return np.concatenate([as_array(value) for value in values])


def _dense_features(features: NDArray[Any] | None) -> NDArray[Any] | None:
    return features[:, None] if features is not None and features.ndim == 1 else features


def _labels(labels: NDArray[Any] | None, num_nodes: int) -> NDArray[Any] | None:
    if labels is None or len(labels) != num_nodes:
        return None  # a label of the whole graph, not of its nodes
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _masks(parts: Sequence[Data], num_nodes: int) -> dict[str, NDArray[Any]]:
    masks = {name: mask for name, attribute in MASKS.items() if (mask := _optional(parts, attribute)) is not None}
    for name, mask in masks.items():
        if mask.shape != (num_nodes,):
            raise GraphError(
                f"{MASKS[name]} has shape {mask.shape}; expected ({num_nodes},). Choose one of several splits first, "
                f"such as data.{MASKS[name]} = data.{MASKS[name]}[:, 0]."
            )
    return {name: mask.astype(bool) for name, mask in masks.items()}


def _from_hetero(data: HeteroData, *, inverse: bool, undirected: bool) -> Graph:
    types = list(data.node_types)
    if not types:
        raise GraphError("the HeteroData has no node types.")
    counts = [int(data[kind].num_nodes or 0) for kind in types]
    starts = dict(zip(types, np.concatenate([[0], np.cumsum(counts)[:-1]]).tolist(), strict=True))
    num_nodes = sum(counts)
    ends, kinds, weights = [], [], []
    for number, (source, _, target) in enumerate(data.edge_types):
        store = data[data.edge_types[number]]
        index = as_array(store.edge_index)
        ends.append(index + np.array([[starts[source]], [starts[target]]]))
        kinds.append(np.full(index.shape[1], number))
        weights.append(store.get("edge_weight"))
    if any(weight is not None for weight in weights) and any(weight is None for weight in weights):
        raise GraphError("only some edge types have edge_weight. Give it to all of them, or to none.")
    joined = np.concatenate(ends, axis=1) if ends else np.empty((2, 0), np.int64)
    return Graph.from_edges(
        joined[0],
        joined[1],
        np.concatenate(kinds) if kinds else None,
        num_nodes=num_nodes,
        weight=np.concatenate([as_array(weight) for weight in weights]) if weights and weights[0] is not None else None,
        inverse=inverse,
        undirected=undirected,
        node_names=Names.of([f"{kind}/{row}" for kind, count in zip(types, counts, strict=True) for row in range(count)]),
        edge_type_names=["__".join(triple) for triple in data.edge_types],
        nodes=_hetero_nodes(data, types, counts),
    )


def _hetero_nodes(data: HeteroData, types: list[str], counts: list[int]) -> NodeTable:
    num_nodes = sum(counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    labels: NDArray[Any] | None = None
    splits = {}
    for kind, start, count in zip(types, starts, counts, strict=False):
        if "y" in data[kind]:
            own = _labels(as_array(data[kind].y), count)
            if own is not None and own.ndim == 1:
                labels = np.full(num_nodes, UNLABELLED) if labels is None else labels
                labels[start : start + count] = own
            elif own is not None:
                labels = np.zeros((num_nodes, own.shape[1]), np.uint8) if labels is None else labels
                labels[start : start + count] = own
        for name, attribute in MASKS.items():
            if attribute in data[kind]:
                chosen = np.flatnonzero(as_array(data[kind][attribute])) + start
                splits[name] = np.concatenate([splits[name], chosen]) if name in splits else chosen
    return NodeTable(
        num_nodes,
        features=_hetero_features(data, types, counts),
        labels=labels,
        splits=splits,
        node_type=np.repeat(np.arange(len(types)), counts).astype(np.int16),
        node_type_names=tuple(types),
    )


def _hetero_features(data: HeteroData, types: list[str], counts: list[int]) -> NDArray[np.float32] | sparse.csr_array | None:
    """One matrix for all types: stacked if widths agree, in columns of their own if they do not; zeros where there are none."""
    blocks = [_dense_features(as_array(data[kind].x)) if "x" in data[kind] else None for kind in types]
    widths = {block.shape[1] for block in blocks if block is not None}
    if not widths:
        return None
    if len(widths) == 1:
        width = widths.pop()
        rows = [np.zeros((count, width)) if block is None else block for block, count in zip(blocks, counts, strict=True)]
        return np.concatenate(rows).astype(np.float32)
    diagonal = [sparse.csr_array((count, 0)) if block is None else sparse.csr_array(block)
                for block, count in zip(blocks, counts, strict=True)]  # fmt: skip
    return sparse.csr_array(sparse.block_diag(diagonal, format="csr")).astype(np.float32)


def _to_data(graph: Graph) -> Data:
    nodes = graph.nodes
    data = Data(edge_index=_ends(graph.source, graph.neighbour), num_nodes=graph.num_nodes)
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
        data[MASKS.get(name, f"{name}_mask")] = _mask(split, graph.num_nodes)
    return data


def _to_hetero(graph: Graph) -> HeteroData:
    nodes, data = graph.nodes, HeteroData()
    assert nodes.node_type is not None
    local = np.empty(graph.num_nodes, np.int64)
    members = [np.flatnonzero(nodes.node_type == number) for number in range(len(nodes.node_type_names))]
    for kind, rows in zip(nodes.node_type_names, members, strict=True):
        local[rows] = np.arange(rows.size)
        data[kind].num_nodes = rows.size
        if nodes.features is not None:
            part = nodes.features[rows]
            data[kind].x = torch.from_numpy((part if isinstance(part, np.ndarray) else part.toarray()).copy())
        if nodes.labels is not None:
            data[kind].y = torch.from_numpy(nodes.labels[rows])
        for name, split in nodes.splits.items():
            data[kind][MASKS.get(name, f"{name}_mask")] = _mask(split, graph.num_nodes)[torch.from_numpy(rows)]
    source = graph.source
    for number, name in enumerate(graph.edge_type_names):
        chosen = graph.edge_type == number
        pairs = np.unique(nodes.node_type[np.stack([source[chosen], graph.neighbour[chosen]])], axis=1).T
        relation = name.split("__")[1] if name.count("__") == 2 else name
        for start, end in pairs:
            here = chosen & (nodes.node_type[source] == start) & (nodes.node_type[graph.neighbour] == end)
            store = data[nodes.node_type_names[start], relation, nodes.node_type_names[end]]
            store.edge_index = _ends(local[source[here]], local[graph.neighbour[here]])
            if graph.weight is not None:
                store.edge_weight = torch.from_numpy(graph.weight[here])
    return data


def _ends(source: NDArray[Any], target: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.stack([source, target]).astype(np.int64))


def _mask(split: NDArray[Any], num_nodes: int) -> torch.Tensor:
    mask = torch.zeros(num_nodes, dtype=torch.bool)
    mask[torch.from_numpy(split.copy())] = True
    return mask
