"""Tables that come after training, under the names that columns had in training, and encoded as then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from gatas.datasets import Dataset
from gatas.datasets.encoded_columns import UNTYPED, IndexLists
from gatas.datasets.feature_files import with_feature_file
from gatas.datasets.node_columns import features_of as plain_features
from gatas.datasets.node_table import Features
from gatas.errors import GraphError
from gatas.graph.columns import IN_FILES, ColumnNames
from gatas.graph.tables import Table, ids_of, numbers_of, read_table, warn_of_unused

NEW = Path("new nodes")
"""What messages call rows that came in no file."""


def read_node_table(dataset: Dataset, path: Path) -> Table:
    """Read a table of nodes: ids, types, and the columns that features are made of."""
    origin = dataset.origin
    own = {} if origin is None else {name: origin.node_columns.get(name) for name in ("id", "node_type")}
    return _read(path, ("id",), ("node_type", "graph", "label", "split"), own)


def read_edge_table(dataset: Dataset, path: Path, optional: tuple[str, ...] = ("edge_type", "weight")) -> Table:
    """Read a table of edges, or of pairs to score."""
    own = {} if dataset.origin is None else dataset.origin.edge_columns
    table = _read(path, ("source", "target"), optional, own)
    warn_of_unused(table)
    return table


def _read(path: Path, required: tuple[str, ...], optional: tuple[str, ...], own: Mapping[str, str | None]) -> Table:
    """Read columns by our names, from a file that has them under those of the run's own tables; some may be missing."""
    names = {name: own.get(name) or IN_FILES.get(name, name) for name in (*required, *optional)}
    table = read_table(path, ColumnNames(required, {name: names[name] for name in required}, None))
    there = {name: names[name] for name in optional if names[name] in table.others}
    return Table(
        path,
        {**table.columns, **{name: table.others[column] for name, column in there.items()}},
        {**table.column_names, **there},
        {name: values for name, values in table.others.items() if name not in there.values()},
        table.num_rows,
    )


def read_ids(dataset: Dataset, path: Path) -> list[Any]:
    """Read the ids of a table of nodes."""
    names = {} if dataset.origin is None else {"id": dataset.origin.node_columns.get("id") or "id"}
    return list(ids_of(read_table(path, ColumnNames(("id",), names, None)), "id").to_pylist())


def read_new_nodes(dataset: Dataset, nodes: Path | None, edges: Path | None, features: Path | None = None) -> dict[str, Any]:
    """Read new nodes and edges from files; return the arguments of `Predictor.with_new_nodes`.

    Nodes have `id` and features, edges `source, target[, type][, weight]`, or as the tables that were trained on call these.
    A model that was trained on a file of sparse features takes those of new nodes from `features`, in the order of the nodes.
    """
    table = None if nodes is None else read_node_table(dataset, nodes)
    if features is not None:
        table = _with_features(dataset, table, features)
    links = None if edges is None else read_edge_table(dataset, edges)
    return {
        "features": None if table is None else table_features(dataset, table),
        "edges": None if links is None else _listed_edges(links),
        "ids": None if table is None else ids_of(table, "id").to_pylist(),
        "weights": _weights(links),
    }


def _with_features(dataset: Dataset, table: Table | None, path: Path) -> Table:
    """Add a file of sparse features to a table of new nodes, as the column that training had from a file."""
    columns = () if dataset.encoding is None else dataset.encoding.columns
    files = [column for column in columns if isinstance(column, IndexLists) and column.file is not None]
    if table is None:
        raise GraphError(f"{path} has features of new nodes, but there is no table of these. Give one with their ids.")
    if len(files) != 1:
        raise GraphError(
            f"{path} has sparse features of new nodes, but the model was trained on {len(files)} files of such; expected one. "
            "Give features as columns of the table of new nodes."
        )
    return with_feature_file(table, path, files[0].name)[0]


def _listed_edges(links: Table) -> tuple[list[Any], ...]:
    names = ("source", "edge_type", "target") if "edge_type" in links.columns else ("source", "target")
    return tuple(ids_of(links, name).to_pylist() for name in names)


def _weights(links: Table | None) -> NDArray[Any] | None:
    values = None if links is None else links.columns.get("weight")
    return None if links is None or values is None else numbers_of(links, "weight", values)


def table_features(dataset: Dataset, table: Table) -> Features | None:
    """Encode the nodes of a table as in training; where training had no tables, take all its numbers or its lists."""
    if dataset.origin is None or (dataset.encoding is None and dataset.nodes.num_features):
        return plain_features(table, None)
    origin, encoding = dataset.origin, dataset.encoding
    known = (*origin.label_columns, *origin.node_columns.values(), *([] if encoding is None else encoding.names))
    warn_of_unused(table, used=[name for name in known if name is not None])
    return None if encoding is None else encoding.encoded(table, encoding.node_types(table))


def is_raw(dataset: Dataset, features: Any) -> bool:
    """Whether features came as values by column: as dicts, or as a table where the model was trained on one."""
    if hasattr(features, "__arrow_c_stream__"):
        return dataset.encoding is not None
    return isinstance(features, list | tuple) and any(isinstance(row, Mapping) for row in features)


def encoded_rows(dataset: Dataset, rows: Any) -> Features:
    """Encode values by column: a dict for each node, or a table."""
    if dataset.encoding is None:
        raise GraphError(
            "features came as values by column, but the model was not trained on tables of columns. Give "
            f"{dataset.nodes.num_features} numbers for each new node."
        )
    table = _as_table(dataset, rows)
    unknown = [name for name in table.others if name not in columns_of(dataset)]
    if unknown:
        known = ", ".join(map(repr, columns_of(dataset)))
        raise GraphError(f"a new node has a value for {unknown[0]!r}; the model was trained on {known}.")
    return dataset.encoding.encoded(table, dataset.encoding.node_types(table))


def columns_of(dataset: Dataset) -> list[str]:
    """Return the columns that values of new nodes may have."""
    if dataset.encoding is None:
        return []
    kind = [] if dataset.encoding.types == UNTYPED else [_type_column(dataset)]
    return [*kind, *dataset.encoding.names]


def _type_column(dataset: Dataset) -> str:
    return "type" if dataset.origin is None else dataset.origin.node_columns.get("node_type") or "type"


def _as_table(dataset: Dataset, rows: Any) -> Table:
    assert dataset.encoding is not None
    try:
        given = pa.table(rows) if hasattr(rows, "__arrow_c_stream__") else pa.Table.from_pylist(_filled(rows))
    except (pa.ArrowException, TypeError, AttributeError, OverflowError, UnicodeError) as error:
        raise GraphError(f"values of new nodes do not make columns ({str(error).splitlines()[0]}).") from None
    columns = {name: given[name] for name in given.column_names}
    kind = _type_column(dataset)
    types = {"node_type": columns.pop(kind)} if kind in columns and dataset.encoding.types != UNTYPED else {}
    return Table(NEW, types, {"node_type": kind} if types else {}, columns, len(rows))


def _filled(rows: Any) -> list[dict[str, Any]]:
    """Give every row every name that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in names} for row in rows]
