"""`read_graph`: an edge table and, if there is one, a node table, in the form users keep them."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.errors import GatasWarning, GraphError
from gatas.graph.checks import SHOWN, are_integers, refuse_decimals, refuse_unknown_nodes
from gatas.graph.columns import table_columns
from gatas.graph.edges import Repeated
from gatas.graph.graph import Graph
from gatas.graph.ids import NodeIds
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table, as_ids, checked_ids, codes_of, read_checked, read_table, warn_of_unused


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
        columns: The names in your edge table, such as `{"source": "from", "target": "to", "edge_type": "relation"}`; keys are
            the settings' names `source`, `target`, `edge_type` (or `type`) and `weight`.
        node_columns: The names in your node table, such as `{"id": "name"}`; keys are the settings' names `id`, `node_type`
            (or `type`), `graph`, `label` and `split`.
        header: Whether the first line of a text file names its columns.
        inverse: Give every edge type an inverse type of its own.
        undirected: Add the reverse of every edge under the same type.
        repeated: `"collapse"` makes one edge of repeats (their weights add up), `"count"` makes a weight of their number.
    """
    if nodes is None and node_columns:
        raise GraphError("node_columns belong to a node table, but none was given. Pass nodes='its file'.")
    table = read_checked(edges, table_columns("edges", columns), header)
    warn_of_unused(table)
    node_table = None if nodes is None else read_table(nodes, table_columns("nodes", node_columns))
    return graph_of_tables(table, node_table, inverse=inverse, undirected=undirected, repeated=repeated)


def graph_of_tables(
    edges: Table, nodes: Table | None, *, inverse: bool = False, undirected: bool = False, repeated: Repeated = "collapse"
) -> Graph:
    """Make a graph of tables whose columns are found."""
    ids, (sources, targets) = indexed_nodes(edges, nodes)
    types, type_names = indexed_types(edges)
    return Graph.from_edges(
        sources,
        targets,
        types,
        num_nodes=len(ids),
        weight=weights_of(edges),
        inverse=inverse,
        undirected=undirected,
        repeated=repeated,
        node_ids=None if are_indices(ids) else NodeIds.of(ids),
        edge_type_names=type_names,
        where=lambda row: f"{edges.path}, row {row + 1}",
    )


def weights_of(edges: Table) -> Any:
    """Return the weights of a checked edge table; None where it has none."""
    return edges.columns["weight"].to_numpy() if "weight" in edges.columns else None


def indexed_nodes(edges: Table, nodes: Table | None, pairs: Sequence[Table] = ()) -> tuple[Any, tuple[Ints, Ints]]:
    """Return ids in node order, and the ends of edges as indices.

    Without a node table, nodes are what edges and `pairs` name, ordered by id.
    """
    columns = [("sources are", checked_ids(edges, "source")), ("targets are", checked_ids(edges, "target"))]
    if nodes is not None:
        columns.append(("the node table's are", checked_ids(nodes, "id")))
    else:
        columns += [(f"those of {table.path} are", checked_ids(table, end)) for table in pairs for end in ("source", "target")]
    for _, (_, facts) in columns:
        refuse_decimals([facts])
    integers = are_integers([(described, facts) for described, (_, facts) in columns])
    source, target, *known = (as_ids(values, integers) for _, (values, _) in columns)
    if nodes is None:
        ids = pc.unique(pa.concat_arrays([source, target, *known]))
        ids = ids.take(pc.sort_indices(ids))
    else:
        ids = known[0]
        _refuse_repeated(nodes, ids)
    if not len(ids):
        raise GraphError(f"{(nodes or edges).path} has no rows, so the graph has no nodes. Give at least one.")
    ends = [pc.index_in(values, value_set=ids) for values in (source, target)]
    if nodes is not None and any(found.null_count for found in ends):
        _refuse_unknown(edges, nodes, dict(zip(("source", "target"), zip((source, target), ends, strict=True), strict=True)))
    first, second = (found.to_numpy(zero_copy_only=False).astype(np.int64) for found in ends)
    return ids, (first, second)


def _refuse_unknown(edges: Table, nodes: Table, ends: Mapping[str, tuple[Any, Any]]) -> None:
    """Say which ends of edges are not in the node table."""
    places, count = [], 0
    for column, (values, found) in ends.items():
        count += found.null_count
        rows = np.flatnonzero(np.asarray(found.is_null()))[:SHOWN].tolist()
        places += [f"{edges.place(row, column)}: the node {values[row].as_py()!r} is not in {nodes.path}" for row in rows]
    refuse_unknown_nodes(places, count)


def _refuse_repeated(nodes: Table, ids: Any) -> None:
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    seen: dict[Any, int] = {}
    repeats = [(row, one) for row, one in enumerate(ids.to_pylist()) if seen.setdefault(one, row) != row]
    row, one = repeats[0]
    refuse_duplicate(nodes.place(row, "id"), one, seen[one], len({one for _, one in repeats}))


def refuse_duplicate(place: str, node_id: object, first_row: int, count: int) -> None:
    """Say which id a node table has twice."""
    more = f" ({count:,} ids are repeated.)" if count > 1 else ""
    raise GraphError(f"{place}: duplicate id {node_id!r} (also in row {first_row + 1}); remove one.{more}")


def are_indices(ids: Any) -> bool:
    """Whether ids are 0, 1, 2 … in order, so that indices serve as ids."""
    return pa.types.is_integer(ids.type) and bool((ids.to_numpy() == np.arange(len(ids))).all())


def indexed_types(table: Table) -> tuple[Ints | None, Sequence[str]]:
    """Return the type of each edge as a number, and the names of types; None where a table has no types."""
    if "edge_type" not in table.columns:
        return None, ()
    codes, names = codes_of(table, "edge_type")
    warn_of_numbered_types(table.path, names)
    return codes, names


def warn_of_numbered_types(path: Path, names: Sequence[str]) -> None:
    """Warn that edge types which are numbers, but not 0, 1, 2 …, have other numbers inside a graph."""
    if names and all(name.isdecimal() for name in names) and list(names) != [str(k) for k in range(len(names))]:
        warnings.warn(
            f"{path}: the edge types {', '.join(names[:8])}{' …' if len(names) > 8 else ''} were numbered 0 to "
            f"{len(names) - 1} and keep their names.",
            GatasWarning,
            stacklevel=4,
        )
