"""`ingest`: edge files and a node table into the folder that `Dataset.save` would write, in bounded memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa

from gatas.datasets.config import Direction, LinkTableData, NodeTableData, TableData, data_config
from gatas.datasets.encoding import Encoding
from gatas.datasets.ingest.database import connected, database_memory, leave_room, parquet
from gatas.datasets.ingest.edge_files import check_alike, copy_file, facts_of
from gatas.datasets.ingest.indexing import (
    IDS,
    EdgeCopies,
    find_ids,
    find_types,
    refuse_repeated,
    refuse_unknown,
    with_indices,
    write_ids,
)
from gatas.datasets.ingest.node_files import NodeFiles, open_nodes, read_known, write_features
from gatas.datasets.ingest.settings import IngestSettings
from gatas.datasets.ingest.sorting import Order, write_csr
from gatas.datasets.ingest.work import IngestFolder, fingerprints, tidied, working_beside, written_before
from gatas.datasets.node_table import NodeTable
from gatas.datasets.own import ONE_TYPE
from gatas.datasets.saved import node_parts, node_target_parts
from gatas.errors import ConfigError, GraphError, StoreError
from gatas.files import reason
from gatas.graph import Graph, NodeIds
from gatas.graph.arrays import mapped
from gatas.graph.checks import ColumnChecks, IdFacts, are_integers, refuse_decimals, refuse_faults
from gatas.graph.column_types import is_text_file
from gatas.graph.edges import inverse_names, warn_of_zeros
from gatas.graph.reading import warn_of_numbered_types
from gatas.graph.saved import graph_parts
from gatas.graph.storage import write_store
from gatas.graph.table_files import listed_files
from gatas.graph.tables import warn_of_unused_names

if TYPE_CHECKING:
    import duckdb

FEW_EDGES = 1000
"""Edges that are looked at first to find out whether all are listed both ways."""

StageProgressCallback = Callable[[str, float], None]
"""Called with the name of a stage, and the share of it that is done."""


def ingest(
    edges: str | Path | Sequence[str | Path],
    nodes: str | Path | None = None,
    *,
    out: str | Path,
    memory: int = 2 << 30,
    threads: int = 2,
    progress: StageProgressCallback = lambda stage, share: None,
    **settings: Unpack[IngestSettings],
) -> bool:
    """Write a store from edge files of any size, in bounded memory.

    It holds the bytes that `read_dataset(...).save(out)` would write, but needs no more than `memory` bytes, whatever
    the number of edges: about 60 bytes a node, and DuckDB, which spills to disk, beside `out`. What a killed ingest has
    finished is found again by the same call. Returns whether there was anything to do: False if this very call has written
    the store before.

    Args:
        edges: Edge files (Parquet, CSV, TSV, also .gz), or folders of them.
        nodes: Node table: a file, or a folder of files. Without one, the store holds a graph alone.
        out: The folder to write; it must not exist, unless the same call wrote it.
        memory: Bytes that the process may take.
        threads: Threads that DuckDB may use.
        progress: Called with the stage and the share of it that is done.
        settings: Names of columns, direction, features, labels and splits, as for `read_dataset`.
    """
    listed = [edges] if isinstance(edges, str | Path) else list(edges)
    if not listed:
        raise GraphError("no edge file was given. Give one, or several, or a folder of them.")
    out = Path(out).absolute()
    given: dict[str, Any] = {"edges": listed[0], "nodes": nodes, **settings}
    if nodes is None:
        given["task"] = "link prediction"  # of which nothing is held out here: the graph is all that is asked for
    config = data_config(given)
    assert isinstance(config, TableData)
    if nodes is not None and isinstance(config, LinkTableData):
        raise ConfigError(
            "data.task is link prediction, for which links are held out of a graph in memory (gatas train). An ingested store "
            "holds all edges, with labels of nodes: leave the task out."
        )
    database_memory(memory)
    files = listed_files([Path(path) for path in listed])
    node_files = [] if nodes is None else listed_files([Path(nodes)])
    job = {"settings": config.model_dump(mode="json"), "files": fingerprints([*files, *node_files])}
    if out.exists():
        if tidied(out, job) or written_before(out, job):
            return False
        raise StoreError(
            f"{out} exists already, and is not of an ingest of these files with these settings. Choose another folder, or "
            "remove it."
        )
    try:
        with working_beside(out, job) as work:
            with connected(memory, threads, work.spill) as connection:
                parts = _Ingest(work, connection, config, files, memory, progress).parts(node_files)
            progress("store", 0.0)
            write_store(out, "graph" if nodes is None else "dataset", *parts)
            del parts
    except OSError as error:
        raise StoreError(
            f"{out} could not be written: {reason(error)}. What was done so far is kept: make room, or allow "
            "writing, and run the same command again."
        ) from error
    return True


class _Ingest:
    """The stages, one after another."""

    def __init__(
        self,
        work: IngestFolder,
        connection: "duckdb.DuckDBPyConnection",
        config: TableData,
        files: list[Path],
        memory: int,
        progress: StageProgressCallback,
    ) -> None:
        self.work, self.connection, self.config, self.files = work, connection, config, files
        self.memory, self.progress = memory, progress

    def parts(self, node_files: list[Path]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays and parameters of the store, with all that is large mapped from files."""
        edges, facts = self.copied()
        nodes = open_nodes(node_files, self.config) if isinstance(self.config, NodeTableData) else None
        edges = self.decided(edges, facts, nodes)
        types_folder, types = self.types(edges)
        ids, found = self.ids(edges, nodes)
        leave_room(self.connection, self.memory, found["num_nodes"] if nodes is not None else 0)
        indexed = self.indexed(edges, types_folder if types else None, ids, found, nodes)
        arrays, parameters = self.nodes(nodes, found["num_nodes"])
        direction = self.direction(indexed)
        type_names = tuple(str(name) for name in types) or (ONE_TYPE,)
        count, inverse = len(type_names), direction == "inverse"
        order = Order(found["num_nodes"], count * (1 + inverse), direction, edges.weighted)
        self.progress("sort", 0.0)
        folder, written = self.work.stage("csr", lambda folder: write_csr(self.connection, indexed, order, folder))
        columns: dict[str, Any] = {name: mapped(folder, name, described) for name, described in written["arrays"].items()}
        inverse_of = {"inverse": (*range(count, 2 * count), *range(count)), "undirected": tuple(range(count))}
        graph = Graph(
            **columns,
            num_edge_types=order.num_types,
            node_ids=_stored_ids(ids, found),
            edge_type_names=(*type_names, *inverse_names(type_names)) if inverse else type_names,
            inverse_of=inverse_of.get(direction, ()),
            num_repeated=written["num_repeated"],
        )
        graph_arrays, graph_parameters = graph_parts(graph)
        return {**graph_arrays, **arrays}, {**graph_parameters, **parameters}

    def direction(self, indexed: str) -> Direction:
        """Resolve `auto`: undirected where every edge is listed both ways, else inverse. A few edges decide most cases."""
        if self.config.direction != "auto":
            return self.config.direction
        same = "there.source = back.target AND there.target = back.source AND there.kind = back.kind"
        few = f"(SELECT * FROM {indexed} LIMIT {FEW_EDGES}) AS there"
        if self.count(f"{few} ANTI JOIN {indexed} AS back ON {same}") or not self.count(indexed):
            return "inverse"
        return "inverse" if self.count(f"{indexed} AS there ANTI JOIN {indexed} AS back ON {same}") else "undirected"

    def copied(self) -> tuple[EdgeCopies, list[dict[str, Any]]]:
        """Copy all edge files, each in a stage of its own; what is wrong is said when all are read."""
        copies, facts = [], []
        for number, file in enumerate(self.files):
            self.progress("read", number / len(self.files))
            fill = partial(copy_file, file, number, self.config)
            stage = self.work.stage(f"edges-{number:06}", fill)
            copies.append(stage[0] / "edges.parquet")
            facts.append(stage[1])
        refuse_faults([fact["faults"] for fact in facts])
        check_alike(self.files, facts)
        for file, fact in zip(self.files, facts, strict=True):
            if fact["others"]:
                warn_of_unused_names(file, fact["others"])
                break
        if zeros := sum(fact["zeros"] for fact in facts):
            warn_of_zeros(zeros, stacklevel=3)
        typed, weighted = any("edge_type" in fact["columns"] for fact in facts), any(fact["weighted"] for fact in facts)
        names = [{name: column["column"] for name, column in fact["columns"].items()} for fact in facts]
        return EdgeCopies(self.files, copies, names, False, False, typed, weighted), facts

    def decided(self, edges: EdgeCopies, facts: list[dict[str, Any]], nodes: NodeFiles | None) -> EdgeCopies:
        """Decide whether ids and types are integers or text, over all files."""
        ends = [facts_of(facts, end, f"{end}s are") for end in ("source", "target")]
        of_nodes = [] if nodes is None else [("the node table's are", self.node_ids(nodes))]
        types = facts_of(facts, "edge_type", "types are")
        for columns in (*ends, of_nodes, types):
            refuse_decimals([column for _, column in columns])
        integers = are_integers([*ends[0], *ends[1], *of_nodes])
        return replace(edges, integers=integers, integer_types=are_integers(types))

    def node_ids(self, nodes: NodeFiles) -> IdFacts:
        """Check the ids of a node table."""
        name = nodes.table.column_names["id"]
        values = nodes.column(name)
        checks = ColumnChecks(nodes.where, {"id": name}, {"id": values.type if len(values) else pa.int64()})
        checks.facts["id"].from_text = is_text_file(nodes.files[0])
        for chunk in values.chunks:
            checks.look(pa.RecordBatch.from_arrays([chunk], names=["id"]))
        refuse_faults([checks.faults.found])
        return checks.facts["id"]

    def types(self, edges: EdgeCopies) -> tuple[Path, list[Any]]:
        """Find the types of edges; numbers that are not 0, 1, 2 … are numbered, and keep their names."""
        folder, found = self.work.stage("types", lambda folder: find_types(self.connection, edges, folder))
        types: list[Any] = found["types"]
        warn_of_numbered_types(self.config.edges, [str(name) for name in types])
        return folder, types

    def ids(self, edges: EdgeCopies, nodes: NodeFiles | None) -> tuple[Path, dict[str, Any]]:
        """Write ids in node order: those of the node table, or all that edges name."""
        self.progress("ids", 0.0)

        def fill(folder: Path) -> dict[str, Any]:
            if nodes is None:
                return find_ids(self.connection, edges, folder)
            column = nodes.table.column_names["id"]
            values = nodes.column(column).cast(pa.int64() if edges.integers else pa.large_string())
            found = write_ids((pa.record_batch([chunk], names=["id"]) for chunk in values.chunks), edges.integers, folder)
            if not found["are_indices"]:
                refuse_repeated(self.connection, folder, f"{nodes.where}, row {{}}, column {column!r}")
            return found

        folder, found = self.work.stage("ids", fill)
        if not found["num_nodes"]:
            where = self.files[0] if nodes is None else nodes.where
            raise GraphError(f"{where} has no rows, so the graph has no nodes. Give at least one.")
        return folder, found

    def nodes(self, nodes: NodeFiles | None, num_nodes: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays and parameters of the node table and of the targets."""
        config = self.config
        if nodes is None or not isinstance(config, NodeTableData):
            return {}, {}
        self.progress("nodes", 0.0)
        known = read_known(nodes, config)
        folder, found = self.work.stage("features", lambda folder: write_features(nodes, config, known, folder))
        features = mapped(folder, "features", found["array"], found["width"]) if found["width"] else None
        graphs = None if known.graph_id is None else known.graph_id.astype(np.int32)
        arrays, parameters = node_parts(NodeTable(num_nodes, features, graph_id=graphs, **known.types))
        targets: tuple[dict[str, Any], dict[str, Any]] = ({}, {"task": None, "names": [], "splits": []})
        if known.labels is not None:
            targets = node_target_parts(known.labels.targets(config.task, known.splits))
        encoding = None
        if found["width"]:
            learned = Encoding(types=known.node_types.names, missing=self.config.missing, columns=found["columns"])
            encoding = learned.model_dump(mode="json")
        named = {"name": self.config.name, "note": "", "encoding": encoding}
        return {**arrays, **targets[0]}, {**parameters, **targets[1], **named}

    def indexed(self, edges: EdgeCopies, types: Path | None, ids: Path, found: dict[str, Any], nodes: NodeFiles | None) -> str:
        """Return edges by the indices of nodes, as SQL; every end must be known."""
        where = self.files[0] if nodes is None else nodes.where
        if found["are_indices"]:
            known = f"id BETWEEN 0 AND {found['num_nodes'] - 1}"
            if nodes is not None and self.outside(edges, known):
                refuse_unknown(self.connection, edges, known, where)
            return with_indices(edges, types, None)
        self.progress("indices", 0.0)

        def fill(folder: Path) -> dict[str, Any]:
            query = with_indices(edges, types, ids)
            target = str(folder / "indexed.parquet")
            self.connection.sql(f"SELECT * FROM {query}").write_parquet(target, compression="zstd", row_group_size=1 << 17)
            return {}

        folder, _ = self.work.stage("indexed", fill)
        table = parquet(folder / "indexed.parquet")
        if self.count(f"{table} WHERE source IS NULL OR target IS NULL"):
            refuse_unknown(self.connection, edges, f"id IN (SELECT id FROM {parquet(ids / IDS)})", where)
        return table

    def outside(self, edges: EdgeCopies, known: str) -> bool:
        """Whether any end is not known, where ids are indices."""
        ends = [f"SELECT min({end}) AS id FROM {edges.table} UNION ALL SELECT max({end}) FROM {edges.table}"
                for end in ("source", "target")]  # fmt: skip
        return self.count(f"({' UNION ALL '.join(ends)}) WHERE NOT ({known})") > 0

    def count(self, rows: str) -> int:
        return int(self.connection.sql(f"SELECT count(*) FROM {rows}").fetchall()[0][0])


def _stored_ids(folder: Path, found: dict[str, Any]) -> NodeIds | None:
    if found["are_indices"]:
        return None
    return NodeIds(*(mapped(folder, name, described) for name, described in found["arrays"].items()))
