"""The columns of a node table: labels, splits and features."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.datasets.targets import SPLITS, UNLABELLED
from gatas.errors import GraphError
from gatas.graph.checks import Faults, IdFacts, refuse_decimals, refuse_faults
from gatas.graph.column_types import is_list, is_number_column, is_text, is_text_file
from gatas.graph.inputs import as_features
from gatas.graph.tables import Table, numbers_of, warn_of_unused

SPLIT_NAMES: dict[str, str | None] = {
    **{name: name for name in SPLITS},
    "training": "train",
    **dict.fromkeys(("val", "validation", "dev", "eval"), "valid"),
    **dict.fromkeys(("testing", "holdout"), "test"),
    "": None,
}
"""What columns of splits call ours."""

FOR_NUMBERS = "set data.task: node regression, where numbers are to be predicted."


def labels_of(table: Table) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Return labels and names of classes; missing, empty and -1 mean unlabelled. A list column makes them multi-label."""
    values = table.columns.get("label")
    if values is None:
        return None, ()
    if is_list(values.type):
        return _label_sets(table, values)
    if pa.types.is_null(values.type):
        values = values.cast(pa.string())
    if is_text(values):
        values = _text_labels(table, values)
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.string())
    elif pa.types.is_integer(values.type):
        values = _integer_labels(table, values)
    elif pa.types.is_floating(values.type) and (numbers := whole_or_none(values)) is not None:
        values = numbers
    else:
        hint = f"Cast the column, or {FOR_NUMBERS}" if is_number_column(values) else "Cast the column first."
        raise GraphError(
            f"{table.place(0, 'label')}: labels are {values.type} (first value {values[0].as_py()!r}); expected integers or "
            f"text. {hint}"
        )
    if pa.types.is_integer(values.type):
        values = _class_numbers(table, values)
    names = pc.unique(values).drop_null()
    names = names.take(pc.sort_indices(names))
    codes = pc.fill_null(pc.index_in(values, value_set=names), UNLABELLED)
    return codes.to_numpy().astype(np.int64), tuple(str(name) for name in names.to_pylist())


def _text_labels(table: Table, values: Any) -> Any:
    values = pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)
    if not is_text_file(table.path) or values.null_count == len(values):
        return values
    facts = IdFacts("label", "label", text=True, from_text=True, rows=len(values))
    facts.look_for_numbers(values, lambda row: table.place(row, "label"))
    refuse_decimals([facts], f"Write whole numbers without a decimal point, or text; or {FOR_NUMBERS}")
    return values.cast(pa.int64()) if facts.whole else values


def _integer_labels(table: Table, values: Any) -> Any:
    """Return integers of any width as int64; those beyond 63 bits are refused."""
    faults = Faults()
    if pa.types.is_uint64(values.type):
        large = pc.fill_null(pc.greater(values, pa.scalar(2**63 - 1, pa.uint64())), False)
        faults.add("large", large, "{} does not fit into 63 bits", lambda row: table.place(row, "label"), values)
    refuse_faults([faults.found])
    return values.cast(pa.int64())


def whole_or_none(values: Any) -> Any | None:
    """Return floats as int64 if all are whole, as pandas writes integers with gaps; NaN is a gap too."""
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return None


def _class_numbers(table: Table, values: Any) -> Any:
    negative = pc.fill_null(pc.less(values, UNLABELLED), False)
    if pc.any(negative, min_count=0).as_py():
        row = pc.index(negative, True).as_py()
        raise GraphError(f"{table.place(row, 'label')}: label is {values[row].as_py()}; expected 0 and up, "
                         f"or -1 (or nothing) for a node without a label. Or {FOR_NUMBERS}")  # fmt: skip
    return pc.if_else(pc.equal(values, UNLABELLED), pa.scalar(None, pa.int64()), values)


