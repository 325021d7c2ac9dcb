"""Data sets of PyTorch Geometric, in and out: features, node types, labels, masks and links beside the graph."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data, HeteroData

from gatas.datasets.config import Direction, Ratios
from gatas.datasets.dataset import Dataset
from gatas.datasets.held_out import Given, IndexedPairs, hold_out_links, is_symmetric
from gatas.datasets.node_table import Features, NodeTable
from gatas.datasets.targets import SPLITS, UNLABELLED, NodeTargets, check_labels
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph
from gatas.graph.inputs import Ints, as_array, as_features
from gatas.graph.pyg import dense, edge_ends, from_pyg, joined, node_counts, num_nodes_of, parts_of

MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}

PygData = Any
"""`Data` or `HeteroData`."""


def dataset_from_pyg(
    data: PygData | Sequence[PygData],
    *,
    task: Literal["node classification", "link prediction"] = "node classification",
    direction: Direction = "auto",
    link_types: Sequence[str] | None = None,
    ratios: Ratios | Mapping[str, float] | None = None,
    class_names: Sequence[str] = (),
    name: str = "own data",
    seed: int = 0,
) -> Dataset:
    """Make a data set of PyTorch Geometric's data.

    Args:
        data: For classes of nodes: `Data`, `HeteroData`, or several `Data` side by side, with x, y and train_mask, val_mask
            and test_mask. For links: one of them, of whose edges (or of whose `edge_label_index`) some are held out by
            `ratios`; or the training, validation and test data that `RandomLinkSplit` returns, whose `edge_label_index` and
            `edge_label` are the pairs of each split and whose first edges are the graph.
        task: What is predicted.
        direction: `"inverse"` lets edges lead back under a type of their own, `"undirected"` under the same type, `"as given"`
            adds nothing. `"auto"` is `"undirected"` where every edge is listed in both directions, else `"inverse"`.
        link_types: Edge types whose links are predicted, named `source__relation__target` for `HeteroData`; all by default.
        ratios: Shares of nodes or links in train, valid and test, where the data does not say.
        class_names: Names of the classes; their numbers if left out.
        name: What results call the data.
        seed: Splits and negatives are a function of it.
    """
    shares = ratios if isinstance(ratios, Ratios) else Ratios(**(ratios or {}))
    if task == "link prediction":
        return _links(data, direction, link_types, shares, name, seed)
    if link_types is not None:
        raise GraphError("link_types was given, which is for link prediction. Set task, or leave it out.")
    given = data if isinstance(data, HeteroData) else parts_of(data)
    graph = _directed(given, direction)
    labels = _hetero_labels(given) if isinstance(given, HeteroData) else _labels(given)
    if labels is None:
        raise GraphError(f"{name}: the data has no y, so no class can be learned. Set y, or task='link prediction'.")
    splits = _masks(given) or _drawn_splits(labels, shares, seed)
    return Dataset(name, graph, NodeTargets(labels, tuple(class_names), splits), node_table_of(given))


def to_pyg(data: Graph | Dataset) -> Data | HeteroData:
    """Return `HeteroData` for a data set with node types, `Data` otherwise (edge_type, edge_weight, batch where there are any).

    A data set's features, labels and splits become x, y and masks; its links become edge_label_index and edge_label of
    `train`, and `valid_` and `test_` before these names for the other splits.
    """
    graph = data if isinstance(data, Graph) else data.graph
    nodes = None if isinstance(data, Graph) else data.nodes
    if nodes is not None and nodes.node_type is not None:
        return _to_hetero(data)  # type: ignore[arg-type]
    result = Data(edge_index=_edge_index(graph.source, graph.neighbour), num_nodes=graph.num_nodes)
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


def node_table_of(data: HeteroData | list[Data]) -> NodeTable:
    """Return features, node types and graph ids of PyG's nodes."""
    if isinstance(data, HeteroData):
        counts = node_counts(data)
        types = np.repeat(np.arange(len(counts)), list(counts.values())).astype(np.int16)
        return NodeTable(sum(counts.values()), _hetero_features(data, counts), types, tuple(counts))
    sizes = [num_nodes_of(part) for part in data]
    return NodeTable(sum(sizes), _as_columns(joined(data, "x")), graph_id=_graph_ids(data))


def _graph_ids(parts: list[Data]) -> NDArray[Any] | None:
    sizes = [num_nodes_of(part) for part in parts]
    return np.repeat(np.arange(len(parts)), sizes) if len(parts) > 1 else joined(parts, "batch")


def _directed(data: Any, direction: Direction) -> Graph:
    """Make the graph, with edges that lead back as was asked for."""
    graph = from_pyg(data)
    chosen = direction if direction != "auto" else ("undirected" if is_symmetric(graph) else "inverse")
    return from_pyg(data, inverse=chosen == "inverse", undirected=chosen == "undirected")


