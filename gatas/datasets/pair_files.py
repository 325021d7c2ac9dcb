"""Tables that a config names: edges, nodes, and pairs to ask for."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from gatas.datasets.config import ColumnMap, LinkTableData
from gatas.datasets.held_out import Flags, Links
from gatas.errors import GraphError
from gatas.graph.inputs import Ints
from gatas.graph.reading import codes_of
from gatas.graph.tables import Table, ids_of, is_text_file, numbers_of, read_table, same_kind

REQUIRED = ("source", "target", "id")


def table_of(path: Path, given: ColumnMap) -> Table:
    """Read a file's columns under our names for them: those that are given must be there, others may be."""
    type_setting = "edge_type" if "source" in given else "node_type"
    given = {"type" if name == type_setting else name: column for name, column in given.items()}
    required = [name for name in given if name in REQUIRED]
    optional = [name for name in given if name not in REQUIRED]
    names = {name: column for name, column in given.items() if column is not None}

    def naming(ours: str, column: str) -> str:
        return f"data.{type_setting if ours == 'type' else ours}: {column}"

    return read_table(path, required, optional, names, header=True, naming=naming)


@dataclass(frozen=True)
class PairTable:
    """One file of pairs: nodes by number, types by name, labels."""

    path: Path
    source: Ints
    target: Ints
    edge_type: Ints | None
    edge_type_names: tuple[str, ...]
    label: Flags


def read_pair_files(config: LinkTableData, names: Any) -> dict[str, PairTable]:
    """By split; `names` are the ids in node order."""
    files = {split: path for split, path in dict(config.pairs).items() if path is not None}
    if files and not files.keys() & {"valid", "test"}:
        raise GraphError("data.pairs has a file for training alone. Give one for valid or test, or ratios instead.")
    return {split: _read(path, config, names) for split, path in files.items()}


def _read(path: Path, config: LinkTableData, names: Any) -> PairTable:
    table = table_of(path, config.pair_columns)
    if not table.num_rows:
        raise GraphError(f"{path} has no rows. Give it pairs, or leave it out of data.pairs.")
    types, type_names = codes_of(table, "type") if "type" in table.columns else (None, ())
    source, target = (_numbered(table, column, names) for column in ("source", "target"))
    return PairTable(path, source, target, types, type_names, _labels(table))


def _numbered(table: Table, column: str, names: Any) -> Ints:
    """Ids as node numbers."""
    described = ["the graph's are", f"those of {table.path} are"]
    known, values = same_kind([names, ids_of(table, column)], described, [False, is_text_file(table.path)])
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
        raise GraphError(f"{table.place(row, 'label')}: the label is {labels[row]:g}; expected 1 for a link, 0 for none.")
    return labels.astype(np.int8)


def asked_types(config: LinkTableData, of_graph: tuple[str, ...], files: Mapping[str, PairTable]) -> tuple[str, ...]:
    """The types asked for: those that the settings name, or that files of pairs hold, or all of the graph."""
    in_files = sorted({name for table in files.values() for name in table.edge_type_names})
    names = config.link_types or tuple(in_files) or of_graph
    for name in names:
        if name not in (*of_graph, *in_files):
            near = get_close_matches(name, (*of_graph, *in_files), n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(of_graph)}."
            raise GraphError(f"data.link_types asks for {name!r}, but there is no such edge type. {hint}")
    return tuple(dict.fromkeys(names))


def numbered_pairs(table: PairTable, names: tuple[str, ...], num_nodes: int) -> tuple[Links, Flags]:
    """Pairs with types as numbers among those asked for, and their labels."""
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
    return Links(table.source, kind, table.target, num_nodes), table.label
