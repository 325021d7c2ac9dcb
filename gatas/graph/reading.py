"""`read_graph`: an edge table, and if there is one a node table, as people keep them."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.errors import GatasWarning, GraphError
from gatas.graph.edges import Repeated
from gatas.graph.graph import Graph
from gatas.graph.inputs import Ints
from gatas.graph.names import Names
from gatas.graph.node_columns import node_table, warn_of_others
from gatas.graph.tables import Table, ids_of, is_text_file, numbers_of, read_table, same_kind


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
    if nodes is None and (features is not None or node_columns):
        raise GraphError("features and node_columns belong to a node table, but none was given. Pass nodes='its file'.")
    table = read_table(edges, ("source", "target"), ("type", "weight"), columns or {}, header)
    warn_of_others(table)
    people = None if nodes is None else read_table(nodes, ("id",), ("graph", "label", "split"), node_columns or {}, True)
    names, (sources, targets) = numbered_nodes(table, people)
    types, type_names = numbered_types(table)
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
        graph_id=None if people is None or "graph" not in people.columns else codes_of(people, "graph")[0],
        node_names=None if are_numbers(names) else Names.of(names),
        edge_type_names=type_names,
        nodes=None if people is None else node_table(people, features),
        where=lambda row: f"{table.path}, row {row + 1}",
    )


def numbered_nodes(table: Table, people: Table | None) -> tuple[Any, tuple[Ints, Ints]]:
    """Ids in node order, and the edges' ends as node numbers. Without a node table, nodes are ordered by id."""
    columns, described = [ids_of(table, "source"), ids_of(table, "target")], ["sources are", "targets are"]
    from_text = [is_text_file(table.path)] * 2
    if people is not None:
        columns.append(ids_of(people, "id"))
        described.append("the node table's are")
        from_text.append(is_text_file(people.path))
    source, target, *known = same_kind(columns, described, from_text)
    if not known:
        names = pc.unique(pa.concat_arrays([source, target]))
        names = names.take(pc.sort_indices(names))
    else:
        names = known[0]
        _refuse_repeated(people, names)
    if not len(names):
        raise GraphError(f"{(people or table).path} has no rows, so the graph has no nodes. Give at least one.")
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


def are_numbers(names: Any) -> bool:
    """Whether ids are 0, 1, 2 … in order, so that nodes need no other names."""
    return pa.types.is_integer(names.type) and bool((names.to_numpy() == np.arange(len(names))).all())


def numbered_types(table: Table) -> tuple[Ints | None, Sequence[str]]:
    if "type" not in table.columns:
        return None, ()
    codes, names = codes_of(table, "type")
    if names and all(name.isdecimal() for name in names) and list(names) != [str(k) for k in range(len(names))]:
        warnings.warn(
            f"{table.path}: the edge types {', '.join(names[:8])}{' …' if len(names) > 8 else ''} were numbered 0 to "
            f"{len(names) - 1} and keep their names.",
            GatasWarning,
            stacklevel=3,
        )
    return codes, names


def codes_of(table: Table, column: str) -> tuple[Ints, tuple[str, ...]]:
    """Values numbered in ascending order, numbers as numbers."""
    (values,) = same_kind([ids_of(table, column)], [column], [is_text_file(table.path)])
    names = pc.unique(values)
    names = names.take(pc.sort_indices(names))
    codes = pc.index_in(values, value_set=names).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, tuple(str(name) for name in names.to_pylist())
