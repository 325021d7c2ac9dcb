"""Files of pairs to ask for, beside an edge table."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from gatas.datasets.config import LinkTableData
from gatas.datasets.held_out import Flags, IndexedPairs
from gatas.errors import GraphError
from gatas.graph.checks import IdFacts, are_integers, refuse_decimals
from gatas.graph.column_types import is_text
from gatas.graph.columns import ColumnNames
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table, as_ids, checked_ids, codes_of, numbers_of, read_checked


@dataclass(frozen=True)
class PairTable:
    """One file of pairs: nodes by index, types by name, labels."""

    path: Path
    source: Ints
    target: Ints
    edge_type: Ints | None
    edge_type_names: tuple[str, ...]
    label: Flags


def read_pair_files(config: LinkTableData) -> dict[str, Table]:
    """Read the files of pairs of each split."""
    files = {split: path for split, path in dict(config.pairs).items() if path is not None}
    if files and not files.keys() & {"valid", "test"}:
        raise GraphError("data.pairs has a file for training alone. Give one for valid or test, or ratios instead.")
    return {split: _read(path, config) for split, path in files.items()}


def _read(path: Path, config: LinkTableData) -> Table:
    table = read_checked(path, ColumnNames.of_settings(config.pair_columns))
    if not table.num_rows:
        raise GraphError(f"{path} has no rows. Give it pairs, or leave it out of data.pairs.")
    return table


def pair_table(table: Table, ids: Any) -> PairTable:
    """Find the nodes that a file of pairs names; `ids` are those of the graph, in node order."""
    types, type_names = codes_of(table, "edge_type") if "edge_type" in table.columns else (None, ())
    source, target = (_indices(table, column, ids) for column in ("source", "target"))
    return PairTable(table.path, source, target, types, type_names, _labels(table))


def _indices(table: Table, column: str, ids: Any) -> Ints:
    """Return the index of each id."""
    values, facts = checked_ids(table, column)
    refuse_decimals([facts])
    of_graph = IdFacts("id", text=is_text(ids), rows=len(ids))
    integers = are_integers([("the graph's are", of_graph), (f"those of {table.path} are", facts)])
    known, values = as_ids(ids, integers), as_ids(values, integers)
    found = pc.index_in(values, value_set=known)
    if found.null_count:
        row = pc.index(pc.is_null(found), True).as_py()
        raise GraphError(
            f"{table.place(row, column)}: there is no node {values[row].as_py()!r} in the graph, so it cannot be asked for. "
            "Add it to the node table, or remove the pair."
        )
    return np.asarray(found).astype(np.int64)


def _labels(table: Table) -> Flags:
    if "label" not in table.columns:
        return np.ones(table.num_rows, np.int8)
    labels = numbers_of(table, "label", table.columns["label"])
    usable = np.isin(labels, (0, 1))
    if not usable.all():
        row = int(np.argmin(usable))
        raise GraphError(f"{table.place(row, 'label')}: the label is {labels[row]:g}; expected 1 for a link, 0 for a negative.")
    return labels.astype(np.int8)


def asked_types(config: LinkTableData, of_graph: tuple[str, ...], files: Mapping[str, PairTable]) -> tuple[str, ...]:
    """Return the types asked for: those that the settings name, or all, of the graph and of files of pairs.

    Where a file holds the training links, edges of the graph are none: the types asked for are then those of the files.
    """
    in_files = {name for table in files.values() for name in table.edge_type_names}
    learned = in_files if "train" in files else in_files | set(of_graph)
    names = config.link_types or (tuple(sorted(learned)) if in_files else of_graph)
    for name in names:
        if name not in (*of_graph, *in_files):
            near = get_close_matches(name, (*of_graph, *sorted(in_files)), n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(of_graph)}."
            raise GraphError(f"data.link_types asks for {name!r}, but there is no such edge type. {hint}")
    return tuple(dict.fromkeys(names))


def indexed_pairs(table: PairTable, names: tuple[str, ...], num_nodes: int) -> tuple[IndexedPairs, Flags]:
    """Return pairs with types as indices among those asked for, and their labels."""
    if table.edge_type is None:
        if len(names) > 1:
            raise GraphError(f"{table.path} has no column of types, while {', '.join(names)} are asked for. Add one, or name "
                             "one type in data.link_types.")  # fmt: skip
        kind = np.zeros(len(table.source), np.int64)
    else:
        if wrong := [name for name in table.edge_type_names if name not in names]:
            raise GraphError(f"{table.path} has pairs of type {wrong[0]!r}, but only {', '.join(names)} are asked for. Add it "
                             "to data.link_types, or remove them.")  # fmt: skip
        kind = np.array([names.index(name) for name in table.edge_type_names], np.int64)[table.edge_type]
    return IndexedPairs(table.source, kind, table.target, num_nodes), table.label
