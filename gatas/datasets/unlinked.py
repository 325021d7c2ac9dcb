"""Nodes that only links of validation or test name: they are in the graph, without edges, and are counted."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.datasets.config import TableData
from gatas.datasets.learning import chosen_columns
from gatas.errors import GatasWarning, GraphError
from gatas.graph.checks import are_integers, refuse_decimals
from gatas.graph.counts import counted
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table, as_ids, checked_ids, codes_of, numbers_of

ENDS = ("source", "target")


def with_asked_nodes(nodes: Table, edges: Table, pairs: Mapping[str, Table], config: TableData) -> Table:
    """Add a row to the node table for each node that only files of validation or test name; its features are gaps.

    Where the table says of what type nodes are, it is of the only type that `edges` like its links have at that end.
    """
    asked = [(table, end) for split, table in pairs.items() if split != "train" for end in ENDS]
    columns = [("the node table's are", checked_ids(nodes, "id"))]
    columns += [(f"those of {table.path} are", checked_ids(table, end)) for table, end in asked]
    for _, (_, facts) in columns:
        refuse_decimals([facts])
    integers = are_integers([(described, facts) for described, (_, facts) in columns])
    known, *ends = (as_ids(values, integers) for _, (values, _) in columns)
    new = pc.unique(pa.concat_arrays([known[:0], *(end.filter(pc.invert(pc.is_in(end, value_set=known))) for end in ends)]))
    if not len(new):
        return nodes
    new = new.take(pc.sort_indices(new))
    types = _types_of(new, nodes, edges, [table for split, table in pairs.items() if split != "train"])
    first = new[0 if types is None else max(0, int(np.argmin(types)))]
    places = zip(asked, ends, strict=True)
    place = next(table.place(row, end) for (table, end), ids in places if (row := pc.index(ids, first).as_py()) >= 0)
    filled = _check_can_be_added(nodes, config, types, f"{place}: there is no node {first.as_py()!r} in {nodes.path}")
    _warn(new, "the node table does not have them: they are in the graph without edges" + filled)
    return _longer(nodes, checked_ids(nodes, "id")[0], new, types)


def _types_of(new: Any, nodes: Table, edges: Table, asked: Sequence[Table]) -> Ints | None:
    """Return a row of the node table with the type of each new node, or -1; None where nodes have no types."""
    if "node_type" not in nodes.columns:
        return None
    of_node, type_names = codes_of(nodes, "node_type")
    kinds, kind_names = _kinds(edges)
    permitted = np.zeros((len(ENDS), len(kind_names), len(type_names)), np.bool_)
    for end, name in enumerate(ENDS):
        node = _places(edges, name, _as_text(checked_ids(nodes, "id")[0]))
        permitted[end, kinds[node >= 0], of_node[node[node >= 0]]] = True
    possible = np.ones((len(new), len(type_names)), np.bool_)
    for table in asked:
        own, own_names = _kinds(table)
        known = np.array([kind_names.index(name) if name in kind_names else -1 for name in own_names])[own]
        if "label" in table.columns:
            known = np.where(numbers_of(table, "label", table.columns["label"]) == 1, known, -1)
        for end, name in enumerate(ENDS):
            place = _places(table, name, _as_text(new))
            rows = (place >= 0) & (known >= 0)
            np.logical_and.at(possible, place[rows], permitted[end, known[rows]])
    row = np.unique(of_node, return_index=True)[1][possible.argmax(1)]
    return np.where(possible.sum(1) == 1, row, -1)


def _kinds(table: Table) -> tuple[Ints, tuple[str, ...]]:
    """Return the type of each row of edges or of pairs; all alike where no column says it."""
    if "edge_type" in table.columns:
        return codes_of(table, "edge_type")
    return np.zeros(table.num_rows, np.int64), ("",)


def _places(table: Table, end: str, ids: Any) -> Ints:
    """Return the place among some ids, as text, of each that a column names, or -1."""
    found = pc.index_in(_as_text(checked_ids(table, end)[0]), value_set=ids)
    places: Ints = np.asarray(found.fill_null(-1)).astype(np.int64)
    return places


def _as_text(ids: Any) -> Any:
    text = ids.cast(pa.string())
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _check_can_be_added(nodes: Table, config: TableData, types: Ints | None, what: str) -> str:
    """Refuse nodes of which a table would have to say more; return what becomes of them, in words."""
    told = "graph" if "graph" in nodes.columns else "type" if types is not None and (types < 0).any() else None
    if told is not None:
        hint = " Edges like its links have nodes of several types there, or none." if told == "type" else ""
        raise GraphError(
            f"{what}, which says of what {told} each node is. Add the node with its {told}, or remove the link.{hint}"
        )
    said = "" if types is None else ", of the type that such links have there"
    if not chosen_columns(nodes, config):
        return said
    if config.missing == "refuse":
        raise GraphError(
            f"{what}, so it has no features. Add the node, set data.missing: fill (the mean, or no category), set "
            "data.features: [], or remove the link."
        )
    return f"{said}, and their features are filled"


def _longer(nodes: Table, ids: Any, new: Any, types: Ints | None) -> Table:
    """Return the table with rows at its end that have an id, the type of another row where there are `types`, and no more."""
    count = len(new)
    columns = {name: _with_gaps(values, count) for name, values in nodes.columns.items()}
    columns["id"] = pa.chunked_array([*ids.chunks, new.cast(ids.type)])
    if types is not None:
        own = nodes.columns["node_type"]
        own = own.combine_chunks() if isinstance(own, pa.ChunkedArray) else own
        columns["node_type"] = pa.chunked_array([own, own.take(pa.array(types))])
    others = {name: values if values is None else _with_gaps(values, count) for name, values in nodes.others.items()}
    return replace(nodes, columns=columns, others=others, num_rows=nodes.num_rows + count, facts={})


def _with_gaps(values: Any, count: int) -> Any:
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return pa.chunked_array([*chunks, pa.nulls(count, values.type)], values.type)


def warn_of_unlinked(ids: Any, named: Ints, linked: Ints) -> None:
    """Count the nodes that links of validation or test name, and no edge of the graph."""
    unlinked = np.setdiff1d(named, linked)
    if unlinked.size:
        _warn(ids.take(pa.array(unlinked)), "they are in the graph without edges")


def _warn(ids: Any, what: str) -> None:
    warnings.warn(
        f"only the pairs of valid or test name {counted(len(ids), 'node')} (the first is {ids[0].as_py()!r}); {what}.",
        GatasWarning,
        stacklevel=6,
    )