def _labels(parts: list[Data]) -> NDArray[Any] | None:
    num_nodes, graph_id = sum(num_nodes_of(part) for part in parts), _graph_ids(parts)
    return _node_labels(joined(parts, "y"), num_nodes, 1 if graph_id is None else len(np.unique(graph_id)))


def _node_labels(labels: NDArray[Any] | None, num_nodes: int, num_graphs: int) -> NDArray[Any] | None:
    """Return labels of nodes; those of whole graphs are not used."""
    if labels is None:
        return None
    if len(labels) != num_nodes and len(labels) == num_graphs:
        warnings.warn(f"y labels {num_graphs} graphs, not their nodes, and was not used.", GatasWarning, stacklevel=6)
        return None
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _hetero_labels(data: HeteroData) -> NDArray[Any] | None:
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


def _hetero_features(data: HeteroData, counts: dict[str, int]) -> Features | None:
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


def _feature_block(data: HeteroData, kind: str, count: int) -> NDArray[np.float32] | None:
    if "x" not in data[kind]:
        return None
    return as_features(_as_columns(dense(data[kind].x)), count, lambda row: f"node {kind}/{row}")


def _as_columns(features: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return a vector as a matrix of one column."""
    return features[:, None] if features is not None and features.ndim == 1 else features


def _masks(data: HeteroData | list[Data]) -> dict[str, Ints]:
    if not isinstance(data, HeteroData):
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
        raise GraphError(f"{attribute} holds other values than true and false. Make a mask of node numbers first.")
    return np.flatnonzero(mask)


def _drawn_splits(labels: NDArray[Any], ratios: Ratios, seed: int) -> dict[str, Ints]:
    from gatas.datasets.labels import Labels
    from gatas.datasets.splitting import split_nodes

    checked = check_labels(labels, None)
    known = np.ones(len(checked), np.bool_) if checked.ndim == 2 else checked >= 0
    return split_nodes(Labels(checked, known, ()), ratios, seed)


def _links(data: Any, direction: Direction, link_types: Sequence[str] | None, ratios: Ratios, name: str, seed: int) -> Dataset:
    """Hold links out of one graph, or take the pairs of the three that `RandomLinkSplit` returns."""
    parts = list(data) if isinstance(data, list | tuple) else [data]
    if len(parts) not in (1, 2, 3) or not all(isinstance(part, Data | HeteroData) for part in parts):
        raise GraphError("for links, expected Data or HeteroData, or training, validation and test data of RandomLinkSplit.")
    first = parts[0]
    whole = from_pyg(first)
    chosen = direction if direction != "auto" else ("undirected" if is_symmetric(whole) else "inverse")
    names = whole.edge_type_names
    asked = tuple(link_types or _labelled_types(first, names) or names)
    if unknown := [one for one in asked if one not in names]:
        raise GraphError(f"{unknown[0]!r} is not an edge type of the data; it has {', '.join(map(repr, names))}.")
    kinds = np.array([asked.index(one) if one in asked else -1 for one in names])
    listed = IndexedPairs(
        whole.source.astype(np.int64), kinds[whole.edge_type], whole.neighbour.astype(np.int64), whole.num_nodes
    )
    given = {split: pairs for split, part in zip(SPLITS, parts, strict=False) if (pairs := _pairs(part, whole, asked))}
    nodes = node_table_of(first if isinstance(first, HeteroData) else [first])
    types = None if nodes.node_type is None else nodes.node_type.astype(np.int64)
    alone = len(parts) == 1
    held = hold_out_links(
        listed, given if not alone else {}, asked_pairs=given.get("train") if alone else None, split=None, ratios=ratios,
        seed=seed, undirected=chosen == "undirected", node_type=types, where=name,
    )  # fmt: skip
    graph = Graph.from_edges(
        listed.source[held.in_graph], listed.target[held.in_graph], whole.edge_type[held.in_graph].astype(np.int64),
        num_nodes=whole.num_nodes, weight=None if whole.weight is None else whole.weight[held.in_graph],
        node_ids=whole.node_ids, edge_type_names=names, inverse=chosen == "inverse", undirected=chosen == "undirected",
    )  # fmt: skip
    return Dataset.for_links(
        graph, held.splits, asked, ends=held.ends, features=nodes.features, node_type=nodes.node_type,
        node_type_names=nodes.node_type_names, name=name,
    )  # fmt: skip


def _labelled_types(data: PygData, names: Sequence[str]) -> list[str]:
    """Return the edge types that have an edge_label_index."""
    if isinstance(data, Data):
        return []
    return [
        "__".join(triple) for triple in data.edge_types if "edge_label_index" in data[triple] and "__".join(triple) in names
    ]


def _pairs(data: PygData, graph: Graph, asked: tuple[str, ...]) -> Given | None:
    """Return the pairs of edge_label_index with their labels; None where there are none."""
    if isinstance(data, Data):
        stores = [(data, 0, 0, asked.index(graph.edge_type_names[0]) if len(graph.edge_type_names) == 1 else None)]
    else:
        counts = node_counts(data)
        starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
        stores = [
            (data[triple], starts[triple[0]], starts[triple[2]], asked.index("__".join(triple)))
            for triple in data.edge_types
            if "__".join(triple) in asked
        ]
    columns: list[tuple[Ints, Ints, Ints, NDArray[Any]]] = []
    for store, source_start, target_start, kind in stores:
        if "edge_label_index" not in store:
            continue
        source, target = edge_ends({"edge_index": store.edge_label_index}, 2**31, 2**31, "edge_label_index, ")
        label = as_array(store.edge_label) if "edge_label" in store else np.ones(len(source))
        types = np.full(len(source), kind) if kind is not None else _pair_types(store, len(source))
        columns.append((source + source_start, types, target + target_start, (label > 0).astype(np.int8)))
    if not columns:
        return None
    source, types, target, label = (np.concatenate(column) for column in zip(*columns, strict=True))
    return IndexedPairs(source, types, target, graph.num_nodes), label.astype(np.int8)


def _pair_types(store: Any, count: int) -> Ints:
    if "edge_label_type" not in store:
        raise GraphError(
            "the data has several edge types, but its edge_label_index does not say of which type each pair is. Set "
            "edge_label_type, with a type for each pair."
        )
    types = as_array(store.edge_label_type).astype(np.int64)
    if len(types) != count:
        raise GraphError(f"edge_label_type has {len(types)} values for {count} pairs. Give one for each.")
    return types


def _to_hetero(dataset: Dataset) -> HeteroData:
    """Return nodes by type, edges by type and by the types of their ends."""
    graph, nodes, data = dataset.graph, dataset.nodes, HeteroData()
    assert nodes.node_type is not None
    local = np.empty(graph.num_nodes, np.int64)
    for number, kind in enumerate(nodes.node_type_names):
        rows = np.flatnonzero(nodes.node_type == number)
        local[rows] = np.arange(rows.size)
        data[kind].num_nodes = rows.size
        _fill_nodes(data[kind], dataset, rows)
    source, target = graph.source, graph.neighbour
    starts, ends = nodes.node_type[source], nodes.node_type[target]
    for number in range(graph.num_edge_types):
        of_type = graph.edge_type == number
        for triple in _triples(graph, number, nodes.node_type_names, starts[of_type], ends[of_type]):
            start, end = nodes.node_type_names.index(triple[0]), nodes.node_type_names.index(triple[2])
            here = of_type & (starts == start) & (ends == end)
            store = data[triple]
            store.edge_index = _edge_index(local[source[here]], local[target[here]])
            if graph.weight is not None:
                store.edge_weight = torch.from_numpy(graph.weight[here])
    return data


def _fill_nodes(store: Any, dataset: Dataset, rows: Ints) -> None:
    features = dataset.features
    if features is not None:
        part: Any = features[rows]
        store.x = torch.from_numpy(np.array(part) if isinstance(part, np.ndarray) else part.toarray())
    if isinstance(dataset.targets, NodeTargets):
        store.y = torch.from_numpy(dataset.targets.labels[rows].copy())
        for name, split in dataset.targets.splits.items():
            mask = torch.zeros(dataset.graph.num_nodes, dtype=torch.bool)
            mask[torch.from_numpy(split.copy())] = True
            store[MASKS.get(name, f"{name}_mask")] = mask[torch.from_numpy(rows)]


def _fill_links(store: Any, dataset: Dataset) -> None:
    if isinstance(dataset.targets, NodeTargets):
        return
    for name, pairs in dataset.targets.splits.items():
        before = "" if name == "train" else f"{name}_"
        store[f"{before}edge_label_index"] = _edge_index(pairs.source, pairs.target)
        store[f"{before}edge_label"] = torch.from_numpy(pairs.label.astype(np.float32))
        store[f"{before}edge_label_type"] = torch.from_numpy(pairs.edge_type.copy())


def _edge_index(source: NDArray[Any], target: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.stack([source, target]).astype(np.int64))


def _triples(
    graph: Graph, kind: int, types: tuple[str, ...], starts: NDArray[np.int16], ends: NDArray[np.int16]
) -> list[tuple[str, str, str]]:
    """Return PyG's names for an edge type: `paper__cites__paper` is split up, an inverse is named after its original."""
    name = graph.edge_type_names[kind]
    pairs = [(types[start], types[end]) for start, end in np.unique(np.stack([starts, ends]), axis=1).T]
    inverse = kind not in graph.original_edge_types
    parts = (graph.edge_type_names[graph.inverse_of[kind]] if inverse else name).split("__")
    if len(parts) == 3 and parts[0] in types and parts[2] in types:
        triple = (parts[2], f"rev_{parts[1]}", parts[0]) if inverse else (parts[0], parts[1], parts[2])
        if all(pair == (triple[0], triple[2]) for pair in pairs):
            return [triple]
    return [(start, name, end) for start, end in pairs]
