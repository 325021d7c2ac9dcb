"""`HeteroData` of PyTorch Geometric: several types of nodes, each numbered from 0, as one graph and back."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import HeteroData

from gatas.errors import GatasWarning, GraphError
from gatas.graph.graph import Graph
from gatas.graph.inputs import Ints, as_features
from gatas.graph.names import Names
from gatas.graph.nodes import UNLABELLED, Features, NodeTable, check_labels
from gatas.graph.pyg import (
    MASKS,
    as_columns,
    as_tensor_mask,
    dense,
    edge_ends,
    edge_weight,
    node_labels,
    nodes_in_mask,
    tensor_ends,
)

INVERSE = "⁻¹"


def from_hetero(data: HeteroData, *, inverse: bool = False, undirected: bool = False) -> Graph:
    """Node types become ranges of ids named `type/number`, triples become edge types `source__relation__target`."""
    counts = {kind: _count(data, kind) for kind in data.node_types}
    if not counts:
        raise GraphError("the HeteroData has no node types.")
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
        node_names=Names.of([f"{kind}/{row}" for kind, count in counts.items() for row in range(count)]),
        edge_type_names=["__".join(triple) for triple in data.edge_types],
        nodes=_node_table(data, counts),
    )


def _count(data: HeteroData, kind: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns where it cannot tell; an error is raised below
        count = data[kind].num_nodes
    if count is None:
        raise GraphError(f"the node type {kind!r} has neither x nor num_nodes. Set data[{kind!r}].num_nodes.")
    return int(count)


def _node_table(data: HeteroData, counts: dict[str, int]) -> NodeTable:
    splits: dict[str, Ints] = {}
    start = 0
    for kind, count in counts.items():
        for name, attribute in MASKS.items():
            if attribute in data[kind]:
                chosen = nodes_in_mask(dense(data[kind][attribute]), attribute, count) + start
                splits[name] = np.concatenate([splits[name], chosen]) if name in splits else chosen
        start += count
    return NodeTable(
        sum(counts.values()),
        features=_features(data, counts),
        labels=_labels(data, counts),
        splits=splits,
        node_type=np.repeat(np.arange(len(counts)), list(counts.values())).astype(np.int16),
        node_type_names=tuple(counts),
    )


def _labels(data: HeteroData, counts: dict[str, int]) -> NDArray[Any] | None:
    """Labels of all types; a type without any is unlabelled, or has none of several."""
    own = {kind: node_labels(dense(data[kind].y), count, 1) for kind, count in counts.items() if "y" in data[kind]}
    given = {kind: check_labels(labels, counts[kind], None) for kind, labels in own.items() if labels is not None}
    if not given:
        return None
    widths = {labels.shape[1:] for labels in given.values()}
    if len(widths) > 1:
        raise GraphError(f"y differs in width between the node types {', '.join(given)}. Keep the labels of one type.")
    if sum(bool((labels > UNLABELLED).any()) for labels in given.values() if labels.ndim == 1) > 1:
        warnings.warn(
            f"{len(given)} node types have labels ({', '.join(given)}); equal numbers are taken for the same class.",
            GatasWarning,
            stacklevel=5,
        )
    width = widths.pop()
    blank = 0 if width else UNLABELLED
    parts = [given.get(kind, np.full((count, *width), blank)) for kind, count in counts.items()]
    return np.concatenate(parts)


def _features(data: HeteroData, counts: dict[str, int]) -> Features | None:
    """One matrix for all types: stacked if widths agree, in columns of their own if they do not; zeros where there are none."""
    blocks = {kind: _feature_block(data, kind, count) for kind, count in counts.items()}
    widths = {block.shape[1] for block in blocks.values() if block is not None}
    if not widths:
        return None
    missing = widths.pop() if len(widths) == 1 else 0
    parts = [np.zeros((counts[kind], missing), np.float32) if block is None else block for kind, block in blocks.items()]
    if len({part.shape[1] for part in parts}) == 1:
        return np.concatenate(parts)
    return sparse.csr_array(sparse.block_diag([sparse.csr_array(part) for part in parts], format="csr"))


def _feature_block(data: HeteroData, kind: str, count: int) -> NDArray[np.float32] | None:
    if "x" not in data[kind]:
        return None
    return as_features(as_columns(dense(data[kind].x)), count, lambda row: f"node {kind}/{row}")


def to_hetero(graph: Graph) -> HeteroData:
    """Nodes by type, edges by type and by the types of their ends."""
    nodes, data = graph.nodes, HeteroData()
    assert nodes.node_type is not None
    local = np.empty(graph.num_nodes, np.int64)
    for number, kind in enumerate(nodes.node_type_names):
        rows = np.flatnonzero(nodes.node_type == number)
        local[rows] = np.arange(rows.size)
        _fill_nodes(data[kind], graph, rows)
    source, target = graph.source, graph.neighbour
    starts, ends = nodes.node_type[source], nodes.node_type[target]
    for number, name in enumerate(graph.edge_type_names):
        of_type = graph.edge_type == number
        for triple in _triples(name, nodes.node_type_names, starts[of_type], ends[of_type]):
            start, end = nodes.node_type_names.index(triple[0]), nodes.node_type_names.index(triple[2])
            here = of_type & (starts == start) & (ends == end)
            store = data[triple]
            store.edge_index = tensor_ends(local[source[here]], local[target[here]])
            if graph.weight is not None:
                store.edge_weight = torch.from_numpy(graph.weight[here])
    return data


def _fill_nodes(store: Any, graph: Graph, rows: NDArray[np.int64]) -> None:
    nodes = graph.nodes
    store.num_nodes = rows.size
    if nodes.features is not None:
        part: Any = nodes.features[rows]
        store.x = torch.from_numpy(part if isinstance(part, np.ndarray) else part.toarray())
    if nodes.labels is not None:
        store.y = torch.from_numpy(nodes.labels[rows])
    for name, split in nodes.splits.items():
        store[MASKS.get(name, f"{name}_mask")] = as_tensor_mask(split, graph.num_nodes)[torch.from_numpy(rows)]


def _triples(
    name: str, kinds: tuple[str, ...], starts: NDArray[np.int16], ends: NDArray[np.int16]
) -> list[tuple[str, str, str]]:
    """PyG's names for an edge type: `paper__cites__paper` is split up, an inverse keeps its mark, others are taken whole."""
    pairs = [(kinds[start], kinds[end]) for start, end in np.unique(np.stack([starts, ends]), axis=1).T]
    parts = name.removesuffix(INVERSE).split("__")
    if len(parts) == 3 and parts[0] in kinds and parts[2] in kinds:
        start, relation, end = parts if not name.endswith(INVERSE) else (parts[2], f"{parts[1]}{INVERSE}", parts[0])
        if all(pair == (start, end) for pair in pairs):
            return [(start, relation, end)]
    return [(start, name, end) for start, end in pairs]
