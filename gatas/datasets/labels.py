"""Labels from a node table: a column of classes, a column of lists of them, or a column of 0 and 1 for each; or numbers."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.datasets.column_values import as_numbers
from gatas.datasets.config import NODE_REGRESSION, NodeTableData
from gatas.datasets.node_columns import labels_of
from gatas.datasets.targets import NodeTargets, NumberTargets
from gatas.errors import GatasWarning, GraphError
from gatas.graph.column_types import is_list, is_number_column, joined
from gatas.graph.counts import counted
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table

FEW_CLASSES = 10
"""No more classes are taken for too many, however few nodes there are."""


@dataclass(frozen=True)
class Labels:
    """What is known of N nodes, which of them have any of it, and the names of classes or numbers.

    Values are (N,) class numbers, (N, L) zeros and ones, or (N, T) numbers, NaN for those that are not known.
    """

    values: NDArray[Any]
    known: NDArray[np.bool_]
    names: tuple[str, ...]

    def targets(self, task: str, splits: Mapping[str, Ints]) -> NodeTargets | NumberTargets:
        """Return what is to be predicted, with its splits."""
        kind = NumberTargets if task == NODE_REGRESSION else NodeTargets
        return kind(self.values, self.names, splits)


def read_targets(table: Table, config: NodeTableData) -> Labels:
    """Read the classes or the numbers of a node table, as the task asks for; nodes may be without."""
    return read_numbers(table, config.label) if config.task == NODE_REGRESSION else read_labels(table, config.label)


def read_numbers(table: Table, columns: tuple[str, ...] | None) -> Labels:
    """Read one or several columns of numbers; gaps are numbers that are not known."""
    if not (columns or "label" in table.columns or "label" in table.others):
        raise GraphError(f"{table.path} has no column 'label'; its columns are {_listed(table)}. Name those that hold the "
                         "numbers to predict by data.label.")  # fmt: skip
    names = columns or (table.column_names.get("label", "label"),)
    found = [as_numbers(table, name, joined(find_column(table, name, "data.label")), "number") for name in names]
    values: NDArray[np.float64] = np.stack(found, axis=1)
    for name, own in zip(names, found, strict=True):
        if np.isnan(own).all():
            raise GraphError(f"{table.path}, column {name!r}: no node has a number. Fill some in, or leave the column out.")
    return Labels(values, np.asarray(~np.isnan(values).all(1)), names)


def read_labels(table: Table, columns: tuple[str, ...] | None) -> Labels:
    """Read the labels of a node table; nodes may be without."""
    if columns is not None and len(columns) != 1:
        labels = _side_by_side(table, columns)
    elif "label" not in table.columns:
        raise GraphError(f"{table.path} has no column 'label'; its columns are {_listed(table)}. Name the one that holds "
                         "classes by data.label, or set data.task: link prediction.")  # fmt: skip
    elif is_list(table.columns["label"].type):
        labels = _lists(table)
    else:
        values, names = labels_of(table)
        assert values is not None
        labels = Labels(values, values >= 0, names)
    _check_enough(table, labels)
    return labels


def find_column(table: Table, name: str, setting: str) -> Any:
    """Return a column by the file's name for it; `setting` is where a user named it."""
    ours = {column: table.columns[name] for name, column in table.column_names.items()}
    found = {**table.others, **ours}
    if name not in found:
        near = get_close_matches(name, found, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Its columns are {_listed(table)}."
        raise GraphError(f"{table.path} has no column {name!r}, which {setting} names. {hint}")
    return found[name]


def _lists(table: Table) -> Labels:
    """Read lists of labels: a node without a list has no label, one with an empty list has none of the classes."""
    values = table.columns["label"]
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    known = np.asarray(values.is_valid())
    rows = np.flatnonzero(known)
    if not rows.size:
        return Labels(np.zeros((len(values), 0), np.uint8), known, ())
    given, names = labels_of(replace(table, columns={"label": values.drop_null()}, num_rows=len(rows)))
    assert given is not None
    matrix = np.zeros((len(values), given.shape[1]), np.uint8)
    matrix[rows] = given
    return Labels(matrix, known, names or tuple(str(number) for number in range(given.shape[1])))


def _side_by_side(table: Table, columns: tuple[str, ...]) -> Labels:
    """Read a column of 0 and 1 for each class."""
    if not columns:
        raise GraphError("data.label is an empty list; expected the name of a column, or several.")
    flags = [_flags(table, name) for name in columns]
    matrix = np.stack([np.asarray(pc.fill_null(flag, 0)) for flag in flags], axis=1).astype(np.uint8)
    gaps: NDArray[np.bool_] = np.stack([np.asarray(flag.is_null()) for flag in flags], axis=1)
    partly = gaps.any(1) & ~gaps.all(1)
    if partly.any():
        row = int(np.argmax(partly))
        raise GraphError(f"{table.place(row, columns[int(np.argmax(gaps[row]))])}: the label is missing, while the node has "
                         "others. Write 0 or 1, or leave out all of them.")  # fmt: skip
    return Labels(matrix, np.asarray(~gaps.all(1)), columns)


def _flags(table: Table, name: str) -> Any:
    values = find_column(table, name, "data.label")
    if not (is_number_column(values) or pa.types.is_null(values.type)):
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}; one of several label columns, it should hold "
                         "0 and 1.")  # fmt: skip
    values = values.cast(pa.float64())
    wrong = pc.fill_null(pc.invert(pc.is_in(values, value_set=pa.array([0.0, 1.0]))), False)
    wrong = pc.and_(wrong, pc.is_valid(values))
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise GraphError(f"{table.place(row, name)}: the label is {values[row].as_py():g}; expected 0 or 1.")
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _check_enough(table: Table, labels: Labels) -> None:
    """Refuse labels of fewer than two classes, which tell nothing apart."""
    where = f"{table.path}, column {table.column_names.get('label', '')!r}" if "label" in table.columns else table.path
    if not labels.known.any():
        raise GraphError(f"{where}: no node has a label. Fill some in, or set data.task: link prediction.")
    if labels.values.ndim == 1 and len(labels.names) < 2:
        raise GraphError(f"{where}: all labels are {labels.names[0]!r}; expected two classes or more to tell apart.")
    if labels.values.ndim == 1 and len(labels.names) > max(FEW_CLASSES, labels.known.sum() / 2):
        warnings.warn(
            f"{where}: {len(labels.names):,} classes in {counted(int(labels.known.sum()), 'labelled node')}; hardly any can be "
            "learned from another node. Choose another data.label, or set data.task: node regression if these are numbers.",
            GatasWarning,
            stacklevel=6,
        )
    if labels.values.ndim == 2 and not labels.values.any():
        raise GraphError(f"{where}: no node has any of the labels; there is nothing to learn.")


def _listed(table: Table) -> str:
    return ", ".join(map(repr, (*table.column_names.values(), *table.others)))
