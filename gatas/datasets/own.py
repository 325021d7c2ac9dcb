"""`read_dataset`: tables of one's own as a data set, with what is asked for held out so that nothing gives it away."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.config import (
    ConfigTask,
    DataConfig,
    Direction,
    LinkTableData,
    NodeTableData,
    PairFiles,
    Ratios,
    StoreData,
    TableData,
    data_config,
)
from gatas.datasets.dataset import Dataset
from gatas.datasets.encoded_columns import UNTYPED, NodeTypes
from gatas.datasets.encoding import Encoding
from gatas.datasets.feature_files import NO_FILES, FeatureFile, with_feature_files
from gatas.datasets.held_out import UNASKED, IndexedPairs, hold_out_links, is_symmetric
from gatas.datasets.labels import Labels, read_targets
from gatas.datasets.learning import learn_encoding
from gatas.datasets.node_columns import splits_of
from gatas.datasets.node_table import Features, NodeTable
from gatas.datasets.pair_files import asked_types, indexed_pairs, pair_table, read_pair_files
from gatas.datasets.splitting import split_graphs, split_nodes, splits_graphs
from gatas.datasets.targets import SPLITS, LinkTargets
from gatas.datasets.unlinked import warn_of_unlinked, with_asked_nodes
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph, NodeIds
from gatas.graph.columns import ColumnNames
from gatas.graph.inputs import Ints
from gatas.graph.reading import are_indices, indexed_nodes, indexed_types, weights_of
from gatas.graph.tables import Table, codes_of, read_checked, read_table, warn_of_unused

Tabled = TypeVar("Tabled", bound=TableData)

ONE_TYPE = "link"
"""The name of the only edge type, where no column says of what type edges are."""


def read_dataset(
    edges: str | Path,
    nodes: str | Path | None = None,
    *,
    task: ConfigTask = "node classification",
    name: str | None = None,
    source: str = "source",
    target: str = "target",
    edge_type: str | None = None,
    weight: str | None = None,
    direction: Direction = "auto",
    id: str = "id",
    node_type: str | None = None,
    graph: str | None = None,
    features: str | Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    indices: str | Sequence[str] | Mapping[str, str | None] = (),
    encode: Mapping[str, str] | None = None,
    standardise: bool = True,
    missing: Literal["refuse", "fill"] = "refuse",
    label: str | Sequence[str] | None = None,
    split: str | None = None,
    ratios: Ratios | Mapping[str, float] | None = None,
    split_by: Literal["nodes", "graphs"] | None = None,
    link_types: str | Sequence[str] | None = None,
    pairs: PairFiles | Mapping[str, str | Path] | None = None,
    keep_reverse: bool = False,
    validation_edges: bool = False,
    seed: int = 0,
) -> Dataset:
    """Read a data set from an edge table and a node table (Parquet, CSV, TSV, also .gz).

    Args:
        edges: Edge table.
        nodes: Node table, with a row for each node; all nodes that edges name if left out.
        task: What is predicted.
        name: What results call the data; the edge table's name if left out.
        source: Column of the edge table: the id that an edge starts from.
        target: Column of the edge table: the id that it points to.
        edge_type: Column of the edge table: its type; `type` if left out, where there is such a column.
        weight: Column of the edge table: its weight; `weight` if left out, where there is such a column.
        direction: `"inverse"` lets edges lead back under a type of their own, `"undirected"` under the same type,
            `"as given"` not at all; `"auto"` is undirected where every edge is listed both ways, else inverse.
        id: Column of the node table: the id that edges name.
        node_type: Column of the node table: a node's type; `type` if left out, where there is such a column.
        graph: Column of the node table: which of several graphs a node is in; `graph` if left out, where there is one.
        features: Columns of the node table, also as `emb_*`, or a file of a sparse matrix (`scipy.sparse.save_npz`) with a row
            for each of the table's; all other numbers and lists if left out.
        categorical: Feature columns of numbers that are codes; text is categorical anyway.
        indices: Columns of lists of indices into a sparse matrix, such as of words; each with the name of a column of lists of
            their values, if there is one. Lists of whole numbers that differ in length are such, too.
        encode: What becomes of single columns: numbers `"standard"`, `"unscaled"`, `"log"` or `"quantile"`; categories
            `"one-hot"`, `"frequent N"` (the others share a column) or `"hashed N"`.
        standardise: Give numbers mean 0 and deviation 1, over training nodes.
        missing: What is done with gaps in features: `"fill"` takes the mean, or no category.
        label: For classes of nodes: the column of classes or of lists of them, or several columns of 0 and 1. For regression:
            the column of numbers, or several.
        split: Column of train, valid and test; of the node table, for links of the edge table. `split` if left out.
        ratios: Shares of train, valid and test, drawn by the seed where no column says; others than the usual ones count before
            a column that is merely called `split`.
        split_by: For classes of nodes: whether ratios share out nodes or whole graphs.
        link_types: For links: the edge types asked for; all if left out.
        pairs: For links: files of pairs to ask for, by split, instead of held-out edges.
        keep_reverse: For links: let an edge that reverses a held-out link stay in the graph, as published splits of knowledge
            graphs do.
        validation_edges: For links: add those of validation to the graph for the final test.
        seed: Splits and negatives are a function of it.

    >>> dataset = read_dataset("edges.csv", "nodes.csv", label="topic", edge_type="kind")
    >>> dataset = read_dataset("edges.csv", "nodes.csv", task="node regression", label=["price", "rooms"])
    >>> dataset = read_dataset("edges.parquet", task="link prediction", link_types=["bought"])
    """
    given = {setting: value for setting, value in locals().items() if value is not None}
    config = data_config(given)
    assert isinstance(config, NodeTableData | LinkTableData)
    return read_tables(config)


def read_tables(config: NodeTableData | LinkTableData, data_dir: str | Path | None = None) -> Dataset:
    """Read the data set that a config's tables hold; files that lie in `data_dir` under their name are taken from there."""
    config = config.below(Path.cwd())
    files = config if data_dir is None else config.with_files(_looked_for(Path(data_dir)))
    if isinstance(files, NodeTableData):
        return _nodes_with_targets(files, _read(files), config)
    dataset = _links(files, _read(files), config)
    if any(path is not None for path in dict(files.pairs).values()):
        dataset.check_leaks(directed=files.keep_reverse)  # of links that we held out ourselves, none can
    return dataset


