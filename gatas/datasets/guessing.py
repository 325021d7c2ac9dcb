"""What the columns of unknown tables are likely to be, by their names and by what they hold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.datasets.column_roles import ANOTHER_SPLIT, COPY, LEFT_OUT, ColumnRole, described, feature_role, is_copy, is_split
from gatas.datasets.column_values import present_values
from gatas.datasets.config import Ratios, is_feature_file
from gatas.datasets.encoded_columns import UNTYPED, NodeTypes
from gatas.datasets.finding_ids import ColumnValues, found_ends, found_id
from gatas.datasets.node_columns import SPLIT_NAMES
from gatas.datasets.target_columns import are_fractions, can_be_target, is_few
from gatas.errors import ConfigError, GraphError
from gatas.graph.column_types import is_number_column, is_text
from gatas.graph.counts import counted
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
MOST_TYPES = 10_000
"""A column with the name of a type of edges and no more different values is one, if these repeat."""
HELD_OUT = {"valid": ("valid", "validation", "val", "dev"), "test": ("test",)}
"""Names of files beside `train`, of links that are held out."""
MEANINGS = {
    "source": "source of edges",
    "target": "target of edges",
    "edge_type": "type of edges",
    "weight": "weight of edges",
    "id": "id of nodes",
    "node_type": "type of nodes",
    "graph": "graph of nodes",
    "label": "label",
    "split": "split",
}


@dataclass(frozen=True)
class Guess:
    """Settings of data for two tables, and what every column of these was taken for."""

    settings: dict[str, Any]
    edges: Sequence[ColumnRole]
    nodes: Sequence[ColumnRole] = ()
    notes: Sequence[str] = field(default_factory=list)


def guess_settings(edges: Path, nodes: Path | None, given: Mapping[str, Any]) -> Guess:
    """Guess the settings of data for these files; those `given` are not guessed."""
    settings = {"edges": edges, "nodes": nodes, **given}
    edge_columns, node_columns = read_columns(edges), {} if nodes is None else read_columns(nodes)
    settings = _guess_ends(edge_columns, node_columns, settings, edges, nodes)
    settings = _guess_edges(edge_columns, settings)
    roles: list[ColumnRole] = []
    if node_columns:
        settings = _guess_meanings(node_columns, settings)
    labelled = bool(settings.get("label"))
    settings, held_out = _guess_held_out(edges, settings, labelled)
    settings.setdefault("task", _task_of(node_columns, settings) if labelled else "link prediction")
    settings = _guess_split(edge_columns, node_columns, settings)
    if node_columns:
        settings, roles = _guess_features(node_columns, settings)
    held_out += _without_valid(edge_columns if settings["task"] == "link prediction" else node_columns, settings)
    notes = [*held_out, *_notes(nodes, node_columns, settings, labelled, given)]
    if settings["task"] == "link prediction":
        settings.pop("label", None)
    elif "link_types" in settings:
        settings.pop("link_types")
    known = {name: value for name, value in settings.items() if value is not None}
    return Guess(known, _edge_roles(edge_columns, settings), roles, notes)


def _guess_ends(
    edges: ColumnValues, nodes: ColumnValues, settings: dict[str, Any], path: Path, node_path: Path | None
) -> dict[str, Any]:
    """Find the column of ids by what edges name, and the ends of edges by name or by what they hold."""
    if len(edges) < 2:
        raise GraphError(f"{path} has {len(edges)} columns; expected a source and a target at least.")
    named = {end: settings.get(end) or _named(end, edges) for end in ("source", "target")}
    if nodes and "id" not in settings:
        settings["id"] = found_id(edges, nodes, named, _named("id", nodes), path, node_path)
    known = _column(nodes, settings.get("id"))
    return settings | found_ends(edges, known, settings, {end: _named(end, edges) for end in named})


def _guess_edges(columns: ColumnValues, settings: dict[str, Any]) -> dict[str, Any]:
    rest = {name: values for name, values in columns.items() if name not in (settings["source"], settings["target"])}
    types = {name: values for name, values in rest.items() if _can_be_type(values)}
    settings.setdefault("edge_type", _named("edge_type", types))
    numbers = {name: values for name, values in rest.items() if is_number_column(values)}
    settings.setdefault("weight", _named("weight", numbers))
    return settings


def _guess_held_out(edges: Path, settings: dict[str, Any], labelled: bool) -> tuple[dict[str, Any], list[str]]:
    """Take files of links beside one that is called `train` for those that are held out, as published graphs come."""
    asked = settings.get("task") == "link prediction" or not ("task" in settings or labelled)
    if not asked or {"pairs", "split", "ratios"} & set(settings) or not _is_train(edges):
        return settings, []
    found = {split: path for split, names in HELD_OUT.items() if (path := _beside(edges, names)) is not None}
    if not found:
        return settings, []
    named = " and ".join(f"{path.name} ({split})" for split, path in found.items())
    note = (
        f"{named} beside it: links that are held out. Edges that reverse them stay in the graph, as in published splits; "
        "--set data.keep_reverse=false removes them."
    )
    return {"keep_reverse": True, **settings, "pairs": found, "task": "link prediction"}, [note]


def _is_train(path: Path) -> bool:
    return path.name.partition(".")[0].lower() == "train"


def _beside(edges: Path, names: Sequence[str]) -> Path | None:
    """Return the file beside one called `train` that has one of these names, and else the same."""
    ending = edges.name[len("train") :]
    return next((path for name in names if (path := edges.with_name(name + ending)).is_file()), None)


def _guess_meanings(columns: ColumnValues, settings: dict[str, Any]) -> dict[str, Any]:
    """Find the columns that are no features: types, graphs and labels."""
    rest = {name: values for name, values in columns.items() if name != settings["id"]}
    few = {name: values for name, values in rest.items() if is_few(values)}
    settings.setdefault("node_type", _named("node_type", {name: values for name, values in few.items() if is_text(values)}))
    settings.setdefault("graph", _named("graph", few))
    taken = (settings["node_type"], settings["graph"])
    able = {name: values for name, values in rest.items() if name not in taken and can_be_target(values, settings.get("task"))}
    settings.setdefault("label", _named("label", able))
    return settings


def _task_of(columns: ColumnValues, settings: Mapping[str, Any]) -> str:
    """Return what is predicted of nodes by their label: numbers where it holds fractions, else classes."""
    values = _only_label(columns, settings)
    return "node classification" if values is None or not are_fractions(values) else "node regression"


def _guess_split(edges: ColumnValues, nodes: ColumnValues, settings: dict[str, Any]) -> dict[str, Any]:
    """Take the first column that holds train, valid and test: of nodes for classes, of edges for links."""
    if {"split", "split_by", "pairs"} & set(settings):
        return settings
    columns = edges if settings["task"] == "link prediction" else nodes
    if "ratios" in settings:
        return _with_shares(settings, "split" in columns)
    able = [name for name, values in columns.items() if is_split(values)]
    return settings | {"split": _named("split", able) or next(iter(able), None)}


def _with_shares(settings: dict[str, Any], called: bool) -> dict[str, Any]:
    """Let given ratios count where a column is called `split`, which is read unless settings differ from the usual."""
    given = settings["ratios"]
    if not called or not isinstance(given, Mapping) or dict(Ratios()) | dict(given) != dict(Ratios()):
        return settings
    if settings["task"] == "link prediction":
        raise ConfigError(
            "data.ratios are the usual ones, before which the edge table's column 'split' counts. Give other shares, or call "
            "the column otherwise."
        )
    return settings | {"split_by": "nodes" if settings.get("graph") is None else "graphs"}


def _guess_features(columns: ColumnValues, settings: dict[str, Any]) -> tuple[dict[str, Any], list[ColumnRole]]:
    """Judge all columns that are left, and say what each was taken for."""
    types = _types_of(_column(columns, settings.get("node_type")), len(next(iter(columns.values()))))
    names = ("id", "node_type", "graph", "label", *_split_of(settings["task"] != "link prediction"))
    meant = _meanings(settings, names, columns)
    roles = {name: meant.get(name) or feature_role(name, values, types) for name, values in columns.items()}
    if settings["task"] == "link prediction":
        unfit = _unfit_label(columns, settings)
        roles = {name: _without_label(role, unfit) for name, role in roles.items()}
    else:
        label = _only_label(columns, settings)
        roles = {name: _without_copy(role, columns[name], label) for name, role in roles.items()}
    if settings.get("features") is not None:
        roles = {name: _as_given(role, settings) for name, role in roles.items()}
    roles = {name: _of_setting(role, settings) for name, role in roles.items()}
    features = [role.column for role in roles.values() if role.is_feature]
    settings.setdefault("features", features)
    chosen = {role.column: role.encode for role in roles.values() if role.is_feature and role.encode is not None}
    settings.setdefault("encode", {name: how for name, how in chosen.items() if name not in settings.get("categorical", ())})
    gaps = any(_has_gaps(columns[name], types.index) for name in features)
    settings.setdefault("missing", "fill" if gaps else "refuse")
    given = settings["features"] or ()
    files = [name for name in ([given] if isinstance(given, str) else given) if is_feature_file(name)]
    return settings, [*roles.values(), *(ColumnRole(name, "feature: file", "kept sparse") for name in files)]


def _column(columns: ColumnValues, name: str | None) -> Any:
    """Return a column, None where there is no name; the name may be empty, as that of the numbers pandas writes."""
    return None if name is None else columns.get(name)


def _meanings(settings: Mapping[str, Any], names: Iterable[str], columns: ColumnValues) -> dict[str, ColumnRole]:
    """Return what the columns that settings name were taken for."""
    found: dict[str, ColumnRole] = {}
    for name in names:
        given = settings.get(name) or ()
        for column in [given] if isinstance(given, str) else given:
            if column in columns:
                found[column] = ColumnRole(column, MEANINGS[name], described(name, columns[column]))
    return found


def _split_of(this_table: bool) -> tuple[str, ...]:
    return ("split",) if this_table else ()


def _without_label(role: ColumnRole, unfit: str | None) -> ColumnRole:
    if role.taken_for == MEANINGS["label"] or (role.column == unfit and role.is_feature):
        return ColumnRole(role.column, LEFT_OUT, "a label by its name, and links have none; data.features takes it")
    if role.why == ANOTHER_SPLIT:
        return ColumnRole(role.column, LEFT_OUT, "a split of nodes; for links the edge table has the split")
    return role


def _only_label(columns: ColumnValues, settings: Mapping[str, Any]) -> Any:
    """Return the column of labels, None where there are several or none."""
    label = settings.get("label") or ()
    names = [label] if isinstance(label, str) else list(label)
    return _column(columns, names[0]) if len(names) == 1 else None


def _without_copy(role: ColumnRole, values: Any, label: Any) -> ColumnRole:
    if role.is_feature and label is not None and is_copy(values, label):
        return ColumnRole(role.column, LEFT_OUT, COPY)
    return role


def _of_setting(role: ColumnRole, settings: Mapping[str, Any]) -> ColumnRole:
    """Return the role of a column that `categorical` or `encode` makes a feature."""
    encode = settings.get("encode") or {}
    if role.column in encode and (role.is_feature or role.taken_for == LEFT_OUT):
        return ColumnRole(role.column, "feature", str(encode[role.column]))
    if role.column in (settings.get("categorical") or ()):
        return ColumnRole(role.column, "feature: category", "as given")
    beside = settings.get("indices") or {}
    if isinstance(beside, Mapping) and role.column in beside.values():
        return ColumnRole(role.column, "values of indices", "as given")
    return role


def _as_given(role: ColumnRole, settings: Mapping[str, Any]) -> ColumnRole:
    """Return the role of a column where features are given: those that are not named are left out."""
    if not role.is_feature and role.taken_for != LEFT_OUT:
        return role
    given = settings["features"]
    names = [given] if isinstance(given, str) else list(given)
    if any(role.column == name or fnmatchcase(role.column, name) for name in names):
        return role if role.is_feature else ColumnRole(role.column, "feature", "as given")
    return ColumnRole(role.column, LEFT_OUT, "not in data.features")


def _edge_roles(columns: ColumnValues, settings: Mapping[str, Any]) -> list[ColumnRole]:
    names = ("source", "target", "edge_type", "weight", *_split_of(settings["task"] == "link prediction"))
    meant = _meanings(settings, names, columns)
    return [meant.get(name) or ColumnRole(name, LEFT_OUT, _why_not_of_edges(columns[name])) for name in columns]


def _why_not_of_edges(values: Any) -> str:
    return "a split, which classes of nodes have in the node table" if is_split(values) else "edges have no features"


def _notes(
    path: Path | None, columns: ColumnValues, settings: Mapping[str, Any], labelled: bool, given: Mapping[str, Any]
) -> list[str]:
    """Say what a user may want to know beside the list of columns."""
    notes = []
    if columns and not labelled and "task" not in given:
        notes.append(f"{_why_no_label(columns, settings)}: links are predicted. For classes: --set data.label=COLUMN.")
    if settings["task"] == "node regression" and "task" not in given:
        notes.append(
            f"{settings['label']!r} holds numbers that are not all whole, which are predicted as they are: "
            "--set data.task='link prediction' predicts links instead."
        )
    features = settings.get("features") or ()
    if path is not None and not any(is_feature_file(name) for name in ([features] if isinstance(features, str) else features)):
        rows = len(next(iter(columns.values()))) if columns else 0
        beside = [file.name for file in sorted(path.parent.glob("*.npz")) if _num_rows(file) == rows]
        notes += [
            f"{name} is a sparse matrix with a row for each node: --set data.features={name} takes it." for name in beside
        ]
    return notes


def _without_valid(columns: ColumnValues, settings: Mapping[str, Any]) -> list[str]:
    """Say what follows where a column of splits has nothing to validate by."""
    values = _column(columns, settings.get("split"))
    if values is None or not is_split(values):
        return []
    found = {SPLIT_NAMES[name.strip().lower()] for name in pc.unique(values.drop_null()).to_pylist()}
    if "valid" in found:
        return []
    return [
        f"{settings['split']!r} has no validation split: settings cannot be chosen by the data, and the last epoch is kept. "
        "Mark some of the training split as valid, or draw all splits: --set 'data.ratios={train: 0.7, valid: 0.1, test: 0.2}'."
    ]


def _why_no_label(columns: ColumnValues, settings: Mapping[str, Any]) -> str:
    """Say which column has the name of a label but holds no classes, or that there is none of such a name."""
    name = _unfit_label(columns, settings)
    if name is None:
        return f"No column is called {', '.join(KNOWN_AS['label'])}"
    values = columns[name]
    if not (is_text(values) or is_number_column(values)):
        return f"The column {name!r} holds {values.type}, which cannot be classes"
    known = values.filter(pa.array(present_values(values)))
    different = f"{counted(pc.count_distinct(known).as_py(), 'different value')} in {counted(len(known), 'node')}"
    numbers = "; for numbers: --set data.task='node regression'" if is_number_column(values) else ""
    return f"The column {name!r} has {different}, too many for classes{numbers}"


def _unfit_label(columns: ColumnValues, settings: Mapping[str, Any]) -> str | None:
    """Return the column that has the name of a label and no other meaning, where none can be the label."""
    taken = [settings.get(name) for name in ("id", "node_type", "graph", "split")]
    return None if settings.get("label") else _named("label", [name for name in columns if name not in taken])


def _num_rows(path: Path) -> int:
    """Return how many rows the sparse matrix in a file has; -1 where there is none."""
    try:
        with np.load(path, allow_pickle=False) as content:
            return int(content["shape"][0])
    except (OSError, ValueError, KeyError, IndexError, EOFError):
        return -1


def _named(what: str, columns: Iterable[str]) -> str | None:
    """Return the column whose name is the most usual for one of ours."""
    lower = {name.lower().replace(" ", "_"): name for name in columns}
    return next((lower[name] for name in KNOWN_AS[what] if name in lower), None)


def _can_be_type(values: Any) -> bool:
    """Whether values can be types of edges: few, or many that repeat."""
    if is_few(values):
        return True
    if not (is_text(values) or pa.types.is_integer(values.type)):
        return False
    return bool(pc.count_distinct(values).as_py() <= min(MOST_TYPES, (len(values) - values.null_count) / 5))


def _types_of(types: Any, rows: int) -> NodeTypes:
    if types is None:
        return NodeTypes(np.zeros(rows, np.int64), UNTYPED)
    codes = pc.fill_null(types.cast(pa.string()), "").dictionary_encode()
    return NodeTypes(np.asarray(codes.indices).astype(np.int64), tuple(codes.dictionary.to_pylist()))


def _has_gaps(values: Any, kind: Any) -> bool:
    """Whether some nodes of a type have a value and others have none."""
    absent = np.asarray(values.is_null(nan_is_null=True))
    if is_text(values):
        absent = absent | np.asarray(pc.fill_null(pc.equal(values, ""), True))
    share = np.bincount(kind, absent) / np.bincount(kind)
    return bool(((share > 0) & (share < 1)).any())
