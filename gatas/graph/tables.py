"""Columns of Parquet, CSV and TSV files, read with pyarrow; every complaint names file, row and column."""

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError
from gatas.graph.ids import WHOLE_NUMBER

KINDS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
FORMATS = ".parquet, .csv, .tsv, .csv.gz or .tsv.gz"
ANY_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
DECIMAL = r"[.eE]"


@dataclass(frozen=True)
class Table:
    """The columns of one file under our names for them; `column_names` are the file's."""

    path: Path
    columns: Mapping[str, Any]  # pa.ChunkedArray by our name
    column_names: Mapping[str, str]
    others: Mapping[str, Any]  # columns we have no name for, by the file's
    num_rows: int
    first_row: int = 0  # of a part of a file, where it begins

    def place(self, row: int, column: str) -> str:
        """Rows count from 1 after the header, as people count them."""
        return f"{self.path}, row {self.first_row + row + 1}, column {self.column_names.get(column, column)!r}"


def by_argument(ours: str, column: str) -> str:
    """How a caller, or a person at a command line, names a column."""
    argument, option = ("node_columns", "--node-column") if ours == "id" else ("columns", "--column")
    quoted = "…" if column == "…" else f"'{column}'"
    return f"{argument}={{'{ours}': {quoted}}} ({option} {ours}={column})"


def read_table(
    path: str | Path,
    required: Sequence[str],
    optional: Sequence[str],
    names: Mapping[str, str],
    header: bool,
    naming: Callable[[str, str], str] | None = by_argument,
) -> Table:
    """Read a file; `names` maps our column names to the file's, and `naming` tells people how to give one, if they can."""
    path = Path(path)
    wanted = wanted_columns(required, optional, names)
    content = _read(path, list(wanted.values()), header)
    found = _column_names(path, content)
    present = present_columns(path, found, required, names, wanted, header, naming)
    values = {name: _decoded(content[name]) for name in found}
    return Table(
        path,
        {name: values[column] for name, column in present.items()},
        present,
        {name: values[name] for name in found if name not in present.values()},
        content.num_rows,
    )


