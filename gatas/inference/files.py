"""Results as files, a batch at a time: Parquet, CSV, JSON or .npy, all of it or nothing."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from gatas.errors import StoreError
from gatas.graph.storage import remove_leftovers, temporary_beside
from gatas.graph.sums import file_sum

Progress = Callable[[float], None]
"""Told the share done so far, from 0 to 1."""

TABLES = (".parquet", ".csv", ".json")
ROW_GROUP = 8192


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Before the work, not after it."""
    if path.suffix.lower() not in suffixes:
        raise StoreError(f"{path} has an ending that is not known; expected {', '.join(suffixes[:-1])} or {suffixes[-1]}.")
    if path.is_dir():
        raise StoreError(f"{path} is a folder; expected a file to write.")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"{path.parent} is not a folder, so {path.name} cannot be written there. Make it first.")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file under a temporary name, which gets its own when all of it is on the disk."""
    temporary = temporary_beside(path)
    sums, new_sums = sums_beside(path), temporary.with_name(f"{temporary.name}.sha256")
    try:
        remove_leftovers(path)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new_sums.write_bytes(_sum_line(temporary, path))
        _sync(new_sums)
        sums.unlink(missing_ok=True)  # never that of another file
        temporary.replace(path)
        new_sums.replace(sums)
        _sync(path.absolute().parent)
    except OSError as error:
        raise StoreError(f"{path} could not be written: {error.strerror or error}. Nothing was changed there.") from error
    finally:
        for left in (temporary, new_sums):
            with suppress(OSError):
                left.unlink()


def sums_beside(path: Path) -> Path:
    """Where a file's sha256 is kept, in the form of `sha256sum`: hidden, as readers of folders take what they see."""
    return path.with_name(f".{path.name}.sha256")


def verify_file(path: Path) -> None:
    """Read every byte of a file of results."""
    sums = sums_beside(path)
    if not sums.exists():
        raise StoreError(f"{path} has no {sums.name} beside it, so nothing tells what was written. Write it again.")
    if sums.read_bytes() != _sum_line(path, path):
        raise StoreError(f"{path} or {sums.name} beside it is damaged: the sha256 is another. Write it again.")


def _sum_line(content: Path, path: Path) -> bytes:
    return f"{file_sum(content)}  {path.name}\n".encode()


def write_tables(path: Path, schema: Any, tables: Iterable[Any]) -> None:
    """Tables of one schema, one after another, in the format that the file's ending names."""
    write = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}[path.suffix.lower()]
    with whole_file(path) as file:
        write(file, schema, tables)


def write_matrix(path: Path, shape: tuple[int, int], parts: Iterable[Any]) -> None:
    """Rows of float32 as an .npy file."""
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype("<f4")), "fortran_order": False, "shape": shape}
    with whole_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, "<f4").tobytes())


def counted(tables: Iterable[Any], total: int, progress: Progress) -> Iterator[Any]:
    """The same, while `progress` hears how many of all rows have passed."""
    done = 0
    for table in tables:
        yield table
        done += len(table)
        progress(done / max(total, 1))


def _write_parquet(file: BinaryIO, schema: Any, tables: Iterable[Any]) -> None:
    """Row groups of some thousands, however small the tables are: readers are slow with many."""
    repeating = [field.name for field in schema if not pa.types.is_fixed_size_list(field.type)]
    with pq.ParquetWriter(file, schema, use_dictionary=repeating) as writer:
        waiting: list[Any] = []
        for table in tables:
            waiting.append(table)
            if sum(map(len, waiting)) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


def _write_csv(file: BinaryIO, schema: Any, tables: Iterable[Any]) -> None:
    flat = pa.schema([pa.field(field.name, _flat(field.type)) for field in schema])
    with pyarrow.csv.CSVWriter(file, flat) as writer:
        for table in tables:
            writer.write_table(pa.table([_flattened(column) for column in table.columns], schema=flat))


def _write_json(file: BinaryIO, schema: Any, tables: Iterable[Any]) -> None:
    """A list of objects, one on each line."""
    separator = "[\n"
    for table in tables:
        for row in table.to_pylist():
            file.write(f"{separator}{json.dumps(row, ensure_ascii=False)}".encode())
            separator = ",\n"
    file.write(b"[]\n" if separator == "[\n" else b"\n]\n")


def _flat(kind: Any) -> Any:
    return pa.string() if pa.types.is_nested(kind) else kind


def _flattened(column: Any) -> Any:
    """CSV has no lists: names are joined by semicolons."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.array([";".join(map(str, row)) for row in column.to_pylist()], pa.string())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
