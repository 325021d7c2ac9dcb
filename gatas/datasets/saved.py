"""A data set as named arrays and parameters of a store, and back: its graph, node table and targets in one folder."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from scipy import sparse

from gatas.datasets.dataset import Dataset
from gatas.datasets.encoding import FORMAT, Encoding
from gatas.datasets.negatives import Pools
from gatas.datasets.node_table import Features, NodeTable
from gatas.datasets.targets import LinkTargets, NodeTargets, NumberTargets, Pairs, Targets
from gatas.errors import GraphError, StoreError
from gatas.graph.saved import graph_of, graph_parts
from gatas.graph.storage import NamedArrays, Store, fingerprint, open_store, write_store

PAIR_COLUMNS = ("source", "edge_type", "target", "label")
POOL_COLUMNS = ("nodes", "starts", "sizes")


def save_dataset(dataset: Dataset, folder: Path, *, overwrite: bool = False) -> None:
    """Write a data set: graph, node table, targets and the encoding of columns."""
    graph_arrays, graph_parameters = graph_parts(dataset.graph)
    arrays, parameters = data_parts(dataset)
    write_store(folder, "dataset", {**graph_arrays, **arrays}, {**graph_parameters, **parameters}, overwrite=overwrite)


def open_dataset_store(folder: Path, *, verify: bool = False) -> Dataset:
    """Map a data set; what it holds is checked as for any other."""
    return dataset_of(open_store(folder, ("dataset", "graph"), verify=verify))


def dataset_of(store: Store) -> Dataset:
    """Return the data set that an open store holds; a store of a graph alone is refused."""
    graph = graph_of(store)
    if "task" not in store.parameters or store.parameter("task") is None:
        raise StoreError(
            f"{store.folder} holds a graph without labels or links, so nothing can be learned. Ingest it with a node table "
            "that has labels."
        )
    try:
        nodes = stored_nodes(store, graph.num_nodes)
        return Dataset(
            str(store.parameter("name")),
            graph,
            _stored_targets(store),
            nodes,
            str(store.parameter("note")),
            encoding=_stored_encoding(store),
            store=store.folder,
        )
    except StoreError:
        raise
    except (GraphError, ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{store.folder} is damaged: {error} Restore it from a copy, or write it again.") from error


def data_fingerprint(dataset: Dataset) -> str:
    """Hash what a data set holds besides its graph: node table and targets."""
    arrays, parameters = data_parts(dataset)
    known = {name: value for name, value in parameters.items() if name not in ("name", "note", "encoding")}
    return fingerprint(arrays, known)


def data_parts(dataset: Dataset) -> tuple[NamedArrays, dict[str, Any]]:
    """Return the arrays and parameters that a store keeps of a data set besides its graph."""
    arrays, parameters = node_parts(dataset.nodes)
    of_targets = _link_target_parts if isinstance(dataset.targets, LinkTargets) else node_target_parts
    more, about = of_targets(dataset.targets)  # type: ignore[arg-type]
    encoding = None if dataset.encoding is None else dataset.encoding.model_dump(mode="json")
    named = {"name": dataset.name, "note": dataset.note, "encoding": encoding}
    return {**arrays, **more}, {**parameters, **about, **named}


def node_parts(nodes: NodeTable) -> tuple[NamedArrays, dict[str, Any]]:
    """Return the arrays and parameters of a node table."""
    arrays: NamedArrays = {}
    if nodes.node_type is not None:
        arrays["node_type"] = nodes.node_type
    if nodes.graph_id is not None:
        arrays["graph_id"] = nodes.graph_id
    if isinstance(nodes.features, np.ndarray):
        arrays["features"] = nodes.features
    elif nodes.features is not None:
        arrays["features_indptr"] = nodes.features.indptr  # scipy maps both as they are if they share one type
        arrays["features_column"] = nodes.features.indices
        arrays["features_value"] = nodes.features.data
    return arrays, {"feature_size": nodes.num_features, "node_type_names": list(nodes.node_type_names)}


def node_target_parts(targets: NodeTargets | NumberTargets) -> tuple[NamedArrays, dict[str, Any]]:
    """Return the arrays and parameters of classes or numbers of nodes, and of their splits."""
    arrays: NamedArrays = {"numbers": targets.values} if isinstance(targets, NumberTargets) else {"labels": targets.labels}
    arrays |= {f"split-{number}": split for number, split in enumerate(targets.splits.values())}
    return arrays, {"task": targets.task, "names": list(targets.names), "splits": list(targets.splits)}


def _link_target_parts(targets: LinkTargets) -> tuple[NamedArrays, dict[str, Any]]:
    arrays: NamedArrays = {
        f"split-{number}-{column}": getattr(pairs, column)
        for number, pairs in enumerate(targets.splits.values())
        for column in PAIR_COLUMNS
    }
    if targets.ends is not None:
        for end, pools in zip(("sources", "targets"), targets.ends, strict=True):
            arrays |= {f"negative_{end}-{column}": getattr(pools, column) for column in POOL_COLUMNS}
    parameters = {"task": targets.task, "names": list(targets.names), "splits": list(targets.splits), "ranked": targets.ranked}
    return arrays, parameters


def stored_nodes(store: Store, num_nodes: int) -> NodeTable:
    """Return the node table that a store holds."""
    arrays = store.arrays
    features: Features | None = arrays.get("features")
    if "features_indptr" in arrays:
        parts = (store.array("features_value"), store.array("features_column"), store.array("features_indptr"))
        features = sparse.csr_array(parts, shape=(num_nodes, int(store.parameter("feature_size"))))
    types = tuple(store.parameter("node_type_names"))
    return NodeTable(num_nodes, features, arrays.get("node_type"), types, arrays.get("graph_id"))


def _stored_encoding(store: Store) -> Encoding | None:
    given = store.parameters.get("encoding")
    if given is None:
        return None
    if isinstance(given, dict) and given.get("format") != FORMAT:
        raise StoreError(
            f"the encoding of columns in {store.folder} has format {given.get('format')!r}; this version of gatas reads "
            f"{FORMAT}. Update gatas."
        )
    try:
        return Encoding.model_validate(given)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "it"
        raise GraphError(f"the encoding of columns could not be read ({where}: {problem['msg']}).") from None


def _stored_targets(store: Store) -> Targets:
    names, splits = tuple(store.parameter("names")), list(store.parameter("splits"))
    if store.parameter("task") != "link prediction":
        nodes = {name: store.array(f"split-{k}") for k, name in enumerate(splits)}
        if store.parameter("task") == "node regression":
            return NumberTargets(store.array("numbers"), names, nodes)
        return NodeTargets(store.array("labels"), names, nodes)
    pairs = {
        name: Pairs(*(store.array(f"split-{number}-{column}") for column in PAIR_COLUMNS)) for number, name in enumerate(splits)
    }
    ranked = bool(store.parameters.get("ranked", False))
    if "negative_sources-nodes" not in store.arrays:
        return LinkTargets(names, pairs, ranked=ranked)
    sources, targets = (
        Pools(*(store.array(f"negative_{end}-{column}") for column in POOL_COLUMNS)) for end in ("sources", "targets")
    )
    return LinkTargets(names, pairs, (sources, targets), ranked)
