"""Node tables a column at a time: what a node has one of is held in memory, features are not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gatas.datasets.config import NodeTableData, is_feature_file
from gatas.datasets.encoded_columns import UNTYPED, Lists, NodeTypes
from gatas.datasets.encoding import EncodedColumn, Encoding
from gatas.datasets.labels import Labels, read_targets
from gatas.datasets.learning import chosen_columns, learn_column
from gatas.datasets.node_table import Features
from gatas.datasets.own import node_splits
from gatas.errors import GraphError
from gatas.graph.arrays import ArrayWriter, mapped
from gatas.graph.column_types import decoded, is_list, is_text_file, plain_type
from gatas.graph.columns import ColumnNames
from gatas.graph.inputs import Floats
from gatas.graph.tables import Table, codes_of, read_table, warn_of_unused

BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class NodeFiles:
    """One table in one or more files. Parquet is read by columns; text files are read whole."""

    files: Sequence[Path]
    table: Table  # with empty columns, where they can be read when they are needed
    where: Path

    def column(self, name: str) -> Any:
        """Read all values of a column, by the file's name for it."""
        if is_text_file(self.files[0]):
            ours = {column: ours for ours, column in self.table.column_names.items()}
            return self.table.columns[ours[name]] if name in ours else self.table.others[name]
        return pa.chunked_array([part for file in self.files for part in _read_column(file, name).chunks], self._type(name))

    def batches(self, name: str, rows: int) -> Iterator[Any]:
        """Read the values of a column, some rows at a time."""
        for file in self.files:
            with pq.ParquetFile(file, pre_buffer=False) as opened:
                for batch in opened.iter_batches(rows, columns=[name]):
                    yield batch.column(0)

    def with_column(self, name: str) -> Table:
        """Return the table with the values of one column."""
        if name in self.table.others:
            return replace(self.table, others={**self.table.others, name: self.column(name)})
        ours = next(ours for ours, column in self.table.column_names.items() if column == name)
        return replace(self.table, columns={**self.table.columns, ours: self.column(name)})

    def _type(self, name: str) -> Any:
        return {**self.table.others, **{c: self.table.columns[o] for o, c in self.table.column_names.items()}}[name].type


def open_nodes(files: Sequence[Path], config: NodeTableData) -> NodeFiles:
    """Find the columns of a node table, and count its rows."""
    assert config.nodes is not None
    where, names = config.nodes, ColumnNames.of_settings(config.node_columns)
    if any(is_text_file(file) != is_text_file(files[0]) for file in files):
        raise GraphError(f"{where} holds Parquet files and text files. Keep one kind.")
    if is_text_file(files[0]):
        tables = [read_table(file, names) for file in files]
        return NodeFiles(files, tables[0] if len(tables) == 1 else _joined(tables, where), where)
    schema = _common_schema(files)
    present = names.find(files[0], list(schema.names))
    empty = {name: pa.chunked_array([], plain_type(schema.field(name).type)) for name in schema.names}
    table = Table(
        where,
        {name: empty[column] for name, column in present.items()},
        present,
        {name: values for name, values in empty.items() if name not in present.values()},
        sum(pq.read_metadata(file).num_rows for file in files),
    )
    return NodeFiles(files, table, where)


def _joined(tables: list[Table], where: Path) -> Table:
    """Join text files one after another; their columns must be alike."""
    first = tables[0]
    for table in tables[1:]:
        if (*table.columns, *table.others) != (*first.columns, *first.others):
            raise GraphError(f"{table.path} has other columns than {first.path}. Give all files of a table the same.")

    def joined(columns: str, name: str) -> Any:
        parts = [pa.table({"values": getattr(table, columns)[name]}) for table in tables]
        try:
            return pa.concat_tables(parts, promote_options="permissive")["values"]
        except pa.ArrowException as error:
            raise GraphError(f"{where}: the column {name!r} is of one kind in one file and of another elsewhere.") from error

    columns, others = ({name: joined(group, name) for name in getattr(first, group)} for group in ("columns", "others"))
    return replace(first, path=where, columns=columns, others=others, num_rows=sum(table.num_rows for table in tables))


def _common_schema(files: Sequence[Path]) -> Any:
    schemas = []
    for file in files:
        try:
            schemas.append(pq.read_schema(file).remove_metadata())
        except (pa.ArrowException, OSError) as error:
            raise GraphError(f"{file} could not be read as Parquet: {str(error).splitlines()[0]}") from error
        if schemas[-1] != schemas[0]:
            raise GraphError(
                f"{file} has other columns, or of other types, than {files[0]}. Give all files of a table the same."
            )
    return schemas[0]


def _read_column(file: Path, name: str) -> Any:
    try:
        values = pq.read_table(file, columns=[name])[name]
    except (pa.ArrowException, OSError) as error:
        raise GraphError(f"{file} could not be read as Parquet: {str(error).splitlines()[0]}") from error
    return decoded(values)


@dataclass(frozen=True)
class Known:
    """What a node table says, but for ids and features."""

    node_types: NodeTypes
    labels: Labels | None
    splits: dict[str, NDArray[np.int64]]
    graph_id: NDArray[np.int64] | None

    @property
    def types(self) -> dict[str, Any]:
        if self.node_types.names == UNTYPED:
            return {}
        return {"node_type": self.node_types.index, "node_type_names": self.node_types.names}


