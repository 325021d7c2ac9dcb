"""Edge files, read once in batches: checked, and copied to Parquet files that DuckDB can count on."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from gatas.datasets.config import TableData
from gatas.datasets.ingest.faults import ColumnFacts, Faults, read_weights
from gatas.errors import GraphError
from gatas.graph.tables import KINDS, checked_kind, present_columns, wanted_columns

BATCH_ROWS = 1 << 16
BLOCK_BYTES = 4 << 20

ENDS = ("source", "target")


def listed_files(paths: Sequence[Path]) -> list[Path]:
    """Files as they are, folders as the tables below them, in the order of their names."""
    found: list[Path] = []
    for path in paths:
        inside = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name.lower().endswith(KINDS)]
        if path.is_dir() and not inside:
            raise GraphError(f"{path} holds no table; expected files that end in {', '.join(KINDS)}.")
        found += inside if path.is_dir() else [path]
    for path in found:
        checked_kind(path)
    return found


def edge_names(config: TableData) -> dict[str, str | None]:
    """Our columns, and what the settings call them."""
    return {"source": config.source, "target": config.target, "type": config.edge_type, "weight": config.weight}


def setting_name(ours: str, column: str) -> str:
    """How a config names a column of edges."""
    return f"data.{'edge_type' if ours == 'type' else ours}: {column}"


def copy_file(path: Path, number: int, config: TableData, folder: Path) -> dict[str, Any]:
    """Copy one file's edges to `edges.parquet`; gives what was seen on the way.

    Weights of repeated edges are summed in the order of files and rows, so with weights every edge keeps its place.
    """
    columns, others, batches = open_edges(path, config)
    faults, facts = Faults(), {}
    kinds = {name: batches.schema.field(column).type for name, column in columns.items()}
    for name in columns:
        if name != "weight":
            facts[name] = ColumnFacts(path, columns[name], _plain(kinds[name]))
    schema = {name: pa.string() if facts[name].text else pa.int64() for name in facts}
    schema |= {"weight": pa.float32(), "place": pa.int64()} if "weight" in columns else {}
    rows = zeros = 0
    with pq.ParquetWriter(folder / "edges.parquet", pa.schema(schema), compression="zstd", compression_level=1) as writer:
        for batch in batches:
            given = {name: _decoded(batch.column(column)) for name, column in columns.items()}
            place = {name: _placing(path, column, rows) for name, column in columns.items()}
            kept = {name: facts[name].look(given[name], place[name], faults) for name in facts}
            if "weight" in columns:
                kept["weight"] = read_weights(given["weight"], path, columns["weight"], place["weight"], faults)
                kept["place"] = pa.array(np.arange(rows, rows + batch.num_rows) + (number << 40))
                zeros += int((np.asarray(kept["weight"]) == 0).sum())
            writer.write_batch(pa.record_batch(list(kept.values()), schema=pa.schema(schema)))
            rows += batch.num_rows
    return {
        "rows": rows,
        "zeros": zeros,
        "others": others,
        "weighted": "weight" in columns,
        "columns": {name: vars(fact) for name, fact in facts.items()},
        "faults": faults.found,
    }


class Batches:
    """Record batches of some columns; what pyarrow cannot read is said with the file's name."""

    def __init__(self, path: Path, schema: Any, batches: Iterator[Any]) -> None:
        self.path, self.schema, self.batches = path, schema, batches

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.batches
        except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
            raise GraphError(f"{self.path} could not be read: {str(error).splitlines()[0]}") from error


def open_edges(path: Path, config: TableData) -> tuple[dict[str, str], list[str], Batches]:
    """The columns that a file has for us, those it has besides, and its rows."""
    given = edge_names(config)
    names = {name: column for name, column in given.items() if column is not None}
    wanted = wanted_columns(ENDS, ("type", "weight"), names)
    found = _found_columns(path, list(wanted.values()))
    columns = present_columns(path, found, ENDS, names, wanted, True, setting_name)
    others = [name for name in found if name not in columns.values()]
    return columns, others, _opened(path, list(columns.values()))


def _found_columns(path: Path, ours: list[str]) -> list[str]:
    kind = checked_kind(path)
    try:
        if kind == ".parquet":
            return list(pq.read_schema(path).names)
        with _reader(path, kind, pa.csv.ConvertOptions(column_types={name: pa.string() for name in ours})) as reader:
            return list(reader.schema.names)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise GraphError(f"{path} could not be read: {str(error).splitlines()[0]}") from error
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}, line 1: the column names are not UTF-8 text. Save the file as UTF-8.") from error


def _opened(path: Path, columns: list[str]) -> Batches:
    kind = checked_kind(path)
    if kind == ".parquet":
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=BLOCK_BYTES)
        return Batches(path, file.schema_arrow, file.iter_batches(BATCH_ROWS, columns=columns))
    text = pa.csv.ConvertOptions(include_columns=columns, column_types={name: pa.string() for name in columns})
    reader = _reader(path, kind, text)
    return Batches(path, reader.schema, chain(reader))


def _reader(path: Path, kind: str, convert: Any) -> Any:
    parse = pa.csv.ParseOptions(delimiter="\t" if ".tsv" in kind else ",", newlines_in_values=True)
    stream = pa.input_stream(str(path), compression="gzip" if kind.endswith(".gz") else None)
    return pa.csv.open_csv(stream, pa.csv.ReadOptions(block_size=BLOCK_BYTES), parse, convert)


def _placing(path: Path, column: str, first: int) -> Any:
    return lambda row: f"{path}, row {first + row + 1}, column {column!r}"


def _plain(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _decoded(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def check_alike(files: Sequence[Path], facts: Sequence[Mapping[str, Any]]) -> None:
    """Every file must have the columns that the first has."""
    for column in ("type", "weight"):
        has = [fact["weighted"] if column == "weight" else column in fact["columns"] for fact in facts]
        if any(has) and not all(has):
            one, other = files[has.index(True)], files[has.index(False)]
            raise GraphError(f"{one} has a column for the {column} of edges, but {other} has none. Give it to all, or to none.")
