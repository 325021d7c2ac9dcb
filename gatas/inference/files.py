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
from numpy.typing import NDArray

from gatas.errors import StoreError
from gatas.files import atomic_file_with_checksum, reason
from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.inference.ids import ids_of, indices_of
from gatas.inference.trained import TrainedModel
from gatas.progress import ProgressCallback

TABLES = (".parquet", ".csv", ".json")
EMBEDDINGS = (".parquet", ".npy")
FINGERPRINT = "gatas.model"
"""Key of a Parquet file's schema under which the model's fingerprint is kept."""
ROW_GROUP = 8192


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse a file that cannot be written, before the work rather than after it."""
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


def write_embeddings(trained: TrainedModel, path: Path, ids: Any, batch_size: int | None, progress: ProgressCallback) -> int:
    """Write the representations of all nodes, or of some, as they are made; return their number.

    A Parquet file has the columns `id`, `embedding` and `model`, the fingerprint. An .npy file has the rows alone, in the
    order of `ids` or of all nodes, which the run folder's ids.parquet lists.
    """
    check_suffix(path, EMBEDDINGS)
    nodes = np.arange(trained.graph.num_nodes) if ids is None else indices_of(trained.graph, ids)
    rows = ((batch, trained.embed_indices(batch, batch_size)) for batch in trained.batches(nodes, batch_size))
    if path.suffix.lower() == ".npy":
        shape = (len(nodes), trained.embedding_size)
        write_matrix(path, shape, counted((own for _, own in rows), len(nodes), progress))
    else:
        schema = embedding_schema(trained.graph, trained.embedding_size, trained.fingerprint)
        tables = (embedding_table(trained.graph, batch, own, schema) for batch, own in rows)
        write_tables(path, schema, counted(tables, len(nodes), progress))
    return len(nodes)


def write_predictions(trained: TrainedModel, path: Path, ids: Any, draws: int | None, progress: ProgressCallback) -> int:
    """Write what is predicted of all nodes, or of some, as it is made; return their number."""
    check_suffix(path, TABLES)
    nodes = np.arange(trained.graph.num_nodes) if ids is None else indices_of(trained.graph, ids)
    tables = (trained.predict_indices(batch, draws=draws).table() for batch in trained.batches(nodes))
    write_tables(path, trained.predict_indices(nodes[:0], draws=draws).table().schema, counted(tables, len(nodes), progress))
    return len(nodes)


def embedding_schema(graph: Graph | ExtendedGraph, size: int, fingerprint: str) -> Any:
    """Return the columns of a file of embeddings."""
    fields = {
        "id": ids_of(graph, np.zeros(1, np.int64)).type,
        "embedding": pa.list_(pa.float32(), size),
        "model": pa.dictionary(pa.int32(), pa.string()),
    }
    return pa.schema(fields, metadata={FINGERPRINT: fingerprint})


def embedding_table(graph: Graph | ExtendedGraph, nodes: Ints, rows: NDArray[np.float32], schema: Any) -> Any:
    """Return a batch of a file of embeddings."""
    fingerprint = schema.metadata[FINGERPRINT.encode()].decode()
    columns = [
        ids_of(graph, nodes),
        pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1]),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(nodes), np.int32)), [fingerprint]),
    ]
    return pa.table(columns, schema=schema)


def write_tables(path: Path, schema: Any, tables: Iterable[Any]) -> None:
    """Write tables of one schema, one after another, in the format that the file's ending names."""
    write = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}[path.suffix.lower()]
    with results_file(path) as file:
        write(file, schema, tables)


def write_matrix(path: Path, shape: tuple[int, int], parts: Iterable[Any]) -> None:
    """Write rows of float32 as an .npy file."""
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
    """Write row groups of some thousands, however small the tables are: readers are slow with many."""
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
    """Write a list of objects, one on each line."""
    separator = "[\n"
    for table in tables:
        for row in table.to_pylist():
            file.write(f"{separator}{json.dumps(row, ensure_ascii=False)}".encode())
            separator = ",\n"
    file.write(b"[]\n" if separator == "[\n" else b"\n]\n")


def _flat(kind: Any) -> Any:
    return pa.string() if pa.types.is_nested(kind) else kind


def _flattened(column: Any) -> Any:
    """Join the names of a list by semicolons: CSV has no lists."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.array([";".join(map(str, row)) for row in column.to_pylist()], pa.string())
