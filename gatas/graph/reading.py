"""`read_graph`: an edge table, and if there is one a node table, as people keep them."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError
from gatas.graph.edges import Repeated
from gatas.graph.graph import Graph
from gatas.graph.inputs import Ints, as_features
from gatas.graph.names import Names
from gatas.graph.nodes import SPLITS, UNLABELLED, NodeTable
from gatas.graph.tables import Table, ids_of, is_number_column, is_text_file, numbers_of, read_table, same_kind

SPLIT_NAMES = {name: name for name in SPLITS} | {"val": "valid", "validation": "valid", "dev": "valid", "": None}


def read_graph(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    features: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    node_columns: Mapping[str, str] | None = None,
    header: bool = True,
    inverse: bool = False,
    undirected: bool = False,
    repeated: Repeated = "collapse",
) -> Graph:
    """Read a graph from Parquet, CSV or TSV files (also .gz).

    The edge table has the columns `source, target[, type][, weight]`, the node table `id[, graph][, label][, split]` and
    features: numeric columns, one list column, or an .npy file (`features`, or beside the node table with the same stem).
    `columns` and `node_columns` give the names in your files, such as `columns={"source": "from", "target": "to"}`.
    Ids are integers or text, and come back out wherever nodes are shown.
    """
    table = read_table(edges, ("source", "target"), ("type", "weight"), columns or {}, header)
    _warn_of_others(table)
    people = None if nodes is None else read_table(nodes, ("id",), ("graph", "label", "split"), node_columns or {}, True)
    names, (sources, targets) = _numbered_nodes(table, people)
    types, type_names = _numbered_types(table)
    weight = table.columns.get("weight")
    return Graph.from_edges(
        sources,
        targets,
        types,
        num_nodes=len(names),
        weight=None if weight is None else numbers_of(table, "weight", weight),
        inverse=inverse,
        undirected=undirected,
        repeated=repeated,
        graph_id=None if people is None or "graph" not in people.columns else _codes(people, "graph")[0],
        node_names=None if _are_numbers(names) else Names.of(names),
        edge_type_names=type_names,
        nodes=None if people is None else _node_table(people, features),
        where=lambda row: f"{table.path}, row {row + 1}",
    )


def _numbered_nodes(table: Table, people: Table | None) -> tuple[Any, tuple[Ints, Ints]]:
    """Ids in node order, and the edges' ends as node numbers. Without a node table, nodes are ordered by id."""
    columns, described = [ids_of(table, "source"), ids_of(table, "target")], ["sources are", "targets are"]
    from_text = is_text_file(table.path)
    if people is not None:
        columns.append(ids_of(people, "id"))
        described.append("the node table's are")
        from_text = from_text or is_text_file(people.path)
    source, target, *known = same_kind(columns, described, from_text=from_text)
    if not known:
        names = pc.unique(pa.concat_arrays([source, target]))
        names = names.take(pc.sort_indices(names))
    else:
        names = known[0]
        _refuse_repeated(people, names)
    ends = []
    for column, values in (("source", source), ("target", target)):
        found = pc.index_in(values, value_set=names)
        if found.null_count:
            row = pc.index(pc.is_null(found), True).as_py()
            raise GraphError(
                f"{table.place(row, column)}: the node {values[row].as_py()!r} is not in {people.path if people else ''}. "
                "Add it to the node table, or remove the edge."
            )
        ends.append(found.to_numpy(zero_copy_only=False).astype(np.int64))
    return names, (ends[0], ends[1])


def _refuse_repeated(people: Table | None, names: Any) -> None:
    assert people is not None
    if pc.count_distinct(names).as_py() == len(names):
        return
    seen: dict[Any, int] = {}
    for row, name in enumerate(names.to_pylist()):
        if name in seen:
            raise GraphError(f"{people.place(row, 'id')}: the id {name!r} stands in row {seen[name] + 1} too. Keep one.")
        seen[name] = row


def _are_numbers(names: Any) -> bool:
    """Whether ids are 0, 1, 2 … in order, so that nodes need no other names."""
    return pa.types.is_integer(names.type) and bool((names.to_numpy() == np.arange(len(names))).all())


def _numbered_types(table: Table) -> tuple[Ints | None, Sequence[str]]:
    if "type" not in table.columns:
        return None, ()
    codes, names = _codes(table, "type")
    if names and all(name.isdecimal() for name in names) and list(names) != [str(k) for k in range(len(names))]:
        warnings.warn(
            f"{table.path}: the edge types {', '.join(names[:8])}{' …' if len(names) > 8 else ''} were numbered 0 to "
            f"{len(names) - 1} and keep their names.",
            GatasWarning,
            stacklevel=3,
        )
    return codes, names


def _codes(table: Table, column: str) -> tuple[Ints, tuple[str, ...]]:
    """Values numbered in ascending order, numbers as numbers."""
    (values,) = same_kind([ids_of(table, column)], [column], from_text=is_text_file(table.path))
    names = pc.unique(values)
    names = names.take(pc.sort_indices(names))
    codes = pc.index_in(values, value_set=names).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, tuple(str(name) for name in names.to_pylist())


def _node_table(people: Table, features: str | Path | None) -> NodeTable:
    labels, class_names = _labels(people)
    return NodeTable(
        people.num_rows,
        features=_features(people, features),
        labels=labels,
        class_names=class_names,
        splits=_splits(people),
    )


