"""The values of feature columns: numbers, categories or lists, and which of them are missing."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.datasets.node_columns import whole_or_none
from gatas.errors import GraphError
from gatas.graph.checks import ANY_NUMBER
from gatas.graph.column_types import is_list, is_number_column, is_text, joined
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table

Mask = NDArray[np.bool_]


def column_of(table: Table, name: str) -> Any:
    """Return a column by the file's name for it, or None."""
    ours = {column: table.columns[name] for name, column in table.column_names.items()}
    values = {**table.others, **ours}.get(name)
    return None if values is None else joined(values)


def present_values(values: Any) -> Mask:
    """Return which values are there: NaN and empty text are gaps, too."""
    present = values.is_valid()
    if pa.types.is_floating(values.type):
        present = pc.and_(present, pc.invert(pc.fill_null(pc.is_nan(values), False)))
    elif is_text(values):
        present = pc.and_(present, pc.fill_null(pc.not_equal(values, ""), False))
    return np.asarray(present)


def as_numbers(table: Table, name: str, values: Any, what: str = "feature") -> NDArray[np.float64]:
    """Return values as finite float64 numbers, with NaN for gaps."""
    if not (is_number_column(values) or pa.types.is_null(values.type)):
        text = f", such as {values.drop_null()[0].as_py()!r}" if is_text(values) and len(values.drop_null()) else ""
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}{text}; expected numbers.")
    numbers = np.asarray(pc.fill_null(values.cast(pa.float64()), np.nan))
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise GraphError(f"{table.place(row, name)}: the {what} is {numbers[row]}; expected a finite number.")
    return numbers


def as_categories(table: Table, name: str, values: Any) -> Any:
    """Return values as text, in which 3 and 3.0 are the same; empty text is a gap."""
    if pa.types.is_nested(values.type):
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}; expected text or numbers that are codes.")
    if pa.types.is_floating(values.type) and (numbers := whole_or_none(values)) is not None:
        values = numbers
    texts = values.cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def as_lists(table: Table, name: str, values: Any) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Return the rows that have a list, how long each is, and their numbers one after another."""
    if not is_list(values.type) or not (is_number_column(values.flatten()) or pa.types.is_null(values.type.value_type)):
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}; expected lists of numbers.")
    rows = np.flatnonzero(np.asarray(values.is_valid()))
    lengths: Ints = np.asarray(pc.fill_null(pc.list_value_length(values), 0)).astype(np.int64)[rows]
    numbers = np.asarray(pc.fill_null(values.drop_null().flatten().cast(pa.float64()), np.nan))
    if not np.isfinite(numbers).all():
        place = np.searchsorted(np.cumsum(lengths), int(np.argmin(np.isfinite(numbers))), side="right")
        raise GraphError(f"{table.place(int(rows[place]), name)}: a number in the list is missing or not finite.")
    return rows, lengths, numbers


def refuse_numbers(table: Table, name: str, values: Any) -> None:
    """Refuse text that is mostly numbers: a column of numbers with something wrong in it."""
    numeric = pc.match_substring_regex(values, ANY_NUMBER)
    count = pc.sum(numeric).as_py() or 0
    if 2 * count > len(values) - values.null_count:
        row = pc.index(numeric, False).as_py()
        if row < 0:
            return
        raise GraphError(
            f"{table.place(row, name)}: {values[row].as_py()!r} is not a number, while {count:,} others are. Mend it, or "
            "list the column in data.categorical."
        )
