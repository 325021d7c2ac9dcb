"""Columns of Parquet, CSV and TSV files, read with pyarrow; every complaint names file, row and column."""

from collections.abc import Mapping, Sequence
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

from gatas.errors import GraphError

FORMATS = ".parquet, .csv, .tsv, .csv.gz or .tsv.gz"
WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"  # text that reads the same after a trip through int64: not "007", not "+1"


@dataclass(frozen=True)
class Table:
    """The columns of one file under our names for them; `column_names` are the file's."""

    path: Path
    columns: Mapping[str, Any]  # pa.ChunkedArray by our name
    column_names: Mapping[str, str]
    others: Mapping[str, Any]  # columns we have no name for, by the file's
    num_rows: int

    def place(self, row: int, column: str) -> str:
        """Rows count from 1 after the header, as people count them."""
        return f"{self.path}, row {row + 1}, column {self.column_names.get(column, column)!r}"


def read_table(
    path: str | Path, required: Sequence[str], optional: Sequence[str], names: Mapping[str, str], header: bool
) -> Table:
    """Read a file; `names` maps our column names to the file's."""
    path = Path(path)
    unknown = [name for name in names if name not in (*required, *optional)]
    if unknown:
        raise GraphError(f"there is no column {unknown[0]!r} to name; expected some of {', '.join((*required, *optional))}.")
    wanted = {name: names.get(name, name) for name in (*required, *optional)}
    content = _read(path, list(wanted.values()), header)
    found = content.column_names
    repeated = [name for name in found if found.count(name) > 1]
    if repeated:
        raise GraphError(f"{path} has {found.count(repeated[0])} columns named {repeated[0]!r}. Rename or remove all but one.")
    for name in (*required, *names):
        if wanted[name] not in found:
            raise GraphError(_missing_column(path, wanted[name], name, found, header))
    present = {name: column for name, column in wanted.items() if column in found}
    return Table(
        path,
        {name: content[column] for name, column in present.items()},
        present,
        {name: content[name] for name in found if name not in present.values()},
        content.num_rows,
    )


def ids_of(table: Table, column: str) -> Any:
    """A column of ids as an Arrow array of int64 or of text; anything that could lose information is refused."""
    values = table.columns[column]
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise GraphError(f"{table.place(row, column)}: the id is missing. Fill it in, or remove the row.")
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        _refuse_blank(table, column, values)
        return _joined(values.cast(pa.large_string()))
    if pa.types.is_integer(values.type):
        try:
            return _joined(values.cast(pa.int64()))
        except pa.ArrowInvalid as error:
            raise GraphError(f"{table.path}, column {column!r}: an id does not fit into 63 bits ({error}).") from error
    first = values[0].as_py() if len(values) else None
    raise GraphError(
        f"{table.place(0, column)}: ids are of type {values.type} (first value {first!r}); expected integers or text. "
        "Floats and booleans cannot name nodes without loss: cast the column first."
    )


def same_kind(columns: Sequence[Any], described: Sequence[str], *, from_text: bool) -> list[Any]:
    """Id columns that can be compared: all integers, or all text. In a CSV file everything is text until it is all numbers."""
    if from_text and all(_all_whole_numbers(column) for column in columns):
        return [column.cast(pa.int64()) for column in columns]
    if len({column.type for column in columns}) > 1:
        kinds = ", ".join(f"{what} {'integers' if pa.types.is_integer(c.type) else 'text'}"
                          for what, c in zip(described, columns, strict=True))  # fmt: skip
        raise GraphError(f"ids must be of one kind, but {kinds}. Cast one of the columns.")
    return list(columns)


def numbers_of(table: Table, column: str, values: Any) -> NDArray[Any]:
    """A column of numbers without gaps."""
    if pa.types.is_null(values.type) or values.null_count:
        row = pc.index(pc.is_null(values), True).as_py() if len(values) else 0
        raise GraphError(f"{table.place(row, column)}: the value is missing. Fill it in, or remove the row.")
    if not _is_number(values.type):
        raise GraphError(f"{table.place(0, column)}: {values[0].as_py()!r} is {values.type}; expected numbers.")
    return np.asarray(values.to_numpy())


def is_number_column(values: Any) -> bool:
    """Whether a column can serve as a feature."""
    return _is_number(values.type) or pa.types.is_boolean(values.type)


def is_text_file(path: str | Path) -> bool:
    """Whether the file's types were guessed from text."""
    return not str(path).endswith(".parquet")


def _read(path: Path, text_columns: list[str], header: bool) -> Any:
    kind = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()
    if kind not in (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz"):
        raise GraphError(f"{path} has an ending that is not known; expected {FORMATS}.")
    if not path.is_file():
        raise GraphError(f"{path} does not exist or is not a file.")
    if path.stat().st_size == 0:
        raise GraphError(f"{path} is empty; expected a table with a header line.")
    try:
        if kind == ".parquet":
            return pa.parquet.read_table(path)
        options = pa.csv.ConvertOptions(column_types={name: pa.string() for name in text_columns if name != "weight"})
        names = None if header else text_columns
        read = pa.csv.ReadOptions(column_names=_as_many(path, kind, names) if names else None)
        return pa.csv.read_csv(path, read, pa.csv.ParseOptions(delimiter="\t" if ".tsv" in kind else ","), options)
    except (pa.ArrowException, OSError, EOFError) as error:
        line = _undecodable_line(path, kind)
        if line is not None:
            raise GraphError(f"{path}, line {line}: not UTF-8 text. Save the file as UTF-8.") from error
        raise GraphError(f"{path} could not be read as {kind.lstrip('.')}: {str(error).splitlines()[0]}") from error


def _as_many(path: Path, kind: str, names: list[str]) -> list[str]:
    """The first names, as many as the first line has columns."""
    delimiter = "\t" if ".tsv" in kind else ","
    with pa.input_stream(str(path), compression="detect") as file:
        first = file.read(1 << 16).split(b"\n", 1)[0]
    return names[: first.count(delimiter.encode()) + 1]


def _missing_column(path: Path, column: str, ours: str, found: list[str], header: bool) -> str:
    near = get_close_matches(column, found, n=1) or [name for name in found if name.lower() == column.lower()]
    hint = f" Did you mean {near[0]!r}? Then pass columns={{'{ours}': '{near[0]}'}}." if near else (
        f" Pass columns={{'{ours}': 'its name in the file'}}"
        + (", or header=False if the first line is data." if header and is_text_file(path) else ".")
    )  # fmt: skip
    return f"{path} has no column {column!r}; its columns are {', '.join(map(repr, found))}.{hint}"


def _refuse_blank(table: Table, column: str, values: Any) -> None:
    blank = pc.or_(pc.equal(values, ""), pc.not_equal(values, pc.utf8_trim_whitespace(values)))
    row = pc.index(blank, True).as_py()
    if row >= 0:
        raise GraphError(
            f"{table.place(row, column)}: the id is {values[row].as_py()!r}, which is empty or has spaces around it. "
            "Remove them: 'a' and ' a' would be two nodes."
        )


def _all_whole_numbers(column: Any) -> bool:
    if pa.types.is_integer(column.type):
        return True
    return bool(pc.all(pc.match_substring_regex(column, WHOLE_NUMBER), min_count=0).as_py())


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _joined(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _undecodable_line(path: Path, kind: str) -> int | None:
    if kind == ".parquet":
        return None
    try:
        with pa.input_stream(str(path), compression="detect") as file:
            for number, line in enumerate(file.read().split(b"\n"), 1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return number
    except OSError:
        return None
    return None
