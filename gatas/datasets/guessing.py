"""What the columns of unknown tables are likely to be, by their names and by what they hold."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.datasets.node_columns import SPLIT_NAMES
from gatas.errors import GraphError
from gatas.graph.column_types import is_list, is_number_column, is_text
from gatas.graph.tables import read_columns

KNOWN_AS = {
    "source": ("source", "src", "from", "head", "subject", "start", "source_id", "from_id", "u"),
    "target": ("target", "tgt", "dst", "to", "tail", "object", "end", "target_id", "to_id", "v"),
    "edge_type": ("type", "edge_type", "relation", "rel", "predicate", "link_type", "kind"),
    "weight": ("weight", "w", "count", "times", "strength", "amount"),
    "id": ("id", "node", "node_id", "key", "name"),
    "node_type": ("type", "node_type", "kind", "entity"),
    "graph": ("graph", "graph_id"),
    "label": ("label", "class", "topic", "category", "y", "target", "subject"),
    "split": ("split", "fold", "subset", "partition"),
}
FEW = 50
"""Text with no more different values is taken for a type or a category."""

ColumnValues = Mapping[str, Any]


def guess_settings(edges: Path, nodes: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Guess the settings of data for these files; those `given` are not guessed."""
    settings = {"edges": edges, "nodes": nodes, **given}
    node_columns = {} if nodes is None else read_columns(nodes)
    settings |= {"id": _named("id", node_columns)} if node_columns and "id" not in given else {}
    known = node_columns.get(settings.get("id") or "")
    settings = _guess_edges(read_columns(edges), known, settings, edges)
    if node_columns:
        settings = _guess_nodes(node_columns, settings)
    labelled = bool(settings.get("label"))
    settings.setdefault("task", "node classification" if labelled else "link prediction")
    if settings["task"] == "link prediction":
        settings.pop("label", None)
    elif settings["task"] == "node classification" and "link_types" in settings:
        settings.pop("link_types")
    return {name: value for name, value in settings.items() if value is not None}


def _guess_edges(columns: ColumnValues, known: Any, settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """Find the ends by name, or else take the first columns that hold ids of nodes, or that can."""
    if len(columns) < 2:
        raise GraphError(f"{path} has {len(columns)} columns; expected a source and a target at least.")
    able = [name for name, values in columns.items() if is_text(values) or pa.types.is_integer(values.type)]
    holding = [name for name in able if known is not None and _is_among(columns[name], known)]
    for end in ("source", "target"):
        taken = (settings.get("source"), settings.get("target"))
        found = _named(end, columns) or next((name for name in (*holding, *able, *columns) if name not in taken), None)
        settings.setdefault(end, found)
    rest = {name: values for name, values in columns.items() if name not in (settings["source"], settings["target"])}
    types = {name: values for name, values in rest.items() if _is_few(values)}
    settings.setdefault("edge_type", _named("edge_type", types))
    numbers = {name: values for name, values in rest.items() if is_number_column(values)}
    settings.setdefault("weight", _named("weight", numbers))
    return settings


def _guess_nodes(columns: ColumnValues, settings: dict[str, Any]) -> dict[str, Any]:
    rest = {name: values for name, values in columns.items() if name != settings["id"]}
    few = {name: values for name, values in rest.items() if _is_few(values)}
    settings.setdefault("node_type", _named("node_type", {name: values for name, values in few.items() if is_text(values)}))
    settings.setdefault("graph", _named("graph", few))
    settings.setdefault("split", _named("split", {name: values for name, values in few.items() if _is_split(values)}))
    labels = {name: values for name, values in rest.items() if _is_few(values) or is_list(values.type)}
    if settings.get("task") == "node regression":
        labels = {name: values for name, values in rest.items() if is_number_column(values)}
    settings.setdefault("label", _named("label", {name: values for name, values in labels.items()
                                                  if name not in _used(settings)}))  # fmt: skip
    features = [name for name, values in rest.items() if name not in _used(settings) and _is_feature(values)]
    settings.setdefault("features", features)
    types = columns.get(settings["node_type"] or "")
    gaps = any(_has_gaps(columns[name], types) for name in settings["features"] or () if name in columns)
    settings.setdefault("missing", "fill" if gaps else "refuse")
    return settings


def _used(settings: Mapping[str, Any]) -> tuple[str, ...]:
    labels = settings.get("label") or ()
    names = (settings.get(key) for key in ("node_type", "graph", "split"))
    return (*(name for name in names if name), *((labels,) if isinstance(labels, str) else labels))


def _named(what: str, columns: Iterable[str]) -> str | None:
    """Return the column whose name is the most usual for one of ours."""
    lower = {name.lower().replace(" ", "_"): name for name in columns}
    return next((lower[name] for name in KNOWN_AS[what] if name in lower), None)


def _is_among(values: Any, ids: Any) -> bool:
    """Whether the first values are all ids of nodes."""
    first, known = values[:1000].cast(pa.string()), ids.cast(pa.string())
    return bool(pc.all(pc.is_in(first, value_set=known), min_count=1).as_py())


def _is_few(values: Any) -> bool:
    """Whether values repeat, so that they can be classes or types."""
    if not (is_text(values) or pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)):
        return False
    return bool(pc.count_distinct(values).as_py() <= FEW)


def _is_split(values: Any) -> bool:
    return is_text(values) and all((name or "").strip().lower() in SPLIT_NAMES for name in pc.unique(values).to_pylist())


def _is_feature(values: Any) -> bool:
    """Whether a column can be a feature: numbers, lists of numbers, and text that repeats."""
    if is_list(values.type):
        return is_number_column(values.flatten())
    if is_text(values):
        return _is_few(values) and 2 <= pc.count_distinct(values).as_py() <= (len(values) - values.null_count) / 2
    return is_number_column(values) and values.null_count < len(values)


def _has_gaps(values: Any, types: Any) -> bool:
    """Whether some nodes of a type have a value and others have none."""
    absent = np.asarray(values.is_null(nan_is_null=True))
    if is_text(values):
        absent = absent | np.asarray(pc.fill_null(pc.equal(values, ""), True))
    kind = np.zeros(len(values), np.int64) if types is None else np.asarray(types.dictionary_encode().indices)
    share = np.bincount(kind, absent) / np.bincount(kind)
    return bool(((share > 0) & (share < 1)).any())
