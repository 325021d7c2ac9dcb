"""Results as files, a batch at a time: Parquet, CSV, JSON or .npy, all of it or nothing."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from gatas.errors import StoreError
from gatas.files import atomic_file_with_checksum, reason
from gatas.progress import ProgressCallback

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
def results_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file of results to fill, which appears with its checksum when all of it is on the disk."""
    try:
        with atomic_file_with_checksum(path) as file:
            yield file
    except OSError as error:
        raise StoreError(f"{path} could not be written: {reason(error)}. Nothing was changed there.") from error


def write_tables(path: Path, schema: Any, tables: Iterable[Any]) -> None:
    """Tables of one schema, one after another, in the format that the file's ending names."""
    write = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}[path.suffix.lower()]
    with results_file(path) as file:
        write(file, schema, tables)


def write_matrix(path: Path, shape: tuple[int, int], parts: Iterable[Any]) -> None:
    """Rows of float32 as an .npy file."""
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype("<f4")), "fortran_order": False, "shape": shape}
    with results_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, "<f4").tobytes())


def counted(tables: Iterable[Any], total: int, progress: ProgressCallback) -> Iterator[Any]:
    """Pass tables on, and tell `progress` the share of `total` rows that has passed."""
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
