"""Columns of a node table as one matrix of features.

A column belongs to the node types that have any value in it: others have zeros there, and so have columns of their own. A
number becomes one column, text (or what is `categorical`) one for each value, a list one for each place.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.datasets.config import DataConfig
from gatas.datasets.labels import find_column
from gatas.errors import GraphError
from gatas.graph.inputs import Floats, Ints
from gatas.graph.node_columns import is_list, warn_of_others
from gatas.graph.tables import ANY_NUMBER, Table, is_number_column, is_text

MOST_CATEGORIES = 1000

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Kinds:
    """The type of each node; all alike where there are no types."""

    number: Ints
    names: tuple[str, ...]


def encode(people: Table, config: DataConfig, kinds: Kinds, training: Ints | None) -> Floats | None:
    """(N, F) features, or None. Numbers are standardised over `training` nodes, or over all."""
    names = chosen_columns(people, config)
    warn_of_others(people, used=(*names, *(config.label or ())))
    if not names:
        return None
    measured = np.ones(people.num_rows, np.bool_)
    if training is not None:
        measured = np.isin(np.arange(people.num_rows), training)
    return np.concatenate([_column(people, name, config, kinds, measured) for name in names], axis=1)


def chosen_columns(people: Table, config: DataConfig) -> list[str]:
    """The columns that the settings name, in their order; without any, all numbers and lists that are left."""
    labels = config.label or ()
    if config.features is None:
        rest = {name: values for name, values in people.others.items() if name not in labels}
        chosen = [name for name, values in rest.items() if is_number_column(values) or is_list(values.type)]
        return [*chosen, *(name for name in config.categorical if name not in chosen)]
    chosen = []
    for wanted in (*config.features, *config.categorical):
        matching = [name for name in people.others if fnmatchcase(name, wanted)] if "*" in wanted else []
        if "*" in wanted and not matching:
            raise GraphError(f"{people.path} has no column like {wanted!r}, which data.features names.")
        chosen += [name for name in matching or [wanted] if name not in chosen]
    if given_away := [name for name in chosen if name in (*labels, people.column_names.get("label"))]:
        raise GraphError(f"data.features names {given_away[0]!r}, the labels: this gives the answer away. Leave it out.")
    return chosen


def _column(people: Table, name: str, config: DataConfig, kinds: Kinds, measured: Mask) -> Floats:
    values = find_column(people, name, "data.features")
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if is_list(values.type):
        return _list(people, name, values, kinds, config)
    if name in config.categorical or is_text(values):
        return _category(people, name, values, kinds, config)
    if not is_number_column(values):
        raise GraphError(f"{people.path}, column {name!r} holds {values.type}; expected numbers, text or lists of numbers.")
    return _number(people, name, values, kinds, config, measured)


def _number(people: Table, name: str, values: Any, kinds: Kinds, config: DataConfig, measured: Mask) -> Floats:
    """Mean and deviation are those of training nodes; of all that have a value, where no training node has one."""
    numbers = np.asarray(pc.fill_null(values.cast(pa.float64()), np.nan))
    present = ~np.isnan(numbers)
    gaps = _gaps(people, name, present, kinds, config)
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise GraphError(f"{people.place(row, name)}: the feature is {numbers[row]}; expected a finite number.")
    known = numbers[present & measured] if (present & measured).any() else numbers[present]
    mean, deviation = known.mean(), known.std()
    filled = np.where(gaps, mean, numbers)
    if config.standardise:
        filled = (filled - mean) / (deviation if deviation > 0 else 1.0)
    with np.errstate(over="ignore"):
        column: Floats = np.where(present | gaps, filled, 0.0).astype(np.float32)[:, None]
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise GraphError(f"{people.place(row, name)}: {numbers[row]:g} is too large. Rescale the column, or take logarithms.")
    return column


def _category(people: Table, name: str, values: Any, kinds: Kinds, config: DataConfig) -> Floats:
    """A column for each value, in ascending order; a gap is none of them."""
    values = values.cast(pa.string())
    values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    if name not in config.categorical:
        _refuse_numbers(people, name, values)
    known = pc.unique(values).drop_null()
    if len(known) > MOST_CATEGORIES:
        raise GraphError(f"{people.path}, column {name!r} has {len(known):,} different values; one column for each would be "
                         f"made, and at most {MOST_CATEGORIES:,} are. Leave it out of data.features.")  # fmt: skip
    codes = np.asarray(pc.fill_null(pc.index_in(values, value_set=known.take(pc.sort_indices(known))), -1))
    _gaps(people, name, codes >= 0, kinds, config)
    columns: Floats = (codes[:, None] == np.arange(len(known))).astype(np.float32)
    return columns


def _refuse_numbers(people: Table, name: str, values: Any) -> None:
    """Text that is mostly numbers is a column of numbers with something wrong in it."""
    numeric = pc.match_substring_regex(values, ANY_NUMBER)
    count = pc.sum(numeric).as_py() or 0
    if 2 * count > len(values) - values.null_count:
        row = pc.index(numeric, False).as_py()
        if row < 0:
            return
        raise GraphError(
            f"{people.place(row, name)}: {values[row].as_py()!r} is not a number, while {count:,} others are. Mend it, or "
            "list the column in data.categorical."
        )


def _list(people: Table, name: str, values: Any, kinds: Kinds, config: DataConfig) -> Floats:
    """As it is given. Where node types have lists of different lengths, each has columns of its own."""
    if not is_number_column(values.flatten()):
        raise GraphError(f"{people.path}, column {name!r} holds {values.type}; expected lists of numbers.")
    present = np.asarray(values.is_valid())
    _gaps(people, name, present, kinds, config)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0)).astype(np.int64)
    rows = np.flatnonzero(present)
    numbers = np.asarray(pc.fill_null(values.drop_null().flatten().cast(pa.float64()), np.nan))
    ends = np.cumsum(lengths[rows])
    if not np.isfinite(numbers).all():
        row = int(rows[np.searchsorted(ends, int(np.argmin(np.isfinite(numbers))), side="right")])
        raise GraphError(f"{people.place(row, name)}: a number in the list is missing or not finite.")
    widths = np.zeros(len(kinds.names), np.int64)
    np.maximum.at(widths, kinds.number[rows], lengths[rows])
    wrong = lengths[rows] != widths[kinds.number[rows]]
    if wrong.any():
        row = int(rows[np.argmax(wrong)])
        longest = widths[kinds.number[row]]
        raise GraphError(f"{people.place(row, name)}: the list has {lengths[row]} numbers, others of its type {longest}.")
    used = widths[widths > 0]
    alike = bool((used == used[0]).all()) if used.size else True
    starts = np.zeros_like(widths) if alike else np.cumsum(widths) - widths
    matrix = np.zeros((len(values), int(widths.max(initial=0) if alike else widths.sum())), np.float32)
    within = np.arange(len(numbers)) - np.repeat(ends - lengths[rows], lengths[rows])
    matrix[np.repeat(rows, lengths[rows]), within + np.repeat(starts[kinds.number[rows]], lengths[rows])] = numbers
    return matrix


def _gaps(people: Table, name: str, present: Mask, kinds: Kinds, config: DataConfig) -> Mask:
    """Nodes without a value whose type has some: refused, unless they may be filled."""
    has = np.bincount(kinds.number[present], minlength=len(kinds.names)) > 0
    if not has.any():
        raise GraphError(f"{people.path}, column {name!r} has no values. Leave it out of data.features.")
    gaps: Mask = has[kinds.number] & ~present
    if gaps.any() and config.missing == "refuse":
        row = int(np.argmax(gaps))
        own = kinds.number == kinds.number[row]
        of = f" of type {kinds.names[kinds.number[row]]!r}" if len(kinds.names) > 1 else ""
        raise GraphError(
            f"{people.path}, column {name!r}: {int((gaps & own).sum()):,} of {int(own.sum()):,} nodes{of} have no value, the "
            f"first in row {row + 1}. Fill them in, or set data.missing: fill (the mean, or no category)."
        )
    return gaps