def wanted_columns(required: Sequence[str], optional: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
    """The file's name for each of our columns, given or the same."""
    unknown = [name for name in names if name not in (*required, *optional)]
    if unknown:
        raise GraphError(f"there is no column {unknown[0]!r} to name; expected some of {', '.join((*required, *optional))}.")
    wanted = {name: names.get(name, name) for name in (*required, *optional)}
    for name, column in names.items():
        if sum(column == other for other in wanted.values()) > 1:
            raise GraphError(f"the column {column!r} was given for {name!r} and for another. Give each a column of its own.")
    return wanted


def present_columns(
    path: Path,
    found: list[str],
    required: Sequence[str],
    names: Mapping[str, str],
    wanted: Mapping[str, str],
    header: bool,
    naming: Callable[[str, str], str] | None,
) -> dict[str, str]:
    """Those of the wanted columns that a file has; what is required or was named must be there."""
    repeated = [name for name in found if found.count(name) > 1]
    if repeated:
        raise GraphError(f"{path} has {found.count(repeated[0])} columns named {repeated[0]!r}. Rename or remove all but one.")
    for name in (*required, *names):
        if wanted[name] not in found:
            raise GraphError(_missing_column(path, wanted[name], name, found, header, naming))
    return {name: column for name, column in wanted.items() if column in found}


def read_columns(path: str | Path) -> dict[str, Any]:
    """Every column of a file by its name, of the type that it seems to have."""
    path = Path(path)
    content = _read(path, [], header=True)
    return {name: _joined(_decoded(content[name])) for name in _column_names(path, content)}


def warn_of_unused(table: Table, used: Sequence[str] = ()) -> None:
    """Warn of columns of a file that have no meaning for us and were not `used` otherwise."""
    unused = [name for name in table.others if name not in used]
    if unused:
        warnings.warn(
            f"{table.path}: {len(unused)} columns were not used: {', '.join(map(repr, unused))}.", GatasWarning, stacklevel=3
        )


def ids_of(table: Table, column: str) -> Any:
    """A column of ids as an Arrow array of int64 or of text; anything that could lose information is refused."""
    values = table.columns[column]
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise GraphError(f"{table.place(row, column)}: the id is missing. Fill it in, or remove the row.")
    if is_text(values):
        _refuse_blank(table, column, values)
        if is_text_file(table.path):
            refuse_decimals(table, column, values)
        return _joined(values.cast(pa.large_string()))
    if pa.types.is_integer(values.type):
        return _joined(as_int64(table, column, values))
    if len(values) == 0:
        return pa.array([], pa.int64())
    raise GraphError(
        f"{table.place(0, column)}: ids are of type {values.type} (first value {values[0].as_py()!r}); expected integers or "
        "text. Floats, booleans and dates cannot name nodes without loss: cast the column first."
    )


def as_int64(table: Table, column: str, values: Any) -> Any:
    """Integers of any width; those beyond 63 bits are refused."""
    if pa.types.is_uint64(values.type):
        row = pc.index(pc.fill_null(pc.greater(values, pa.scalar(2**63 - 1, pa.uint64())), False), True).as_py()
        if row >= 0:
            raise GraphError(f"{table.place(row, column)}: {values[row].as_py()} does not fit into 63 bits. Write it as text.")
    return values.cast(pa.int64())


def refuse_decimals(table: Table, column: str, values: Any) -> None:
    """In a text file, 1 and 1.0 would be two: columns of numbers that are not all whole are refused."""
    numeric = pc.match_substring_regex(values, ANY_NUMBER)
    if not pc.all(numeric, min_count=1).as_py():
        return
    row = pc.index(pc.match_substring_regex(values, DECIMAL), True).as_py()
    if row >= 0:
        raise GraphError(
            f"{table.place(row, column)}: {values[row].as_py()!r} is not a whole number, while all values are numbers. "
            "Write whole numbers without a decimal point, or text."
        )


def whole_numbers(values: Any) -> Any | None:
    """Text as int64, if every value reads the same after the trip; "007" does not."""
    if not pc.all(pc.match_substring_regex(values, WHOLE_NUMBER), min_count=0).as_py():
        return None
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:  # 19 digits, and too large
        return None


def same_kind(columns: Sequence[Any], described: Sequence[str], from_text: Sequence[bool]) -> list[Any]:
    """Id columns that can be compared: all integers, or all text. Text files hold text until it is all numbers."""
    if all(typed or pa.types.is_integer(column.type) for column, typed in zip(columns, from_text, strict=True)):
        numbers = [column if pa.types.is_integer(column.type) else whole_numbers(column) for column in columns]
        if all(column is not None for column in numbers):
            return numbers
    if len({column.type for column in columns if len(column)}) > 1:
        kinds = ", ".join(f"{what} {'integers' if pa.types.is_integer(c.type) else 'text'}"
                          for what, c in zip(described, columns, strict=True))  # fmt: skip
        raise GraphError(f"ids must be of one kind, but {kinds}. Cast one of the columns.")
    kind = next((column.type for column in columns if len(column)), pa.int64())
    return [column if len(column) else pa.array([], kind) for column in columns]


def numbers_of(table: Table, column: str, values: Any) -> NDArray[Any]:
    """A column of numbers without gaps."""
    if is_text(values) and is_text_file(table.path):
        values = _parsed(table, column, values)
    if pa.types.is_null(values.type) or values.null_count:
        row = pc.index(pc.is_null(values), True).as_py() if len(values) else 0
        raise GraphError(f"{table.place(row, column)}: the value is missing. Fill it in, or remove the row.")
    if not is_number_column(values):
        raise GraphError(f"{table.place(0, column)}: {values[0].as_py()!r} is {values.type}; expected numbers.")
    if pa.types.is_decimal(values.type) or pa.types.is_boolean(values.type):
        values = values.cast(pa.float64())
    return np.asarray(values.to_numpy())


def _parsed(table: Table, column: str, values: Any) -> Any:
    """Text as float64; the first value that is none is shown."""
    text = pc.utf8_trim_whitespace(values)
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid as error:
        row = next(row for row, value in enumerate(text.to_pylist()) if not _is_float(value))
        given = values[row].as_py()
        what = f"{given!r} is not a number" if given.strip() else "the value is missing"
        raise GraphError(f"{table.place(row, column)}: {what}. Fill in a number, or remove the row.") from error


def _is_float(text: str) -> bool:
    try:
        pa.scalar(text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def is_text(values: Any) -> bool:
    """Whether a column holds text."""
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def is_number_column(values: Any) -> bool:
    """Whether a column can serve as a feature."""
    kind = values.type
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean))


def is_list(kind: Any) -> bool:
    """Whether a column of this type holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text_file(path: str | Path) -> bool:
    """Whether the file's types were guessed from text."""
    return not str(path).lower().endswith(".parquet")


def checked_kind(path: Path, header: bool = True) -> str:
    """The ending of a file that is there and not empty."""
    kind = "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]).lower()
    if kind not in KINDS:
        raise GraphError(f"{path} has an ending that is not known; expected {FORMATS}.")
    try:
        if not path.is_file():
            raise GraphError(f"{path} does not exist or is not a file.")
        if path.stat().st_size == 0:
            raise GraphError(f"{path} is empty; expected a table{' with a header line' if header else ''}.")
    except OSError as error:
        raise GraphError(f"{path} could not be read: {error.strerror}.") from error
    return kind


