"""Data sets of PyTorch Geometric, in and out: features, node types, labels, masks and links beside the graph."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from gatas.datasets.config import NODE_REGRESSION, ConfigTask, Direction, Ratios
from gatas.datasets.dataset import Dataset
from gatas.datasets.held_out import is_symmetric
from gatas.datasets.labels import Labels
from gatas.datasets.node_table import Features, NodeTable
from gatas.datasets.pyg_links import PygData, link_parts, links_from_pyg
from gatas.datasets.splitting import split_nodes
from gatas.datasets.targets import UNLABELLED, LinkTargets, NodeTargets, check_labels, check_numbers
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph
from gatas.graph.inputs import Ints, as_features
from gatas.graph.pyg import dense, from_pyg, import_pyg, is_hetero, joined, node_counts, num_nodes_of, parts_of

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


def dataset_from_pyg(
    data: PygData | Sequence[PygData],
    *,
    task: ConfigTask = "node classification",
    direction: Direction = "auto",
    link_types: Sequence[str] | None = None,
    ratios: Ratios | Mapping[str, float] | None = None,
    class_names: Sequence[str] = (),
    name: str = "own data",
    seed: int = 0,
) -> Dataset:
    """Make a data set of PyTorch Geometric's data; arguments are those of `Dataset.from_pyg`."""
    shares = ratios if isinstance(ratios, Ratios) else Ratios(**(ratios or {}))
    if task == "link prediction":
        parts = link_parts(data)
        nodes = node_table_of(parts[0] if is_hetero(parts[0]) else parts[:1])
        return links_from_pyg(parts, nodes, direction=direction, link_types=link_types, ratios=shares, name=name, seed=seed)
    if link_types is not None:
        raise GraphError("link_types was given, which is for link prediction. Set task, or leave it out.")
    given = data if is_hetero(data) else parts_of(data)
    graph = _directed(given, direction)
    if task == NODE_REGRESSION:
        numbers = Labels(*_numbers(given, name), tuple(class_names))
        return Dataset(
            name,
            graph,
            numbers.targets(task, _masks(given) or split_nodes(numbers, shares, seed)),
            node_table_of(given),
        )
    labels = _hetero_labels(given) if is_hetero(given) else _labels(given)
    if labels is None:
        raise GraphError(f"{name}: the data has no y, so no class can be learned. Set y, or task='link prediction'.")
    splits = _masks(given) or _drawn_splits(labels, shares, seed)
    return Dataset(name, graph, NodeTargets(labels, tuple(class_names), splits), node_table_of(given))


def to_pyg(data: Graph | Dataset) -> "Data | HeteroData":
    """Return `HeteroData` for a data set with node types, `Data` otherwise (edge_type, edge_weight, batch where there are any).

    A data set's features, labels and splits become x, y and masks; its links become edge_label_index and edge_label of
    `train`, and `valid_` and `test_` before these names for the other splits. In `Data`, edge_label_type has the numbers of
    edge_type; types of link that the graph does not have come after these.
    """
    graph = data if isinstance(data, Graph) else data.graph
    nodes = None if isinstance(data, Graph) else data.nodes
    if nodes is not None and nodes.node_type is not None:
        return _to_hetero(data)  # type: ignore[arg-type]
    result = import_pyg("data").Data(edge_index=_edge_index(graph.source, graph.neighbour), num_nodes=graph.num_nodes)
    if graph.num_edge_types > 1:
        result.edge_type = torch.from_numpy(graph.edge_type.astype(np.int64))
    if graph.weight is not None:
        result.edge_weight = torch.from_numpy(graph.weight.copy())
    if nodes is not None and nodes.graph_id is not None:
        result.batch = torch.from_numpy(nodes.graph_id.astype(np.int64))
    if isinstance(data, Dataset):
        _fill_nodes(result, data, np.arange(graph.num_nodes))
        _fill_links(result, data)
    return result


def node_table_of(data: "HeteroData | list[Data]") -> NodeTable:
    """Return features, node types and graph ids of PyG's nodes."""
    if is_hetero(data):
        counts = node_counts(data)
        types = np.repeat(np.arange(len(counts)), list(counts.values())).astype(np.int16)
        return NodeTable(sum(counts.values()), _hetero_features(data, counts), types, tuple(counts))
    sizes = [num_nodes_of(part) for part in data]
    return NodeTable(sum(sizes), _as_columns(joined(data, "x")), graph_id=_graph_ids(data))


def _graph_ids(parts: "list[Data]") -> NDArray[Any] | None:
    sizes = [num_nodes_of(part) for part in parts]
    return np.repeat(np.arange(len(parts)), sizes) if len(parts) > 1 else joined(parts, "batch")


def _directed(data: Any, direction: Direction) -> Graph:
    """Make the graph, with edges that lead back as was asked for."""
    graph = from_pyg(data)
    chosen = direction if direction != "auto" else ("undirected" if is_symmetric(graph) else "inverse")
    return from_pyg(data, inverse=chosen == "inverse", undirected=chosen == "undirected")


