"""Tables in files (Parquet, CSV, TSV, also .gz), read with pyarrow in record batches or at once.

Whatever cannot be read is refused with the file and, in text, the line to blame.
"""

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from gatas.errors import GraphError
from gatas.graph.column_types import decoded, plain_type

KINDS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
FORMATS = ".parquet, .csv, .tsv, .csv.gz or .tsv.gz"
BATCH_ROWS = 1 << 16
BLOCK_BYTES = 4 << 20
UNREADABLE = (pa.ArrowException, OSError, EOFError, csv.Error, UnicodeDecodeError)


def listed_files(paths: Sequence[Path]) -> list[Path]:
    """Return files as they are, and for folders the tables below them, in the order of their names."""
    found: list[Path] = []
    for path in paths:
        inside = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name.lower().endswith(KINDS)]
        if path.is_dir() and not inside:
            raise GraphError(f"{path} holds no table; expected files that end in {', '.join(KINDS)}.")
        found += inside if path.is_dir() else [path]
    for path in found:
        checked_kind(path)
    return found


def checked_kind(path: Path, header: bool = True) -> str:
    """Return the ending of a file that is there and not empty."""
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


class TableFile:
    """A file with a table. Columns of text files that are `ours` are read as text; the types of others are guessed."""

    def __init__(self, path: Path, ours: Sequence[str] = (), header: bool = True) -> None:
        self.path, self.header = path, header
        self.kind = checked_kind(path, header)
        self.in_text = self.kind != ".parquet"
        self.delimiter = "\t" if ".tsv" in self.kind else ","
        self.ours = list(ours)
        self._given_names = None if header or not self.in_text else self._numbered_columns()

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(self._schema().names)

    def types(self, columns: Sequence[str]) -> dict[str, Any]:
        """Return the types that batches of these columns have."""
        if self.in_text:
            return dict.fromkeys(columns, pa.string())
        schema = self._schema()
        return {name: plain_type(schema.field(name).type) for name in columns}

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns, in batches of a bounded size: those of text files as text."""
        try:
            for batch in self._batches(list(columns)):
                yield pa.RecordBatch.from_arrays([decoded(batch.column(name)) for name in columns], names=list(columns))
        except UNREADABLE as error:
            self._refuse(error)

    def content(self) -> Any:
        """Read all columns at once, as an Arrow table."""
        try:
            content = self._read_text() if self.in_text else pq.read_table(self.path)
            return pa.table([decoded(content.column(k)) for k in range(content.num_columns)], names=content.column_names)
        except UNREADABLE as error:
            self._refuse(error)

    def _schema(self) -> Any:
        """Read the names and types of columns, from a text file's first lines."""
        try:
            if not self.in_text:
                return pq.read_schema(self.path)
            with self._reader(pa.csv.ConvertOptions()) as reader:
                schema = reader.schema
            schema.names  # noqa: B018  # decodes them
            return schema
        except UNREADABLE as error:
            self._refuse(error)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        if not self.in_text:
            file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BLOCK_BYTES)
            return iter(file.iter_batches(BATCH_ROWS, columns=columns))
        as_text = {name: pa.string() for name in columns}
        return chain(self._reader(pa.csv.ConvertOptions(include_columns=columns, column_types=as_text)))

    def _reader(self, convert: Any) -> Any:
        read = pa.csv.ReadOptions(column_names=self._given_names, block_size=BLOCK_BYTES)
        return pa.csv.open_csv(self._opened(), read, self._parse(), convert)

    def _read_text(self, on_ragged: Any = None) -> Any:
        """Read our columns as text, whatever they look like; others as pyarrow guesses from all their values."""
        read = pa.csv.ReadOptions(column_names=self._given_names, use_threads=on_ragged is None)
        convert = pa.csv.ConvertOptions(column_types={name: pa.string() for name in self.ours})
        with self._opened() as file:
            return pa.csv.read_csv(file, read, self._parse(on_ragged), convert)

    def _parse(self, on_ragged: Any = None) -> Any:
        return pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=on_ragged)

    def _opened(self) -> Any:
        return pa.input_stream(str(self.path), compression="gzip" if self.kind.endswith(".gz") else None)

    def _numbered_columns(self) -> list[str]:
        """Name the columns of a file without a header: ours in order, then `column 5` and so on."""
        try:
            with self._opened() as file:
                lines = file.read(1 << 16).decode(errors="replace").splitlines()
            width = len(next(csv.reader([line for line in lines if line], delimiter=self.delimiter), ()))
        except UNREADABLE as error:
            self._refuse(error)
        return [*self.ours[:width], *(f"column {number}" for number in range(len(self.ours) + 1, width + 1))]

    def _refuse(self, error: Exception) -> Any:
        """Say why the file could not be read; a text file is looked at once more, for the line to blame."""
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if not self.in_text:
            raise GraphError(f"{self.path} could not be read as Parquet: {reason}") from error
        if (line := self._undecodable_line()) is not None:
            what = "the column names are not UTF-8 text" if line == 1 and self.header else "not UTF-8 text"
            raise GraphError(f"{self.path}, line {line}: {what}. Save the file as UTF-8.") from error
        if (ragged := self._ragged_row()) is not None:
            raise GraphError(
                f"{self.path}, row {ragged.number - int(self.header)}: {ragged.actual_columns} values, but there are "
                f"{ragged.expected_columns} columns ({ragged.text[:80]!r}). Complete the row, or quote values that hold a "
                "separator or a line break."
            ) from error
        raise GraphError(f"{self.path} could not be read as {self.kind.lstrip('.')}: {reason}") from error

    def _ragged_row(self) -> Any:
        """Find the first row that has too few or too many values, in bounded memory."""
        found: list[Any] = []

        def noted(row: Any) -> str:
            found.append(row)
            return "error"

        read = pa.csv.ReadOptions(column_names=self._given_names, use_threads=False)
        try:
            for _ in pa.csv.open_csv(self._opened(), read, self._parse(noted)):
                pass
        except UNREADABLE:
            return found[0] if found else None
        return None

    def _undecodable_line(self) -> int | None:
        """Find the first line that is not UTF-8 text, in bounded memory."""
        try:
            with self._opened() as file:
                rest, line = b"", 1
                while block := file.read(BLOCK_BYTES):
                    *lines, rest = (rest + block).split(b"\n")
                    for one in lines:
                        if not _is_utf8(one):
                            return line
                        line += 1
                return None if _is_utf8(rest) else line
        except OSError:
            return None


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
