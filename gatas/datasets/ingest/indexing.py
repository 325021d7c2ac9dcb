"""Indices for ids: which nodes and types there are, and the ends of all edges as indices of nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gatas.datasets.ingest.database import parquet
from gatas.errors import GraphError
from gatas.graph.arrays import ArrayWriter
from gatas.graph.checks import SHOWN, refuse_unknown_nodes
from gatas.graph.edges import MAX_EDGE_TYPES, MAX_NODES
from gatas.graph.reading import refuse_duplicate

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 1 << 17
IDS, TYPES = "ids.parquet", "types.parquet"


@dataclass(frozen=True)
class EdgeCopies:
    """The copies of all edge files, and how to read them."""

    files: Sequence[Path]  # as given
    copies: Sequence[Path]
    column_names: Sequence[Mapping[str, str]]  # of each file, by our names
    integers: bool
    integer_types: bool
    typed: bool
    weighted: bool

    @property
    def table(self) -> str:
        """Edges as SQL: ids of one kind, types by name."""
        return f"(SELECT {self.columns} FROM {parquet(*self.copies)})"

    @property
    def columns(self) -> str:
        ends = [f"CAST({end} AS {'BIGINT' if self.integers else 'VARCHAR'}) AS {end}" for end in ("source", "target")]
        kind = "BIGINT" if self.integer_types else "VARCHAR"
        types = [f"CAST(edge_type AS {kind}) AS edge_type"] if self.typed else []
        return ", ".join([*ends, *types, *(["weight", "place"] if self.weighted else [])])


def find_types(connection: "duckdb.DuckDBPyConnection", edges: EdgeCopies, folder: Path) -> dict[str, Any]:
    """Find the types of edges in ascending order, numbers as numbers; write a table of their indices for joins."""
    if not edges.typed:
        return {"types": []}
    query = f"SELECT DISTINCT edge_type FROM {edges.table} ORDER BY edge_type LIMIT {MAX_EDGE_TYPES + 1}"
    rows = connection.sql(query).fetchall()
    if len(rows) > MAX_EDGE_TYPES:
        raise GraphError(f"there are more than {MAX_EDGE_TYPES:,} edge types. Are these node ids? Name the column of types.")
    types = [row[0] for row in rows]
    kind = pa.int64() if edges.integer_types else pa.string()
    pq.write_table(pa.table({"name": pa.array(types, kind), "kind": pa.array(range(len(types)), pa.int64())}), folder / TYPES)
    return {"types": types}


def find_ids(connection: "duckdb.DuckDBPyConnection", edges: EdgeCopies, folder: Path) -> dict[str, Any]:
    """Find all ids that edges name, in ascending order."""
    ends = f"SELECT source AS id FROM {edges.table} UNION ALL SELECT target FROM {edges.table}"
    ordered = connection.sql(f"SELECT DISTINCT id FROM ({ends}) ORDER BY id").to_arrow_reader(BATCH_ROWS)
    return write_ids(ordered, edges.integers, folder)


def write_ids(batches: Any, integers: bool, folder: Path) -> dict[str, Any]:
    """Write ids with their indices for joins, and as the arrays that a store keeps; ids that are indices need neither."""
    kind = pa.int64() if integers else pa.string()
    count, are_indices = 0, integers
    arrays = [ArrayWriter(folder, "node_ids", np.int64)] if integers else [
        ArrayWriter(folder, "node_name_offsets", np.int64), ArrayWriter(folder, "node_name_bytes", np.uint8)]  # fmt: skip
    if not integers:
        arrays[0].append(np.zeros(1, np.int64))
    with pq.ParquetWriter(folder / IDS, pa.schema({"id": kind, "node": pa.int64()})) as writer:
        for batch in batches:
            ids = batch.column(0).cast(kind)
            node = np.arange(count, count + len(ids))
            writer.write_batch(pa.record_batch([ids, pa.array(node)], names=["id", "node"]))
            if integers:
                values = np.asarray(ids)
                are_indices = are_indices and bool((values == node).all())
                arrays[0].append(values)
            else:
                _append_text(ids, arrays[0], arrays[1])
            count += len(ids)
    if count > MAX_NODES:
        raise GraphError(f"the graph has {count:,} nodes, but at most {MAX_NODES:,} fit.")
    return {"num_nodes": count, "are_indices": are_indices, "arrays": {array.name: array.finish() for array in arrays}}


def _append_text(ids: Any, offsets: ArrayWriter, content: ArrayWriter) -> None:
    text = pa.concat_arrays([ids.cast(pa.large_string())])  # a copy whose offsets start at 0
    _, starts, data = text.buffers()
    ends = np.frombuffer(starts, np.int64, count=len(text) + 1)
    offsets.append(ends[1:] + content.length)
    if data is not None:
        content.append(np.frombuffer(data, np.uint8)[: ends[-1]])


def refuse_repeated(connection: "duckdb.DuckDBPyConnection", folder: Path, where: str) -> None:
    """Refuse a node table, named by `where`, that has an id twice."""
    ids = parquet(folder / IDS)
    twice = f"SELECT id, min(node) AS first, count(*) OVER () AS ids FROM {ids} GROUP BY id HAVING count(*) > 1"
    repeats = f"SELECT t.id, t.first, i.node, t.ids FROM ({twice}) t JOIN {ids} i ON i.id = t.id WHERE i.node > t.first"
    found = connection.sql(f"{repeats} ORDER BY i.node LIMIT 1").fetchall()
    if found:
        node_id, first, row, count = found[0]
        refuse_duplicate(where.format(row + 1), node_id, first, count)


def with_indices(edges: EdgeCopies, types: Path | None, ids: Path | None) -> str:
    """Return edges with indices for ids and types, as SQL; unknown ends are empty. Without `ids`, ids are indices."""
    ends, joins, kind = "e.source, e.target", "", "0"
    if ids is not None:
        ends = "s.node AS source, t.node AS target"
        known = parquet(ids / IDS)
        joins = f" LEFT JOIN {known} s ON e.source = s.id LEFT JOIN {known} t ON e.target = t.id"
    if types is not None:
        joins, kind = f"{joins} JOIN {parquet(types / TYPES)} k ON e.edge_type = k.name", "k.kind"
    rest = ", e.weight, e.place" if edges.weighted else ""
    return f"(SELECT {ends}, {kind} AS kind{rest} FROM {edges.table} e{joins})"


def refuse_unknown(connection: "duckdb.DuckDBPyConnection", edges: EdgeCopies, known: str, where: Path) -> None:
    """Say which edges name a node that is not `known`, a condition on an id."""
    cast = "BIGINT" if edges.integers else "VARCHAR"
    count, places = 0, []
    for file, copy, names in zip(edges.files, edges.copies, edges.column_names, strict=True):
        for end in ("source", "target"):
            query = (
                f"SELECT CAST({end} AS {cast}) AS id, file_row_number AS row FROM read_parquet('{copy}', file_row_number=true)"
            )
            wrong = f"SELECT id, row, count(*) OVER () FROM ({query}) WHERE NOT ({known}) ORDER BY row LIMIT {SHOWN}"
            rows = connection.sql(wrong).fetchall()
            count += rows[0][2] if rows else 0
            places += [
                f"{file}, row {row + 1}, column {names[end]!r}: the node {one!r} is not in {where}" for one, row, _ in rows
            ]
    refuse_unknown_nodes(places, count)