def _labels(parts: "list[Data]") -> NDArray[Any] | None:
    num_nodes, graph_id = sum(num_nodes_of(part) for part in parts), _graph_ids(parts)
    labels = _node_labels(joined(parts, "y"), num_nodes, 1 if graph_id is None else len(np.unique(graph_id)))
    if labels is not None and len(labels) != num_nodes:
        raise GraphError(f"y: labels have shape {labels.shape}, but the graph has {num_nodes} nodes. Give one for each.")
    return labels


def _node_labels(labels: NDArray[Any] | None, num_nodes: int, num_graphs: int) -> NDArray[Any] | None:
    """Return labels of nodes; those of whole graphs are not used."""
    if labels is None:
        return None
    if len(labels) != num_nodes and len(labels) == num_graphs:
        warnings.warn(f"y labels {num_graphs} graphs, not their nodes, and was not used.", GatasWarning, stacklevel=6)
        return None
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _numbers(given: "HeteroData | list[Data]", name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return (N, T) numbers of all nodes, NaN for types of nodes without any, and which nodes have one."""
    if is_hetero(given):
        counts = node_counts(given)
        own = {kind: _node_labels(dense(given[kind].y), count, 1) for kind, count in counts.items() if "y" in given[kind]}
        widths = {1 if rows is None or rows.ndim == 1 else rows.shape[1] for rows in own.values()}
        if len(widths) > 1:
            raise GraphError(f"{name}: y has {sorted(widths)} numbers a node, by type. Give all types as many, NaN for none.")
        blank = {kind: np.full((count, *widths), np.nan) for kind, count in counts.items()}
        found = np.concatenate([blank[kind] if own.get(kind) is None else check_numbers(own[kind], None) for kind in counts])
        labels: NDArray[Any] | None = found if widths else None
    else:
        labels = _labels(given)
    if labels is None:
        raise GraphError(f"{name}: the data has no y, so no number can be learned. Set y, or task='link prediction'.")
    values = check_numbers(labels, None)
    return values, np.asarray(~np.isnan(values).all(1))


def _hetero_labels(data: "HeteroData") -> NDArray[Any] | None:
    """Return labels of all node types; a type without any is unlabelled, or has none of the labels."""
    counts = node_counts(data)
    own = {kind: _node_labels(dense(data[kind].y), count, 1) for kind, count in counts.items() if "y" in data[kind]}
    given = {kind: check_labels(labels, None) for kind, labels in own.items() if labels is not None}
    for kind, labels in given.items():
        if len(labels) != counts[kind]:
            raise GraphError(f"y of node type {kind!r} has {len(labels)} rows for {counts[kind]} nodes. Give one for each.")
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


def _hetero_features(data: "HeteroData", counts: dict[str, int]) -> Features | None:
    """Join features of all types: stacked if widths agree, in columns of their own if not; zeros where there are none."""
    blocks = {kind: _feature_block(data, kind, count) for kind, count in counts.items()}
    widths = {block.shape[1] for block in blocks.values() if block is not None}
    if not widths:
        return None
    missing = widths.pop() if len(widths) == 1 else 0
    parts = [np.zeros((counts[kind], missing), np.float32) if block is None else block for kind, block in blocks.items()]
    if len({part.shape[1] for part in parts}) == 1:
        return np.concatenate(parts)
    return sparse.csr_array(sparse.block_diag([sparse.csr_array(part) for part in parts], format="csr"))


def _feature_block(data: "HeteroData", kind: str, count: int) -> NDArray[np.float32] | None:
    if "x" not in data[kind]:
        return None
    return as_features(_as_columns(dense(data[kind].x)), count, lambda row: f"node {kind}/{row}")


def _as_columns(features: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return a vector as a matrix of one column."""
    return features[:, None] if features is not None and features.ndim == 1 else features


def _masks(data: "HeteroData | list[Data]") -> dict[str, Ints]:
    if not is_hetero(data):
        num_nodes = sum(num_nodes_of(part) for part in data)
        masks = {split: joined(data, attribute) for split, attribute in MASKS.items()}
        return {split: _nodes_in(mask, MASKS[split], num_nodes) for split, mask in masks.items() if mask is not None}
    splits: dict[str, Ints] = {}
    start = 0
    for kind, count in node_counts(data).items():
        for split, attribute in MASKS.items():
            if attribute in data[kind]:
                chosen = _nodes_in(dense(data[kind][attribute]), attribute, count) + start
                splits[split] = np.concatenate([splits[split], chosen]) if split in splits else chosen
        start += count
    return splits


def _nodes_in(mask: NDArray[Any], attribute: str, num_nodes: int) -> Ints:
    """Return the nodes for which a mask, one truth value per node, is true."""
    if mask.shape != (num_nodes,):
        raise GraphError(
            f"{attribute} has shape {mask.shape}; expected ({num_nodes},). Choose one of several splits first, "
            f"such as data.{attribute} = data.{attribute}[:, 0]."
        )
    if not ((mask == 0) | (mask == 1)).all():
        raise GraphError(f"{attribute} holds other values than true and false. Make a mask of node indices first.")
    return np.flatnonzero(mask)


def _drawn_splits(labels: NDArray[Any], ratios: Ratios, seed: int) -> dict[str, Ints]:
    checked = check_labels(labels, None)
    known = np.ones(len(checked), np.bool_) if checked.ndim == 2 else checked >= 0
    return split_nodes(Labels(checked, known, ()), ratios, seed)


def _to_hetero(dataset: Dataset) -> "HeteroData":
    """Return nodes by type, edges by type and by the types of their ends."""
    graph, nodes, data = dataset.graph, dataset.nodes, import_pyg("data").HeteroData()
    assert nodes.node_type is not None
    local = np.empty(graph.num_nodes, np.int64)
    for number, kind in enumerate(nodes.node_type_names):
        rows = np.flatnonzero(nodes.node_type == number)
        local[rows] = np.arange(rows.size)
        data[kind].num_nodes = rows.size
        _fill_nodes(data[kind], dataset, rows)
    source, target = graph.source, graph.neighbour
    starts, ends = nodes.node_type[source], nodes.node_type[target]
    for number, name in enumerate(graph.edge_type_names):
        of_type = graph.edge_type == number
        original = None if number in graph.original_edge_types else graph.edge_type_names[graph.inverse_of[number]]
        for triple in _triples(name, nodes.node_type_names, starts[of_type], ends[of_type], inverse_of=original):
            start, end = nodes.node_type_names.index(triple[0]), nodes.node_type_names.index(triple[2])
            here = of_type & (starts == start) & (ends == end)
            store = data[triple]
            store.edge_index = _edge_index(local[source[here]], local[target[here]])
            if graph.weight is not None:
                store.edge_weight = torch.from_numpy(graph.weight[here])
    _fill_hetero_links(data, dataset, local)
    return data


def _fill_nodes(store: Any, dataset: Dataset, rows: Ints) -> None:
    features = dataset.features
    if features is not None:
        part: Any = features[rows]
        store.x = torch.from_numpy(np.array(part) if isinstance(part, np.ndarray) else part.toarray())
    if not isinstance(dataset.targets, LinkTargets):
        known = dataset.targets.labels if isinstance(dataset.targets, NodeTargets) else dataset.targets.values
        store.y = torch.from_numpy(known[rows].copy())
        for name, split in dataset.targets.splits.items():
            mask = torch.zeros(dataset.graph.num_nodes, dtype=torch.bool)
            mask[torch.from_numpy(split.copy())] = True
            store[MASKS.get(name, f"{name}_mask")] = mask[torch.from_numpy(rows)]


def _fill_links(store: Any, dataset: Dataset) -> None:
    if not isinstance(dataset.targets, LinkTargets):
        return
    known = [*dataset.graph.edge_type_names, *(name for name in dataset.names if name not in dataset.graph.edge_type_names)]
    numbers = np.array([known.index(name) for name in dataset.names])
    for name, pairs in dataset.targets.splits.items():
        _fill_pairs(store, name, pairs.source, pairs.target, pairs.label)
        store[f"{_before(name)}edge_label_type"] = torch.from_numpy(numbers[pairs.edge_type])


def _fill_hetero_links(data: "HeteroData", dataset: Dataset, local: Ints) -> None:
    """Put links beside the edges of their type; a type of link that the graph does not have gets no edges."""
    if not isinstance(dataset.targets, LinkTargets):
        return
    types, names = dataset.nodes.node_type, dataset.nodes.node_type_names
    assert types is not None
    for split, pairs in dataset.targets.splits.items():
        for number, name in enumerate(dataset.names):
            of_type = pairs.edge_type == number
            starts, ends = types[pairs.source], types[pairs.target]
            for triple in _triples(name, names, starts[of_type], ends[of_type]):
                here = of_type & (starts == names.index(triple[0])) & (ends == names.index(triple[2]))
                _fill_pairs(data[triple], split, local[pairs.source[here]], local[pairs.target[here]], pairs.label[here])


def _fill_pairs(store: Any, split: str, source: Ints, target: Ints, label: NDArray[np.int8]) -> None:
    store[f"{_before(split)}edge_label_index"] = _edge_index(source, target)
    store[f"{_before(split)}edge_label"] = torch.from_numpy(label.astype(np.float32))


def _before(split: str) -> str:
    return "" if split == "train" else f"{split}_"


def _edge_index(source: NDArray[Any], target: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.stack([source, target]).astype(np.int64))


def _triples(
    name: str, types: tuple[str, ...], starts: NDArray[np.int16], ends: NDArray[np.int16], *, inverse_of: str | None = None
) -> list[tuple[str, str, str]]:
    """Return PyG's names for an edge type: `paper__cites__paper` is split up, an inverse is named after its original."""
    pairs = [(types[start], types[end]) for start, end in np.unique(np.stack([starts, ends]), axis=1).T]
    parts = (name if inverse_of is None else inverse_of).split("__")
    if len(parts) == 3 and parts[0] in types and parts[2] in types:
        triple = (parts[0], parts[1], parts[2]) if inverse_of is None else (parts[2], f"rev_{parts[1]}", parts[0])
        if all(pair == (triple[0], triple[2]) for pair in pairs):
            return [triple]
    return [(start, name, end) for start, end in pairs]
