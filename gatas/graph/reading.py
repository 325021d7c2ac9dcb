"""`read_graph`: an edge table and, if there is one, a node table, in the form users keep them."""

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
from gatas.graph.ids import NodeIds
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table, ids_of, is_text_file, numbers_of, read_table, same_kind, warn_of_unused

NODE_COLUMNS = ("graph", "label", "split", "type")
"""Columns of a node table that describe nodes rather than structure: `read_dataset` reads them."""


def read_graph(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    node_columns: Mapping[str, str] | None = None,
    header: bool = True,
    inverse: bool = False,
    undirected: bool = False,
    repeated: Repeated = "collapse",
) -> Graph:
    """Read a graph from Parquet, CSV or TSV files (also .gz). Ids come back out wherever nodes are shown.

    Args:
        edges: Edge table with the columns `source, target[, type][, weight]`. Ids are integers or text.
        nodes: Node table with a column `id`: all nodes, in this order, also those without edges. What else it says of nodes
            is read by `read_dataset`.
        columns: The names in your edge table, such as `{"source": "from", "target": "to"}`.
        node_columns: The name in your node table, such as `{"id": "name"}`.
        header: Whether the first line of a text file names its columns.
        inverse: Give every edge type an inverse type of its own.
        undirected: Add the reverse of every edge under the same type.
        repeated: `"collapse"` makes one edge of repeats (their weights add up), `"count"` makes a weight of their number.
    """
    if nodes is None and node_columns:
        raise GraphError("node_columns belong to a node table, but none was given. Pass nodes='its file'.")
    table = read_table(edges, ("source", "target"), ("type", "weight"), columns or {}, header)
    warn_of_unused(table)
    node_table = None if nodes is None else read_table(nodes, ("id",), NODE_COLUMNS, node_columns or {}, True)
    return graph_of_tables(table, node_table, inverse=inverse, undirected=undirected, repeated=repeated)


def graph_of_tables(
    edges: Table, nodes: Table | None, *, inverse: bool = False, undirected: bool = False, repeated: Repeated = "collapse"
) -> Graph:
    """Make a graph of tables whose columns are found."""
    ids, (sources, targets) = indexed_nodes(edges, nodes)
    types, type_names = indexed_types(edges)
    weight = edges.columns.get("weight")
    return Graph.from_edges(
        sources,
        targets,
        types,
        num_nodes=len(ids),
        weight=None if weight is None else numbers_of(edges, "weight", weight),
        inverse=inverse,
        undirected=undirected,
        repeated=repeated,
        node_ids=None if are_indices(ids) else NodeIds.of(ids),
        edge_type_names=type_names,
        where=lambda row: f"{edges.path}, row {row + 1}",
    )


def indexed_nodes(edges: Table, nodes: Table | None) -> tuple[Any, tuple[Ints, Ints]]:
    """Return ids in node order, and the ends of edges as indices. Without a node table, nodes are ordered by id."""
    columns, described = [ids_of(edges, "source"), ids_of(edges, "target")], ["sources are", "targets are"]
    from_text = [is_text_file(edges.path)] * 2
    if nodes is not None:
        columns.append(ids_of(nodes, "id"))
        described.append("the node table's are")
        from_text.append(is_text_file(nodes.path))
    source, target, *known = same_kind(columns, described, from_text)
    if nodes is None:
        ids = pc.unique(pa.concat_arrays([source, target]))
        ids = ids.take(pc.sort_indices(ids))
    else:
        ids = known[0]
        _refuse_repeated(nodes, ids)
    if not len(ids):
        raise GraphError(f"{(nodes or edges).path} has no rows, so the graph has no nodes. Give at least one.")
    ends = []
    for column, values in (("source", source), ("target", target)):
        found = pc.index_in(values, value_set=ids)
        if found.null_count:
            row = pc.index(pc.is_null(found), True).as_py()
            raise GraphError(
                f"{edges.place(row, column)}: the node {values[row].as_py()!r} is not in {nodes.path if nodes else ''}. "
                "Add it to the node table, or remove the edge."
            )
        ends.append(found.to_numpy(zero_copy_only=False).astype(np.int64))
    return ids, (ends[0], ends[1])


def _refuse_repeated(nodes: Table, ids: Any) -> None:
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    seen: dict[Any, int] = {}
    for row, one in enumerate(ids.to_pylist()):
        if one in seen:
            raise GraphError(f"{nodes.place(row, 'id')}: duplicate id {one!r} (also in row {seen[one] + 1}); remove one.")
        seen[one] = row


def are_indices(ids: Any) -> bool:
    """Whether ids are 0, 1, 2 … in order, so that indices serve as ids."""
    return pa.types.is_integer(ids.type) and bool((ids.to_numpy() == np.arange(len(ids))).all())


def indexed_types(table: Table) -> tuple[Ints | None, Sequence[str]]:
    """Return the type of each edge as a number, and the names of types; None where a table has no types."""
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
    """Number the values of a column in ascending order, numbers as numbers; return the numbers and the names."""
    (values,) = same_kind([ids_of(table, column)], [column], [is_text_file(table.path)])
    names = pc.unique(values)
    names = names.take(pc.sort_indices(names))
    codes = pc.index_in(values, value_set=names).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, tuple(str(name) for name in names.to_pylist())
