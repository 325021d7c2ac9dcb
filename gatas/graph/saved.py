"""A graph as named arrays and parameters of a store, and back."""

from pathlib import Path
from typing import Any

from gatas.errors import GraphError, StoreError
from gatas.graph.graph import Graph
from gatas.graph.ids import NodeIds
from gatas.graph.storage import NamedArrays, Store, fingerprint, open_store, write_store

KINDS = ("graph", "dataset")
"""Stores that hold a graph: alone, or with its node table and targets."""


def save_graph(graph: Graph, folder: Path, *, overwrite: bool = False) -> None:
    """Write a graph with its ids and relations."""
    write_store(folder, "graph", *graph_parts(graph), overwrite=overwrite)


def open_graph(folder: Path, *, verify: bool = False) -> Graph:
    """Map the graph of a store; its structure is checked as for any other graph."""
    return graph_of(open_store(folder, KINDS, verify=verify))


def graph_of(store: Store) -> Graph:
    """Return the graph that an open store holds."""
    try:
        return Graph(
            indptr=store.array("indptr"),
            neighbour=store.array("neighbour"),
            edge_type=store.array("edge_type"),
            num_edge_types=int(store.parameter("num_edge_types")),
            weight=store.arrays.get("weight"),
            node_ids=stored_ids(store.arrays),
            edge_type_names=tuple(store.parameter("edge_type_names")),
            inverse_of=tuple(store.parameter("inverse_of")),
            num_repeated=int(store.parameter("num_repeated")),
        )
    except StoreError:
        raise
    except (GraphError, ValueError, TypeError) as error:
        raise StoreError(f"{store.folder} is damaged: {error} Restore it from a copy, or write it again.") from error


def graph_fingerprint(graph: Graph) -> str:
    """Hash all that a graph holds: edges, ids and relations."""
    return fingerprint(*graph_parts(graph))


def structure_fingerprint(graph: Graph) -> str:
    """Hash edges, types and weights: what transitions depend on."""
    arrays, _ = graph_parts(graph)
    structure: NamedArrays = {name: arrays[name] for name in ("indptr", "neighbour", "edge_type", "weight") if name in arrays}
    return fingerprint(structure, {"edge_type_names": list(graph.edge_type_names)})


def id_arrays(ids: NodeIds | None) -> NamedArrays:
    """Return the arrays that hold node ids, in a graph's store or a table's."""
    if ids is None:
        return {}
    if ids.bytes is None:
        return {"node_ids": ids.values}
    return {"node_id_offsets": ids.values, "node_id_bytes": ids.bytes}


def stored_ids(arrays: NamedArrays) -> NodeIds | None:
    """Return the ids that `id_arrays` were made of."""
    if "node_ids" in arrays:
        return NodeIds(arrays["node_ids"])
    if "node_id_offsets" in arrays:
        if "node_id_bytes" not in arrays:
            raise StoreError("node_id_offsets.npy is there without node_id_bytes.npy: the folder is damaged.")
        return NodeIds(arrays["node_id_offsets"], arrays["node_id_bytes"])
    return None


def graph_parts(graph: Graph) -> tuple[NamedArrays, dict[str, Any]]:
    """Return the arrays and parameters that a store keeps of a graph."""
    arrays: NamedArrays = {"indptr": graph.indptr, "neighbour": graph.neighbour, "edge_type": graph.edge_type}
    if graph.weight is not None:
        arrays["weight"] = graph.weight
    parameters = {
        "num_edge_types": graph.num_edge_types,
        "edge_type_names": list(graph.edge_type_names),
        "inverse_of": list(graph.inverse_of),
        "num_repeated": graph.num_repeated,
    }
    return arrays | id_arrays(graph.node_ids), parameters