def read_known(nodes: NodeFiles, config: NodeTableData) -> Known:
    """Read types, labels, splits and graphs of all nodes; labels may be absent."""
    table = nodes.table
    names = [column for ours, column in table.column_names.items() if ours != "id"]
    for name in (*names, *(config.label_columns)):
        table = (
            replace(nodes, table=table).with_column(name) if name in (*table.column_names.values(), *table.others) else table
        )
    node_types = NodeTypes(np.zeros(table.num_rows, np.int64), UNTYPED)
    if "node_type" in table.columns:
        node_types = NodeTypes(*codes_of(table, "node_type"))
    graph_id = codes_of(table, "graph")[0] if "graph" in table.columns else None
    if config.label is None and "label" not in (*table.columns, *table.others):
        return Known(node_types, None, {}, graph_id)
    labels = read_targets(table, config)
    return Known(node_types, labels, node_splits(config, table, labels), graph_id)


def write_features(nodes: NodeFiles, config: NodeTableData, known: Known, folder: Path) -> dict[str, Any]:
    """Write (N, F) features, a column of the table after another; return what was written, with width 0 for none."""
    _refuse_sparse(config)
    names = chosen_columns(nodes.table, config)
    warn_of_unused(nodes.table, used=(*names, *(config.label_columns)))
    measured = np.ones(nodes.table.num_rows, np.bool_)
    if known.labels is not None:
        measured = np.isin(np.arange(nodes.table.num_rows), known.splits["train"])
    blocks, columns = [], []
    for number, name in enumerate(names):
        column = _learned(nodes, name, config, known.node_types, measured)
        writer = ArrayWriter(folder, "features" if len(names) == 1 else f"block-{number}", np.float32)
        for rows in _encoded(nodes, column, config, known.node_types):
            writer.append(rows)
        blocks.append((writer.name, writer.finish()))
        columns.append(column.model_dump(mode="json"))
    if not blocks:
        return {"width": 0}
    num_rows = nodes.table.num_rows
    parts = [mapped(folder, name, described, described[1] // num_rows) for name, described in blocks]
    if len(parts) == 1:
        return {"width": parts[0].shape[1], "array": blocks[0][1], "columns": columns}
    writer = ArrayWriter(folder, "features", np.float32)
    step = max(1, BATCH_BYTES // (4 * sum(part.shape[1] for part in parts)))
    for first in range(0, num_rows, step):
        writer.append(np.concatenate([part[first : first + step] for part in parts], axis=1))
    for name, _ in blocks:
        (folder / f"{name}.bin").unlink()
    return {"width": sum(part.shape[1] for part in parts), "array": writer.finish(), "columns": columns}


def _refuse_sparse(config: NodeTableData) -> None:
    """Refuse features that are sparse: a store of this kind has dense ones, written a column after another."""
    sparse = [*config.indices, *(name for name in config.features or () if is_feature_file(name))]
    if sparse:
        raise GraphError(
            f"{sparse[0]!r} holds sparse features, which gatas ingest does not take. Train from the tables, or read them with "
            "gatas.read_dataset and save that."
        )


def _in_batches(nodes: NodeFiles, name: str) -> bool:
    """Whether a column is read some rows at a time: lists in Parquet files."""
    values = nodes.table.others.get(name)
    return values is not None and is_list(values.type) and not is_text_file(nodes.files[0])


def _learned(
    nodes: NodeFiles, name: str, config: NodeTableData, node_types: NodeTypes, measured: NDArray[np.bool_]
) -> EncodedColumn:
    """Learn how one column becomes features."""
    if _in_batches(nodes, name):
        return _learned_lists(nodes, name, config, node_types)
    return learn_column(nodes.with_column(name), name, config, node_types, measured)


def _encoded(nodes: NodeFiles, column: EncodedColumn, config: NodeTableData, node_types: NodeTypes) -> Iterator[Floats]:
    """Encode one column: at once, or for lists some rows at a time."""
    name = column.name
    if not _in_batches(nodes, name):
        table = nodes.with_column(name)
        yield _dense(_encoding(column, config, node_types).encoded(table, node_types))
        return
    first = 0
    for batch in nodes.batches(name, max(1, BATCH_BYTES // (32 * max(1, column.width)))):
        last = first + len(batch)
        table = replace(nodes.table, others={name: batch}, num_rows=len(batch), first_row=first)
        own = NodeTypes(node_types.index[first:last], node_types.names)
        yield _dense(_encoding(column, config, own).encoded(table, own))
        first = last


def _dense(features: Features) -> Floats:
    return features if isinstance(features, np.ndarray) else features.toarray()


def _encoding(column: EncodedColumn, config: NodeTableData, node_types: NodeTypes) -> Encoding:
    return Encoding(types=node_types.names, missing=config.missing, columns=(column,))


def _learned_lists(nodes: NodeFiles, name: str, config: NodeTableData, node_types: NodeTypes) -> Lists:
    """Find how long the lists of each node type are; nodes without one are refused here, where all can be counted."""
    present, widths, first = np.zeros(nodes.table.num_rows, np.bool_), np.zeros(len(node_types.names), np.int64), 0
    for batch in nodes.batches(name, 1 << 14):
        last = first + len(batch)
        present[first:last] = batch.is_valid()
        np.maximum.at(widths, node_types.index[first:last], np.asarray(pc.fill_null(pc.list_value_length(batch), 0)))
        first = last
    types = np.unique(node_types.index[present])
    if not types.size:
        raise GraphError(f"{nodes.where}, column {name!r} has no values. Leave it out of data.features.")
    column = Lists(name=name, types=tuple(types.tolist()), widths=tuple(widths.tolist()))
    marks = pa.array(np.zeros(len(present), np.int8), mask=~present)
    _encoding(column, config, node_types).gaps(nodes.table, column, marks, node_types)
    return column