def _labels(people: Table) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Classes by name; missing, empty and -1 mean unlabelled. A list column holds several labels for each node."""
    values = people.columns.get("label")
    if values is None:
        return None, ()
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type):
        return _label_sets(people, values)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not (pa.types.is_integer(values.type) or pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise GraphError(f"{people.place(0, 'label')}: labels are {values.type}; expected integers or text.")
    if is_text_file(people.path):
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)
        if pc.all(pc.match_substring_regex(values, r"^(0|-?[1-9][0-9]{0,17})$")).as_py():
            values = values.cast(pa.int64())
    if pa.types.is_integer(values.type):
        values = values.cast(pa.int64())
        negative = pc.fill_null(pc.less(values, UNLABELLED), False)
        if pc.any(negative).as_py():
            row = pc.index(negative, True).as_py()
            raise GraphError(f"{people.place(row, 'label')}: label is {values[row].as_py()}; expected 0 and up, "
                             "or -1 (or nothing) for a node without a label.")  # fmt: skip
        values = pc.if_else(pc.equal(values, UNLABELLED), pa.scalar(None, pa.int64()), values)
    names = pc.unique(values).drop_null()
    names = names.take(pc.sort_indices(names))
    codes = pc.fill_null(pc.index_in(values, value_set=names), UNLABELLED)
    return codes.to_numpy().astype(np.int64), tuple(str(name) for name in names.to_pylist())


def _label_sets(people: Table, values: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    rows = values.to_pylist()
    if any(row is None for row in rows):
        raise GraphError(f"{people.place([r is None for r in rows].index(True), 'label')}: the list is missing; write [].")
    if all(isinstance(label, int) for row in rows for label in row):
        lengths = {len(row) for row in rows}
        if len(lengths) > 1:
            raise GraphError(f"{people.path}: the lists of 0 and 1 in {people.column_names['label']!r} differ in length.")
        return np.array(rows, np.int64).reshape(len(rows), -1), ()
    names = sorted({label for row in rows for label in row})
    column = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)), np.uint8)
    for number, row in enumerate(rows):
        matrix[number, [column[label] for label in row]] = 1
    return matrix, tuple(names)


def _splits(people: Table) -> dict[str, NDArray[Any]]:
    if "split" not in people.columns:
        return {}
    column = people.columns["split"]
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_null(column.type)):
        raise GraphError(f"{people.place(0, 'split')}: splits are {column.type}; expected train, valid or test.")
    values = ["" if value is None else value.strip().lower() for value in column.to_pylist()]
    for row, value in enumerate(values):
        if value not in SPLIT_NAMES:
            raise GraphError(f"{people.place(row, 'split')}: {value!r} is not a split; expected train, valid, test or nothing.")
    split = np.array([SPLIT_NAMES[value] or "" for value in values])
    return {name: np.flatnonzero(split == name) for name in SPLITS if (split == name).any()}


def _features(people: Table, path: str | Path | None) -> NDArray[np.float32] | None:
    lists = [name for name, values in people.others.items() if pa.types.is_nested(values.type)]
    numeric = [name for name, values in people.others.items() if is_number_column(values)]
    beside = Path(path) if path is not None else people.path.with_suffix(".npy")
    sources = [what for what, found in (("a list column", lists), ("numeric columns", numeric)) if found]
    if path is not None and sources:
        raise GraphError(f"features come from {path} and from {sources[0]} of {people.path}. Keep one.")
    if len(sources) == 2 or len(lists) > 1:
        raise GraphError(f"{people.path} has features in {', '.join(map(repr, (*lists, *numeric)))}; "
                         "expected numeric columns or one list column, not both.")  # fmt: skip
    _warn_of_others(people, used=(*lists, *numeric))
    where = lambda row: f"{people.path}, row {row + 1}"  # noqa: E731
    if lists:
        return as_features(_list_matrix(people, lists[0]), people.num_rows, where)
    if numeric:
        stacked = [numbers_of(people, name, people.others[name].cast(pa.float64())) for name in numeric]
        _refuse_infinite(people, numeric, stacked)
        return as_features(np.stack(stacked, axis=1), people.num_rows, where)
    if path is not None or beside.is_file():
        return as_features(_load_matrix(beside), people.num_rows, lambda row: f"{beside}, row {row}")
    return None


def _refuse_infinite(people: Table, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    for name, column in zip(names, columns, strict=True):
        finite = np.isfinite(column.astype(np.float32, copy=False))
        if not finite.all():
            row = int(np.argmin(finite))
            raise GraphError(f"{people.place(row, name)}: the feature is {column[row]}; expected a finite number.")


def _list_matrix(people: Table, name: str) -> NDArray[Any]:
    values = people.others[name].combine_chunks()
    if values.null_count:
        row = values.is_null().index(True).as_py()
        raise GraphError(f"{people.place(row, name)}: the list is missing. Give every node its features.")
    if not _is_numeric_list(values.type):
        raise GraphError(f"{people.path}, column {name!r} holds {values.type}; expected lists of numbers.")
    lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    wrong = lengths != (lengths[0] if len(lengths) else 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise GraphError(f"{people.place(row, name)}: the list has {lengths[row]} numbers, the first one {lengths[0]}.")
    flat = values.flatten()
    if flat.null_count:
        row = flat.is_null().index(True).as_py() // int(lengths[0])
        raise GraphError(f"{people.place(row, name)}: a number in the list is missing.")
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(values), -1)


def _is_numeric_list(kind: Any) -> bool:
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return listed and (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def _load_matrix(path: Path) -> NDArray[Any]:
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise GraphError(f"{path} could not be read as an .npy matrix: {str(error).splitlines()[0]}") from error
    return np.asarray(matrix)


def _warn_of_others(table: Table, used: Sequence[str] = ()) -> None:
    ignored = [name for name in table.others if name not in used]
    if ignored:
        warnings.warn(
            f"{table.path}: {len(ignored)} columns were not used: {', '.join(map(repr, ignored))}.",
            GatasWarning,
            stacklevel=4,
        )
