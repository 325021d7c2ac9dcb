"""Nodes that only links of validation or test name: they are in the graph, without edges, and are counted."""

import warnings
from collections.abc import Mapping
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
from gatas.graph.tables import Table, as_ids, checked_ids

TOLD = {"node_type": "type", "graph": "graph"}
"""What a node table may say of every node, and no link can tell."""


def with_asked_nodes(nodes: Table, pairs: Mapping[str, Table], config: TableData) -> Table:
    """Add a row to the node table for each node that only files of validation or test name; its features are gaps."""
    asked = [(table, end) for split, table in pairs.items() if split != "train" for end in ("source", "target")]
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
    places = zip(asked, ends, strict=True)
    place = next(table.place(row, end) for (table, end), ids in places if (row := pc.index(ids, new[0]).as_py()) >= 0)
    filled = _check_can_be_added(nodes, config, f"{place}: there is no node {new[0].as_py()!r} in {nodes.path}")
    _warn(new, "the node table does not have them: they are in the graph without edges" + filled)
    return _longer(nodes, checked_ids(nodes, "id")[0], new)


def _check_can_be_added(nodes: Table, config: TableData, what: str) -> str:
    """Refuse nodes of which a table would have to say more; return what becomes of their features, in words."""
    for column, said in TOLD.items():
        if column in nodes.columns:
            raise GraphError(
                f"{what}, which says of what {said} each node is. Add the node with its {said}, or remove the link."
            )
    if not chosen_columns(nodes, config):
        return ""
    if config.missing == "refuse":
        raise GraphError(
            f"{what}, so it has no features. Add the node, set data.missing: fill (the mean, or no category), set "
            "data.features: [], or remove the link."
        )
    return ", and their features are filled"


def _longer(nodes: Table, ids: Any, new: Any) -> Table:
    """Return the table with rows at its end that have an id and nothing else."""
    count = len(new)
    columns = {name: _with_gaps(values, count) for name, values in nodes.columns.items()}
    columns["id"] = pa.chunked_array([*ids.chunks, new.cast(ids.type)])
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
