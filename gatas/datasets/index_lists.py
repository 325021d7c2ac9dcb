"""`IndexLists`: a column of lists of indices as a sparse matrix, which is never made dense in whole."""

import warnings
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from gatas.datasets.column_values import Mask, column_of
from gatas.errors import GatasWarning, GraphError
from gatas.graph.column_types import is_list, is_number_column
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table


def is_ragged(lengths: Ints, types: Ints) -> bool:
    """Whether lists of one node type differ in length."""
    if not lengths.size:
        return False
    longest, shortest = np.zeros(types.max() + 1, np.int64), np.full(types.max() + 1, np.iinfo(np.int64).max)
    np.maximum.at(longest, types, lengths)
    np.minimum.at(shortest, types, lengths)
    return bool((longest[types] != shortest[types]).any())


def list_lengths(values: Any) -> Ints:
    """Return how long each list is; 0 where there is none."""
    return np.asarray(pc.fill_null(pc.list_value_length(values), 0)).astype(np.int64)


def as_indices(table: Table, name: str, values: Any) -> tuple[Ints, Ints]:
    """Return how many indices each row has, and all of them one after another."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64), np.empty(0, np.int64)
    values = _with_whole_numbers(values)
    kind = values.type.value_type if is_list(values.type) else None
    if kind is None or not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}; expected lists of whole numbers, the indices.")
    lengths, flat = list_lengths(values), values.flatten()
    wrong = np.asarray(pc.fill_null(pc.less(flat, 0), True)) if not pa.types.is_null(kind) else np.ones(len(flat), np.bool_)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise GraphError(
            f"{table.place(_row_of(lengths, at), name)}: an index is {flat[at].as_py()}; expected whole numbers from 0 on."
        )
    return lengths, np.asarray(flat) if len(flat) else np.empty(0, np.int64)


def _with_whole_numbers(values: Any) -> Any:
    """Return lists of decimals as lists of integers where all are whole: JSON makes no difference."""
    if not is_list(values.type) or not pa.types.is_floating(values.type.value_type):
        return values
    try:
        return values.cast(pa.large_list(pa.int64()))
    except pa.ArrowInvalid:
        return values


def _row_of(lengths: Ints, entry: int) -> int:
    return int(np.searchsorted(np.cumsum(lengths), entry, side="right"))


def encode_indices(table: Table, column: Any, values: Any, missing: Literal["refuse", "fill"]) -> sparse.csr_array:
    """Return the (n, width) matrix that has 1, or the values of another column, at each row's indices."""
    lengths, indices = as_indices(table, column.name, values)
    numbers = _numbers(table, column.name, column.values, lengths)
    unknown = indices >= column.width
    if unknown.any():
        _refuse_unknown(table, column, lengths, indices, unknown, missing)
        lengths = lengths - np.bincount(np.repeat(np.arange(len(lengths)), lengths)[unknown], minlength=len(lengths))
        indices, numbers = indices[~unknown], numbers[~unknown]
    kind = np.int32 if max(len(indices), column.width) < 2**31 else np.int64
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
    parts: Any = (numbers, indices.astype(kind, copy=False), indptr)
    matrix = sparse.csr_array(parts, shape=(len(lengths), column.width))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _numbers(table: Table, name: str, beside: str | None, lengths: Ints) -> NDArray[np.float32]:
    """Return the value at each index, one after another: 1 where a row, or the whole table, has no list of values."""
    values = None if beside is None else column_of(table, beside)
    numbers = np.ones(int(lengths.sum()), np.float32)
    if beside is None or values is None:
        return numbers
    if not is_list(values.type) or not (is_number_column(values.flatten()) or pa.types.is_null(values.type.value_type)):
        raise GraphError(f"{table.path}, column {beside!r} holds {values.type}; expected lists of numbers.")
    given = np.asarray(values.is_valid())
    wrong: Mask = given & (list_lengths(values) != lengths)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise GraphError(
            f"{table.place(row, beside)}: {list_lengths(values)[row]} values, but {name!r} has {lengths[row]} indices there."
        )
    with np.errstate(over="ignore"):
        flat = np.asarray(pc.fill_null(values.flatten().cast(pa.float32(), safe=False), np.nan))
        numbers[np.repeat(given, lengths)] = flat
    if not np.isfinite(numbers).all():
        row = _row_of(lengths, int(np.argmin(np.isfinite(numbers))))
        raise GraphError(f"{table.place(row, beside)}: a number in the list is missing or not a finite float32.")
    return numbers


def _refuse_unknown(table: Table, column: Any, lengths: Ints, indices: Ints, unknown: Mask, missing: str) -> None:
    """Refuse indices beyond those of training; where gaps may be filled they are left out."""
    row = _row_of(lengths, int(np.argmax(unknown)))
    came = f"index {indices[np.argmax(unknown)]}"
    if missing == "refuse":
        raise GraphError(
            f"{table.place(row, column.name)}: {came}, but training had only 0 to {column.width - 1}. Leave it out, or train "
            "with data.missing: fill, which does."
        )
    warnings.warn(
        f"{table.path}, column {column.name!r}: {int(unknown.sum()):,} indices that training did not have, such as {came}, "
        "were left out.",
        GatasWarning,
        stacklevel=5,
    )
