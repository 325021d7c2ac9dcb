"""`Table`: the columns of one file under our names for them; every complaint names file, row and column."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError
from gatas.graph.checks import ColumnChecks, IdFacts, are_integers, refuse_decimals, refuse_faults
from gatas.graph.column_types import is_number_column, is_text, is_text_file, joined
from gatas.graph.columns import ColumnNames
from gatas.graph.table_files import TableFile


@dataclass(frozen=True)
class Table:
    """The columns of one file under our names for them; `column_names` are the file's."""

    path: Path
    columns: Mapping[str, Any]  # pa.ChunkedArray by our name
    column_names: Mapping[str, str]
    others: Mapping[str, Any]  # columns we have no name for, by the file's; None where they were not read
    num_rows: int
    first_row: int = 0  # of a part of a file, where it begins
    facts: Mapping[str, IdFacts] = field(default_factory=dict)  # of columns of ids that are checked already

    def place(self, row: int, column: str) -> str:
        """Name a place in the file. Rows count from 1 after the header, as people count them."""
        return f"{self.path}, row {self.first_row + row + 1}, column {self.column_names.get(column, column)!r}"


@dataclass(frozen=True)
class TableStream:
    """A file whose columns, under our names, come in record batches of a bounded size."""

    file: TableFile
    column_names: Mapping[str, str]
    others: Sequence[str]  # columns we have no name for

    @property
    def checks(self) -> ColumnChecks:
        """Begin to check the batches."""
        types = self.file.types(list(self.column_names.values()))
        return ColumnChecks(self.file.path, self.column_names, {ours: types[own] for ours, own in self.column_names.items()})

    def __iter__(self) -> Iterator[Any]:
        for batch in self.file.batches(list(self.column_names.values())):
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(self.column_names))


def open_table(path: str | Path, names: ColumnNames, header: bool = True) -> TableStream:
    """Open a file and find our columns in it."""
    file = TableFile(Path(path), list(names.wanted.values()), header)
    found = file.names()
    present = names.find(file.path, found, header)
    return TableStream(file, present, [name for name in found if name not in present.values()])


def read_checked(path: str | Path, names: ColumnNames, header: bool = True) -> Table:
    """Read our columns of a file, with ids, types and weights checked; other columns are only named."""
    stream = open_table(path, names, header)
    checks = stream.checks
    parts = [checks.look(batch) for batch in stream]
    refuse_faults([checks.faults.found])
    columns = {
        name: pa.chunked_array([part[name] for part in parts], None if parts else checks.types[name]) for name in checks.names
    }
    return Table(stream.file.path, columns, stream.column_names, dict.fromkeys(stream.others), checks.rows, facts=checks.facts)


def read_table(path: str | Path, names: ColumnNames, header: bool = True) -> Table:
    """Read all columns of a file: ours as they are, to be checked when they are used; others of the type they seem to have."""
    file = TableFile(Path(path), list(names.wanted.values()), header)
    content = file.content()
    found = list(content.column_names)
    present = names.find(file.path, found, header)
    return Table(
        file.path,
        {ours: content[column] for ours, column in present.items()},
        present,
        {name: content[name] for name in found if name not in present.values()},
        content.num_rows,
    )


def read_columns(path: str | Path) -> dict[str, Any]:
    """Read every column of a file by its name, of the type that it seems to have."""
    content = TableFile(Path(path)).content()
    return {name: joined(content[name]) for name in content.column_names}


def warn_of_unused(table: Table, used: Sequence[str] = ()) -> None:
    """Warn of columns of a file that have no meaning for us and were not `used` otherwise."""
    warn_of_unused_names(table.path, [name for name in table.others if name not in used], stacklevel=4)


def warn_of_unused_names(path: Path, unused: Sequence[str], stacklevel: int = 3) -> None:
    """Warn of columns of a file that were not used."""
    if unused:
        count = "1 column was" if len(unused) == 1 else f"{len(unused)} columns were"
        listed = ", ".join(map(repr, unused))
        warnings.warn(f"{path}: {count} not used: {listed}.", GatasWarning, stacklevel=stacklevel)


def checked_ids(table: Table, column: str) -> tuple[Any, IdFacts]:
    """Return a column of ids as int64 or text, and what was seen of it; anything that could lose information is refused."""
    values = table.columns[column]
    if column in table.facts:
        return values, table.facts[column]
    name = table.column_names.get(column, column)
    checks = ColumnChecks(table.path, {column: name}, {column: values.type}, rows=table.first_row)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [checks.look(pa.RecordBatch.from_arrays([chunk], names=[column]))[column] for chunk in chunks]
    refuse_faults([checks.faults.found])
    facts = checks.facts[column]
    return pa.chunked_array(parts, None if parts else pa.string() if facts.text else pa.int64()), facts


def ids_of(table: Table, column: str) -> Any:
    """Return a column of ids as one Arrow array of int64 or of text, as its file has them."""
    values, facts = checked_ids(table, column)
    refuse_decimals([facts])
    return as_ids(values, not facts.text)


def as_ids(values: Any, integers: bool) -> Any:
    """Return ids as one Arrow array of int64 or of text."""
    return joined(values.cast(pa.int64() if integers else pa.large_string()))


def codes_of(table: Table, column: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Number the values of a column in ascending order, numbers as numbers; return the numbers and the names."""
    values, facts = checked_ids(table, column)
    refuse_decimals([facts])
    values = as_ids(values, are_integers([(column, facts)]))
    names = pc.unique(values)
    names = names.take(pc.sort_indices(names))
    codes = pc.index_in(values, value_set=names).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, tuple(str(name) for name in names.to_pylist())


def numbers_of(table: Table, column: str, values: Any) -> NDArray[Any]:
    """Return a column of numbers without gaps."""
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
    """Parse text as float64; the first value that is none is shown."""
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
