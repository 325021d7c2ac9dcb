"""Ids as numbers: which nodes and types there are, and the ends of all edges as places among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gatas.datasets.ingest.database import parquet
from gatas.datasets.ingest.faults import SHOWN, WHAT_TO_DO
from gatas.errors import GraphError
from gatas.graph.arrays import ArrayWriter
from gatas.graph.edges import MAX_EDGE_TYPES, MAX_NODES

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 1 << 17
NAMES, TYPES = "names.parquet", "types.parquet"


@dataclass(frozen=True)
class Copied:
    """The copies of all edge files, and how to read them."""

    files: Sequence[Path]  # as given
    copies: Sequence[Path]
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
        types = [f"CAST(type AS {'BIGINT' if self.integer_types else 'VARCHAR'}) AS type"] if self.typed else []
        return ", ".join([*ends, *types, *(["weight", "place"] if self.weighted else [])])


def find_types(connection: "duckdb.DuckDBPyConnection", edges: Copied, folder: Path) -> dict[str, Any]:
    """The types of edges in ascending order, numbers as numbers; and a table of their numbers for joins."""
    if not edges.typed:
        return {"types": []}
    rows = connection.sql(f"SELECT DISTINCT type FROM {edges.table} ORDER BY type LIMIT {MAX_EDGE_TYPES + 1}").fetchall()
    if len(rows) > MAX_EDGE_TYPES:
        raise GraphError(f"there are more than {MAX_EDGE_TYPES:,} edge types. Are these node ids? Name the column of types.")
    types = [row[0] for row in rows]
    kind = pa.int64() if edges.integer_types else pa.string()
    pq.write_table(pa.table({"name": pa.array(types, kind), "kind": pa.array(range(len(types)), pa.int64())}), folder / TYPES)
    return {"types": types}


def find_names(connection: "duckdb.DuckDBPyConnection", edges: Copied, folder: Path) -> dict[str, Any]:
    """All ids that edges name, in ascending order."""
    ends = f"SELECT source AS id FROM {edges.table} UNION ALL SELECT target FROM {edges.table}"
    ordered = connection.sql(f"SELECT DISTINCT id FROM ({ends}) ORDER BY id").to_arrow_reader(BATCH_ROWS)
    return write_names(ordered, edges.integers, folder)


def write_names(batches: Any, integers: bool, folder: Path) -> dict[str, Any]:
    """Ids with their numbers for joins, and as the arrays that a store keeps; ids that are their numbers need neither."""
    kind = pa.int64() if integers else pa.string()
    count, numbered = 0, integers
    arrays = [ArrayWriter(folder, "node_ids", np.int64)] if integers else [
        ArrayWriter(folder, "node_name_offsets", np.int64), ArrayWriter(folder, "node_name_bytes", np.uint8)]  # fmt: skip
    if not integers:
        arrays[0].append(np.zeros(1, np.int64))
    with pq.ParquetWriter(folder / "names.parquet", pa.schema({"id": kind, "node": pa.int64()})) as writer:
        for batch in batches:
            ids = batch.column(0).cast(kind)
            node = np.arange(count, count + len(ids))
            writer.write_batch(pa.record_batch([ids, pa.array(node)], names=["id", "node"]))
            if integers:
                values = np.asarray(ids)
                numbered = numbered and bool((values == node).all())
                arrays[0].append(values)
            else:
                _append_text(ids, arrays[0], arrays[1])
            count += len(ids)
    if count > MAX_NODES:
        raise GraphError(f"the graph has {count:,} nodes, but at most {MAX_NODES:,} fit.")
    return {"num_nodes": count, "numbered": numbered, "arrays": {array.name: array.finish() for array in arrays}}


def _append_text(ids: Any, offsets: ArrayWriter, content: ArrayWriter) -> None:
    text = pa.concat_arrays([ids.cast(pa.large_string())])  # a copy whose offsets start at 0
    _, starts, data = text.buffers()
    ends = np.frombuffer(starts, np.int64, count=len(text) + 1)
    offsets.append(ends[1:] + content.length)
    if data is not None:
        content.append(np.frombuffer(data, np.uint8)[: ends[-1]])


def refuse_repeated(connection: "duckdb.DuckDBPyConnection", folder: Path, where: Path) -> None:
    """Every id of a node table must be there once."""
    names = parquet(folder / NAMES)
    twice = f"SELECT id, min(node) AS first, max(node) AS last FROM {names} GROUP BY id HAVING count(*) > 1"
    found = connection.sql(f"SELECT id, first, last, count(*) OVER () FROM ({twice}) ORDER BY last LIMIT 1").fetchall()
    if found:
        name, first, last, count = found[0]
        more = f" ({count:,} ids are repeated.)" if count > 1 else ""
        raise GraphError(f"{where}, row {last + 1}: the id {name!r} stands in row {first + 1} too. Keep one.{more}")


def with_numbers(edges: Copied, types: Path | None, names: Path | None) -> str:
    """Edges with numbers for ids and types, as SQL; ends without a number are empty. Without names, ids are numbers."""
    ends, joins, kind = "e.source, e.target", "", "0"
    if names is not None:
        ends = "s.node AS source, t.node AS target"
        ids = parquet(names / NAMES)
        joins = f" LEFT JOIN {ids} s ON e.source = s.id LEFT JOIN {ids} t ON e.target = t.id"
    if types is not None:
        joins, kind = f"{joins} JOIN {parquet(types / TYPES)} k ON e.type = k.name", "k.kind"
    rest = ", e.weight, e.place" if edges.weighted else ""
    return f"(SELECT {ends}, {kind} AS kind{rest} FROM {edges.table} e{joins})"


def refuse_unknown(connection: "duckdb.DuckDBPyConnection", edges: Copied, known: str, where: Path) -> None:
    """Say which edges name a node that is not `known`, a condition on an id."""
    cast = "BIGINT" if edges.integers else "VARCHAR"
    counted, places = 0, []
    for file, copy in zip(edges.files, edges.copies, strict=True):
        for end in ("source", "target"):
            query = (
                f"SELECT CAST({end} AS {cast}) AS id, file_row_number AS row FROM read_parquet('{copy}', file_row_number=true)"
            )
            wrong = f"SELECT id, row, count(*) OVER () FROM ({query}) WHERE NOT ({known}) ORDER BY row LIMIT {SHOWN}"
            rows = connection.sql(wrong).fetchall()
            counted += rows[0][2] if rows else 0
            places += [f"{file}, row {row + 1}, column {end!r}: the node {name!r} is not in {where}" for name, row, _ in rows]
    more = f" ({counted:,} ends of edges are so, among them: {'; '.join(places[1:SHOWN])}.)" if counted > 1 else ""
    raise GraphError(f"{places[0]}. {WHAT_TO_DO['unknown']}{more}")


def decided(facts: Sequence[Mapping[str, Any]], column: str, described: str) -> list[dict[str, Any]]:
    """What was seen of a column in every file."""
    return [{**fact["columns"][column], "described": described} for fact in facts if column in fact["columns"]]