def open_stored(config: StoreData, data_dir: str | Path | None = None) -> Dataset:
    """Open the data set in a store, with its labels and splits: mapped, so that rows are read when they are asked for."""
    config = config.below(Path.cwd())
    files = config if data_dir is None else config.with_files(_looked_for(Path(data_dir)))
    return replace(Dataset.open(files.store), name=config.name, origin=files)


def _looked_for(folder: Path) -> Callable[[Path], Path]:
    return lambda path: folder / path.name if (folder / path.name).exists() else path


@dataclass(frozen=True)
class Tables:
    """Both tables, with the nodes and types that edges name as indices."""

    edges: Table
    nodes: Table | None
    ids: Any  # in node order
    source: Ints
    target: Ints
    edge_type: Ints
    edge_type_names: tuple[str, ...]
    node_types: NodeTypes
    pairs: Mapping[str, Table]  # by split
    chosen: TableData  # settings, with columns in place of files of features
    files: Mapping[str, FeatureFile]  # by column

    @property
    def node_type(self) -> Ints | None:
        return self.node_types.index if self.node_types.names != UNTYPED else None


def _read(config: TableData) -> Tables:
    edges = read_checked(config.edges, ColumnNames.of_settings(config.edge_columns))
    warn_of_unused(edges)
    nodes = None if config.nodes is None else read_table(config.nodes, ColumnNames.of_settings(config.node_columns))
    chosen, files = config, NO_FILES
    if nodes is not None:
        nodes, chosen, files = with_feature_files(nodes, config)
    pairs = read_pair_files(config) if isinstance(config, LinkTableData) else {}
    if pairs and nodes is not None:
        nodes = with_asked_nodes(nodes, edges, pairs, chosen)
    ids, (source, target) = indexed_nodes(edges, nodes, [table for split, table in pairs.items() if split != "train"])
    if pairs and nodes is None:
        warn_of_unlinked(ids, np.arange(len(ids)), np.union1d(source, target))
    types, type_names = indexed_types(edges)
    types = np.zeros(len(source), np.int64) if types is None else types
    node_types = NodeTypes(np.zeros(len(ids), np.int64), UNTYPED)
    if nodes is not None and "node_type" in nodes.columns:
        node_types = NodeTypes(*codes_of(nodes, "node_type"))
    type_names = tuple(type_names) or (ONE_TYPE,)
    return Tables(edges, nodes, ids, source, target, types, type_names, node_types, pairs, chosen, files)


def _graph(config: TableData, tables: Tables, kept: NDArray[np.bool_] | None = None) -> Graph:
    """Make the graph of all edges, or of those that are kept."""
    edges = tables.edges
    rows = np.arange(len(tables.source)) if kept is None else np.flatnonzero(kept)
    weight = weights_of(edges)
    return Graph.from_edges(
        tables.source[rows],
        tables.target[rows],
        tables.edge_type[rows],
        num_nodes=len(tables.ids),
        weight=None if weight is None else weight[rows],
        inverse=config.direction == "inverse",
        undirected=config.direction == "undirected",
        node_ids=None if are_indices(tables.ids) else NodeIds.of(tables.ids),
        edge_type_names=tables.edge_type_names,
        where=lambda row: f"{edges.path}, row {rows[row] + 1}",
    )