def _read(path: Path, ours: list[str], header: bool) -> Any:
    kind = checked_kind(path, header)
    try:
        return pa.parquet.read_table(path) if kind == ".parquet" else _read_text(path, kind, ours, header)
    except (pa.ArrowException, OSError, EOFError, csv.Error, UnicodeDecodeError) as error:
        if kind == ".parquet":
            raise GraphError(f"{path} could not be read as Parquet: {str(error).splitlines()[0]}") from error
        raise GraphError(_why_not(path, kind, ours, header) or f"{path}: {str(error).splitlines()[0]}") from error


def _read_text(path: Path, kind: str, ours: list[str], header: bool, on_ragged: Any = None) -> Any:
    """Our columns as text, whatever they look like; others as pyarrow guesses."""
    delimiter = "\t" if ".tsv" in kind else ","
    names = None if header else _numbered_columns(path, kind, delimiter, ours)
    with _opened(path, kind) as file:
        return pa.csv.read_csv(
            file,
            pa.csv.ReadOptions(column_names=names, use_threads=on_ragged is None),
            pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_ragged),
            pa.csv.ConvertOptions(column_types={name: pa.string() for name in ours}),
        )


def _opened(path: Path, kind: str) -> Any:
    return pa.input_stream(str(path), compression="gzip" if kind.endswith(".gz") else None)


def _numbered_columns(path: Path, kind: str, delimiter: str, ours: list[str]) -> list[str]:
    """Names for the columns of a file without a header: ours in order, then `column 5` and so on."""
    with _opened(path, kind) as file:
        lines = file.read(1 << 16).decode(errors="replace").splitlines()
    width = len(next(csv.reader([line for line in lines if line], delimiter=delimiter), ()))
    return [*ours[:width], *(f"column {number}" for number in range(len(ours) + 1, width + 1))]


def _why_not(path: Path, kind: str, ours: list[str], header: bool) -> str | None:
    """Look once more at a text file that could not be read, for the line to blame."""
    line = _undecodable_line(path, kind)
    if line is not None:
        return f"{path}, line {line}: not UTF-8 text. Save the file as UTF-8."
    ragged: list[Any] = []

    def noted(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        _read_text(path, kind, ours, header, on_ragged=noted)
    except (pa.ArrowException, OSError, EOFError, csv.Error) as error:
        if not ragged:
            return f"{path} could not be read as {kind.lstrip('.')}: {str(error).splitlines()[0]}"
    row = ragged[0]
    return (
        f"{path}, row {row.number - int(header)}: {row.actual_columns} values, but there are {row.expected_columns} columns "
        f"({row.text[:80]!r}). Complete the row, or quote values that hold a separator or a line break."
    )


def _undecodable_line(path: Path, kind: str) -> int | None:
    try:
        with _opened(path, kind) as file:
            for number, line in enumerate(file.read().split(b"\n"), 1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return number
    except OSError:
        return None
    return None


def _column_names(path: Path, content: Any) -> list[str]:
    try:
        return list(content.column_names)
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}, line 1: the column names are not UTF-8 text. Save the file as UTF-8.") from error


def _missing_column(
    path: Path, column: str, ours: str, found: list[str], header: bool, naming: Callable[[str, str], str] | None
) -> str:
    near = get_close_matches(column, found, n=1) or [name for name in found if name.lower() == column.lower()]
    hint = "Add it, or rename what it is called here" if naming is None else f"Name it with {naming(ours, '…')}"
    if len(found) == 1 and (marks := [mark for mark in ";|\t ," if mark in found[0]]):
        hint = f"The file seems to be separated by {marks[0]!r}; write it with commas, or with tabs as .tsv"
    elif near:
        hint = f"Did you mean {near[0]!r}? Then " + (f"pass {naming(ours, near[0])}" if naming else "rename it")
    elif header and is_text_file(path) and ours != "id" and naming is by_argument:
        hint += ", or pass header=False (--no-header) if the first line is data"
    return f"{path} has no column {column!r}; its columns are {', '.join(map(repr, found))}. {hint}."


def _refuse_blank(table: Table, column: str, values: Any) -> None:
    blank = pc.or_(pc.equal(values, ""), pc.not_equal(values, pc.utf8_trim_whitespace(values)))
    row = pc.index(blank, True).as_py()
    if row >= 0:
        raise GraphError(
            f"{table.place(row, column)}: the id is {values[row].as_py()!r}, which is empty or has spaces around it. "
            "Remove them: 'a' and ' a' would be two nodes."
        )


def _decoded(values: Any) -> Any:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _joined(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
