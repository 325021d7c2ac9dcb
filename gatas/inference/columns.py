"""Tables that come after training, under the names that columns had in training, and encoded as then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gatas.datasets.encoding import UNTYPED
from gatas.datasets.node_columns import features_of as plain_features
from gatas.datasets.node_table import Features
from gatas.errors import GraphError
from gatas.graph.columns import IN_FILES, ColumnNames
from gatas.graph.tables import Table, ids_of, read_table, warn_of_unused
from gatas.tasks import Model

NEW = Path("new nodes")
"""What messages call rows that came in no file."""


def read_people(model: Model, path: Path) -> Table:
    """A table of nodes: ids, types, and the columns that features are made of."""
    origin = model.origin
    own = {} if origin is None else {name: origin.node_columns.get(name) for name in ("id", "node_type")}
    return _read(path, ("id",), ("node_type", "graph", "label", "split"), own)


def read_links(model: Model, path: Path, optional: tuple[str, ...] = ("edge_type", "weight")) -> Table:
    """A table of edges, or of pairs to ask for."""
    own = {} if model.origin is None else model.origin.edge_columns
    table = _read(path, ("source", "target"), optional, own)
    warn_of_unused(table)
    return table


def _read(path: Path, required: tuple[str, ...], optional: tuple[str, ...], own: Mapping[str, str | None]) -> Table:
    """Columns by our names, from a file that has them under those of the run's own tables; some may be missing."""
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


def read_ids(model: Model, path: Path) -> list[Any]:
    """The ids of a table of nodes."""
    names = {} if model.origin is None else {"id": model.origin.node_columns.get("id") or "id"}
    return list(ids_of(read_table(path, ColumnNames(("id",), names, None)), "id").to_pylist())


def features_of(model: Model, people: Table) -> Features | None:
    """Features of the nodes of a table; of tables that training did not have, all its numbers or its lists."""
    if model.origin is None:
        return plain_features(people, None)
    origin, encoding = model.origin, model.encoding
    known = (*origin.label_columns, *origin.node_columns.values(), *([] if encoding is None else encoding.names))
    warn_of_unused(people, used=[name for name in known if name is not None])
    return None if encoding is None else encoding.encoded(people, encoding.node_types(people))


def is_raw(model: Model, features: Any) -> bool:
    """Whether features came as values by column: as dicts, or as a table where the model was trained on one."""
    if hasattr(features, "__arrow_c_stream__"):
        return model.encoding is not None
    return isinstance(features, list | tuple) and any(isinstance(row, Mapping) for row in features)


def encoded_rows(model: Model, rows: Any) -> NDArray[np.float32]:
    """Features of values by column: a dict for each node, or a table."""
    if model.encoding is None or model.origin is None:
        raise GraphError(
            f"features came as values by column, but the model was not trained on tables of columns. Give {model.num_features} "
            "numbers for each new node."
        )
    people = _as_table(model, rows)
    unknown = [name for name in people.others if name not in columns_of(model)]
    if unknown:
        known = ", ".join(map(repr, columns_of(model)))
        raise GraphError(f"a new node has a value for {unknown[0]!r}; the model was trained on {known}.")
    return model.encoding.encoded(people, model.encoding.node_types(people))


def columns_of(model: Model) -> list[str]:
    """The columns that values of new nodes may have."""
    if model.encoding is None or model.origin is None:
        return []
    kind = [] if model.encoding.types == UNTYPED else [model.origin.node_columns.get("node_type") or "type"]
    return [*kind, *model.encoding.names]


def _as_table(model: Model, rows: Any) -> Table:
    assert model.origin is not None and model.encoding is not None
    try:
        given = pa.table(rows) if hasattr(rows, "__arrow_c_stream__") else pa.Table.from_pylist(_filled(rows))
    except (pa.ArrowException, TypeError, AttributeError, OverflowError, UnicodeError) as error:
        raise GraphError(f"values of new nodes do not make columns ({str(error).splitlines()[0]}).") from None
    columns = {name: given[name] for name in given.column_names}
    kind = model.origin.node_columns.get("node_type") or "type"
    types = {"node_type": columns.pop(kind)} if kind in columns and model.encoding.types != UNTYPED else {}
    return Table(NEW, types, {"node_type": kind} if types else {}, columns, len(rows))


def _filled(rows: Any) -> list[dict[str, Any]]:
    """Every row with every name that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in names} for row in rows]
