"""Edge files, read once in batches: checked, and copied to Parquet files that DuckDB can count on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gatas.datasets.config import TableData
from gatas.errors import GraphError
from gatas.graph.checks import IdFacts
from gatas.graph.columns import EDGE_COLUMNS, ColumnNames
from gatas.graph.tables import open_table


def edge_names(config: TableData) -> ColumnNames:
    """Return our columns of edges, and what the settings call them."""
    return ColumnNames.of_settings({name: config.edge_columns[name] for name in EDGE_COLUMNS})


def copy_file(path: Path, number: int, config: TableData, folder: Path) -> dict[str, Any]:
    """Copy one file's edges to `edges.parquet`; return what was seen on the way.

    Weights of repeated edges are summed in the order of files and rows, so with weights every edge keeps its place.
    """
    stream = open_table(path, edge_names(config))
    checks, weighted = stream.checks, "weight" in stream.column_names
    schema = {name: pa.string() if facts.text else pa.int64() for name, facts in checks.facts.items()}
    schema |= {"weight": pa.float32(), "place": pa.int64()} if weighted else {}
    zeros = 0
    with pq.ParquetWriter(folder / "edges.parquet", pa.schema(schema), compression="zstd", compression_level=1) as writer:
        for batch in stream:
            first = checks.rows
            kept = {name: values.cast(schema[name]) for name, values in checks.look(batch).items()}
            if weighted:
                kept["place"] = pa.array(np.arange(first, checks.rows) + (number << 40))
                zeros += int((np.asarray(kept["weight"]) == 0).sum())
            writer.write_batch(pa.record_batch([kept[name] for name in schema], schema=pa.schema(schema)))
    return {
        "rows": checks.rows,
        "zeros": zeros,
        "others": list(stream.others),
        "weighted": weighted,
        "columns": {name: asdict(facts) for name, facts in checks.facts.items()},
        "faults": checks.faults.found,
    }


def facts_of(copied: Sequence[Mapping[str, Any]], column: str, described: str) -> list[tuple[str, IdFacts]]:
    """Return what was seen of a column in every file, each with how messages describe it."""
    return [(described, IdFacts(**fact["columns"][column])) for fact in copied if column in fact["columns"]]


def check_alike(files: Sequence[Path], facts: Sequence[Mapping[str, Any]]) -> None:
    """Refuse files with other columns than the first has."""
    for column, what in (("edge_type", "type"), ("weight", "weight")):
        has = [fact["weighted"] if column == "weight" else column in fact["columns"] for fact in facts]
        if any(has) and not all(has):
            one, other = files[has.index(True)], files[has.index(False)]
            raise GraphError(f"{one} has a column for the {what} of edges, but {other} has none. Give it to all, or to none.")