def _with_direction(config: Tabled, tables: Tables) -> Tabled:
    """Resolve the direction `auto`: undirected where every edge is listed both ways and reverses are no links, else inverse."""
    if config.direction != "auto":
        return config
    if isinstance(config, LinkTableData) and config.keep_reverse:
        return config.model_copy(update={"direction": "inverse"})
    listed = Graph.from_edges(tables.source, tables.target, tables.edge_type, num_nodes=len(tables.ids),
                              num_edge_types=len(tables.edge_type_names))  # fmt: skip
    return config.model_copy(update={"direction": "undirected" if is_symmetric(listed) else "inverse"})


def _nodes(tables: Tables, features: Any) -> NodeTable:
    nodes = tables.nodes
    graphs = None if nodes is None or "graph" not in nodes.columns else codes_of(nodes, "graph")[0]
    types, names = (None, ()) if tables.node_type is None else (tables.node_type.astype(np.int16), tables.node_types.names)
    return NodeTable(len(tables.ids), features, types, names, None if graphs is None else graphs.astype(np.int32))


def _nodes_with_targets(config: NodeTableData, tables: Tables, origin: DataConfig) -> Dataset:
    """Make a data set of nodes with their classes or numbers, split by a column or by ratios."""
    table = tables.nodes
    assert table is not None
    config = _with_direction(config, tables)
    labels = read_targets(table, config)
    splits = node_splits(config, table, labels)
    encoding = learn_encoding(table, tables.chosen, tables.node_types, splits["train"], tables.files)
    targets = labels.targets(config.task, splits)
    nodes = _nodes(tables, _encoded(encoding, tables))
    return Dataset(config.name, _graph(config, tables), targets, nodes, origin=origin, encoding=encoding)


def _encoded(encoding: Encoding | None, tables: Tables) -> Features | None:
    if encoding is None or tables.nodes is None:
        return None
    return encoding.encoded(tables.nodes, tables.node_types)


def node_splits(config: NodeTableData, table: Table, labels: Labels) -> dict[str, Ints]:
    """Return the nodes with a label of each split, as a column says or by ratios."""
    if "split" not in table.columns:
        graphs = codes_of(table, "graph")[0] if "graph" in table.columns else None
        if graphs is None and config.split_by == "graphs":
            raise GraphError(
                f"data.split_by is graphs, but {table.path} does not say of which graph nodes are. Give data.graph."
            )
        if graphs is not None and splits_graphs(config, graphs, labels):
            return split_graphs(labels, graphs, config.ratios, config.seed)
        return split_nodes(labels, config.ratios, config.seed)
    splits, unlabelled = {}, 0
    for name, nodes in splits_of(table).items():
        labelled = nodes[labels.known[nodes]]
        unlabelled += len(nodes) - len(labelled)
        if labelled.size:
            splits[name] = labelled
    if "train" not in splits:
        raise GraphError(f"{table.path}, column {table.column_names['split']!r}: no node with a label is of the split "
                         "'train'. Mark what is to be learned from, or remove the column to split by ratios.")  # fmt: skip
    if unlabelled:
        count = (
            "1 node of splits has no label and was"
            if unlabelled == 1
            else f"{unlabelled} nodes of splits have no label and were"
        )
        warnings.warn(f"{count} left out of these.", GatasWarning, stacklevel=4)
    return splits


def _links(config: LinkTableData, tables: Tables, origin: DataConfig) -> Dataset:
    """Make a data set of links of the types asked for, held out of the graph."""
    config = _with_direction(config, tables)
    encoding = None
    if tables.nodes is not None:
        encoding = learn_encoding(tables.nodes, tables.chosen, tables.node_types, None, tables.files)
    files = {split: pair_table(table, tables.ids) for split, table in tables.pairs.items()}
    names = asked_types(config, tables.edge_type_names, files)
    kind = np.array([names.index(name) if name in names else UNASKED for name in tables.edge_type_names])
    listed = IndexedPairs(tables.source, kind[tables.edge_type], tables.target, len(tables.ids))
    given = {split: indexed_pairs(pairs, names, len(tables.ids)) for split, pairs in files.items()}
    held = hold_out_links(
        listed,
        given,
        split=_edge_splits(tables.edges) if not given and "split" in tables.edges.columns else None,
        ratios=config.ratios,
        seed=config.seed,
        undirected=config.direction == "undirected",
        keep_reverse=config.keep_reverse,
        node_type=tables.node_type,
        where=str(tables.edges.path),
    )
    if not given and "split" in tables.edges.columns:
        ends = np.stack([tables.source, tables.target])
        warn_of_unlinked(tables.ids, np.unique(ends), np.unique(ends[:, held.in_graph]))
    graph, nodes = _graph(config, tables, held.in_graph), _nodes(tables, _encoded(encoding, tables))
    targets = LinkTargets(names, held.splits, held.ends, held.ranked)
    return Dataset(config.name, graph, targets, nodes, origin=origin, encoding=encoding)


def _edge_splits(edges: Table) -> Ints:
    """Return 0, 1, 2 for train, valid, test and -1 for none, for each edge."""
    split = np.full(edges.num_rows, UNASKED)
    for number, name in enumerate(SPLITS):
        split[splits_of(edges).get(name, np.empty(0, np.int64))] = number
    return split
