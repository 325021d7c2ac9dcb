"""A graph as named arrays and parameters, and back."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from gatas.errors import GraphError, StoreError
from gatas.graph.graph import Graph
from gatas.graph.names import Names
from gatas.graph.nodes import Features, NodeTable
from gatas.graph.storage import NamedArrays, Store, fingerprint, open_store, write_store


def save_graph(graph: Graph, folder: Path, *, overwrite: bool = False) -> None:
    """Write a graph with its names, features, labels and splits."""
    arrays, parameters = _parts(graph)
    write_store(folder, "graph", arrays, parameters, overwrite=overwrite)


def open_graph(folder: Path, *, verify: bool = False) -> Graph:
    """Map a graph; its structure is checked as for any other graph."""
    store = open_store(folder, "graph", verify=verify)
    try:
        return _assembled(store)
    except StoreError:
        raise
    except (GraphError, ValueError, TypeError) as error:
        raise StoreError(f"{folder} is damaged: {error} Restore it from a copy, or write it again.") from error


def _assembled(store: Store) -> Graph:
    arrays = store.arrays
    return Graph(
        indptr=store.array("indptr"),
        neighbour=store.array("neighbour"),
        edge_type=store.array("edge_type"),
        num_edge_types=int(store.parameter("num_edge_types")),
        weight=arrays.get("weight"),
        graph_id=arrays.get("graph_id"),
        node_names=stored_names(arrays),
        edge_type_names=tuple(store.parameter("edge_type_names")),
        nodes=_node_table(store),
        num_repeated=int(store.parameter("num_repeated")),
    )


def graph_fingerprint(graph: Graph) -> str:
    """A hash of all that a graph holds."""
    return fingerprint(*_parts(graph))


def structure_fingerprint(graph: Graph) -> str:
    """A hash of edges, types and weights: what transitions depend on. Features may be too large to read for it."""
    arrays, _ = _parts(graph)
    structure: NamedArrays = {name: arrays[name] for name in ("indptr", "neighbour", "edge_type", "weight") if name in arrays}
    return fingerprint(structure, {"edge_type_names": list(graph.edge_type_names)})


def name_arrays(names: Names | None) -> NamedArrays:
    """The arrays that hold node names, in a graph's folder or a table's."""
    if names is None:
        return {}
    if names.bytes is None:
        return {"node_names": names.values}
    return {"node_name_offsets": names.values, "node_name_bytes": names.bytes}


def stored_names(arrays: NamedArrays) -> Names | None:
    """The inverse of `name_arrays`."""
    if "node_names" in arrays:
        return Names(arrays["node_names"])
    if "node_name_offsets" in arrays:
        if "node_name_bytes" not in arrays:
            raise StoreError("node_name_offsets.npy is there without node_name_bytes.npy: the folder is damaged.")
        return Names(arrays["node_name_offsets"], arrays["node_name_bytes"])
    return None


def _parts(graph: Graph) -> tuple[NamedArrays, dict[str, Any]]:
    nodes = graph.nodes
    arrays: NamedArrays = {"indptr": graph.indptr, "neighbour": graph.neighbour, "edge_type": graph.edge_type}
    optional = {
        "weight": graph.weight,
        "graph_id": graph.graph_id,
        "labels": nodes.labels,
        "node_type": nodes.node_type,
    }
    arrays |= {name: array for name, array in optional.items() if array is not None}
    arrays |= name_arrays(graph.node_names)
    if isinstance(nodes.features, np.ndarray):
        arrays["features"] = nodes.features
    elif nodes.features is not None:
        arrays["features_indptr"] = nodes.features.indptr  # scipy maps both as they are if they share one type
        arrays["features_column"] = nodes.features.indices
        arrays["features_value"] = nodes.features.data
    arrays |= {f"split-{number}": split for number, split in enumerate(nodes.splits.values())}
    parameters = {
        "num_edge_types": graph.num_edge_types,
        "edge_type_names": list(graph.edge_type_names),
        "num_repeated": graph.num_repeated,
        "feature_size": 0 if nodes.features is None else nodes.features.shape[1],
        "class_names": list(nodes.class_names),
        "node_type_names": list(nodes.node_type_names),
        "splits": list(nodes.splits),
    }
    return arrays, parameters


def _node_table(store: Store) -> NodeTable:
    arrays, num_nodes = store.arrays, len(store.array("indptr")) - 1
    features: Features | None = arrays.get("features")
    if "features_indptr" in arrays:
        features = _sparse(store, num_nodes)
    return NodeTable(
        num_nodes,
        features=features,
        labels=arrays.get("labels"),
        class_names=tuple(store.parameter("class_names")),
        splits={name: store.array(f"split-{number}") for number, name in enumerate(store.parameter("splits"))},
        node_type=arrays.get("node_type"),
        node_type_names=tuple(store.parameter("node_type_names")),
    )


def _sparse(store: Store, num_nodes: int) -> sparse.csr_array:
    parts = (store.array("features_value"), store.array("features_column"), store.array("features_indptr"))
    return sparse.csr_array(parts, shape=(num_nodes, int(store.parameter("feature_size"))))