def _label_sets(table: Table, values: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Read lists of names, or lists of zeros and ones of one length."""
    kind, rows = values.type.value_type, values.to_pylist()
    for number, row in enumerate(rows):
        if row is None or None in row:
            what = "the list is missing; write []" if row is None else "a label in the list is missing"
            raise GraphError(f"{table.place(number, 'label')}: {what}.")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        for number, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise GraphError(f"{table.place(number, 'label')}: the list has {len(row)} labels, the first one "
                                 f"{len(rows[0])}; expected a 0 or 1 for each class, or names.")  # fmt: skip
            if any(label not in (0, 1) for label in row):
                raise GraphError(f"{table.place(number, 'label')}: {row} holds other numbers than 0 and 1; write names.")
        return np.array(rows, np.uint8).reshape(len(rows), -1), ()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise GraphError(f"{table.place(0, 'label')}: labels are lists of {kind}; expected names, or zeros and ones.")
    names = sorted({label for row in rows for label in row})
    column = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)), np.uint8)
    for number, row in enumerate(rows):
        matrix[number, [column[label] for label in row]] = 1
    return matrix, tuple(names)


def splits_of(table: Table) -> dict[str, NDArray[Any]]:
    """Return the rows of each split, by a column of their names."""
    values = table.columns.get("split")
    if values is None:
        return {}
    if not (is_text(values) or pa.types.is_null(values.type)):
        raise GraphError(f"{table.place(0, 'split')}: splits are {values.type}; expected train, valid, test or nothing.")
    codes = values.cast(pa.string()).fill_null("").dictionary_encode().combine_chunks()
    names = [value.strip().lower() for value in codes.dictionary.to_pylist()]
    if wrong := [code for code, value in enumerate(names) if value not in SPLIT_NAMES]:
        row = pc.index(codes.indices, wrong[0]).as_py()
        raise GraphError(
            f"{table.place(row, 'split')}: {names[wrong[0]]!r} is not a split; expected train, valid, test or nothing."
        )
    number = np.asarray(codes.indices)
    meant = np.array([SPLIT_NAMES[name] or "" for name in names])
    found = {name: np.flatnonzero(np.isin(number, np.flatnonzero(meant == name))) for name in SPLITS}
    return {name: rows for name, rows in found.items() if rows.size}


def features_of(table: Table, path: str | Path | None) -> NDArray[np.float32] | None:
    """Read features from one list column, from numeric columns, or from an .npy file; never from two of them."""
    lists = [name for name, values in table.others.items() if pa.types.is_nested(values.type)]
    numeric = [name for name, values in table.others.items() if is_number_column(values)]
    beside = Path(path) if path is not None else _without_gz(table.path).with_suffix(".npy")
    if (lists or numeric) and (path is not None or beside.is_file()):
        raise GraphError(f"features come from {beside} and from {', '.join(map(repr, (*lists, *numeric)))} of {table.path}. "
                         "Keep one: rename the file, or remove the columns.")  # fmt: skip
    if (lists and numeric) or len(lists) > 1:
        raise GraphError(f"{table.path} has features in {', '.join(map(repr, (*lists, *numeric)))}; "
                         "expected numeric columns or one list column, not both.")  # fmt: skip
    warn_of_unused(table, used=(*lists, *numeric))
    if lists:
        return _finite(table, lists, _list_matrix(table, lists[0]))
    if numeric:
        columns = [numbers_of(table, name, table.others[name]).astype(np.float64) for name in numeric]
        return _finite(table, numeric, np.stack(columns, axis=1))
    if path is not None or beside.is_file():
        return as_features(_load_matrix(beside, table), table.num_rows, lambda row: f"{beside}, row {row + 1}")
    return None


def _finite(table: Table, names: Sequence[str], matrix: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        features = matrix.astype(np.float32)
    wrong = ~np.isfinite(features)
    if wrong.any():
        row, column = (int(at[0]) for at in np.nonzero(wrong))
        name = names[min(column, len(names) - 1)]  # a list column holds them all
        raise GraphError(f"{table.place(row, name)}: the feature is {matrix[row, column]}; expected a finite float32. "
                         "Fill or drop missing values first.")  # fmt: skip
    return features


def _list_matrix(table: Table, name: str) -> NDArray[Any]:
    values = table.others[name].combine_chunks()
    if not (is_list(values.type) and _is_number(values.type.value_type)):
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}; expected lists of numbers.")
    if values.null_count:
        row = values.is_null().index(True).as_py()
        raise GraphError(f"{table.place(row, name)}: the list is missing. Give every node its features.")
    lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    wrong = lengths != (lengths[0] if len(lengths) else 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise GraphError(f"{table.place(row, name)}: the list has {lengths[row]} numbers, the first one {lengths[0]}.")
    flat = values.flatten()
    if flat.null_count:
        row = flat.is_null().index(True).as_py() // int(lengths[0])
        raise GraphError(f"{table.place(row, name)}: a number in the list is missing.")
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(values), -1)


def _without_gz(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _load_matrix(path: Path, table: Table) -> NDArray[Any]:
    try:
        matrix = np.lib.format.open_memmap(path, mode="r") if path.stat().st_size else None
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise GraphError(f"{path} could not be read as an .npy matrix: {str(error).splitlines()[0]}") from error
    if matrix is None or matrix.ndim != 2 or len(matrix) != table.num_rows:
        shape = "nothing" if matrix is None else f"shape {matrix.shape}"
        raise GraphError(f"{path} has {shape}; expected one row for each of the {table.num_rows} rows of {table.path}.")
    return np.asarray(matrix)
