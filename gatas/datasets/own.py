"""`read_dataset`: tables of one's own as a data set, with what is asked for held out so that nothing gives it away."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.config import LinkTableData, NodeTableData, StoreData, TableData, data_config
from gatas.datasets.dataset import Dataset
from gatas.datasets.encoding import ONE_KIND, Encoding, Kinds, learn_encoding
from gatas.datasets.held_out import UNASKED, Links, hold_out_links, is_symmetric
from gatas.datasets.labels import Labels, read_labels
from gatas.datasets.node_columns import splits_of
from gatas.datasets.node_table import NodeTable
from gatas.datasets.pair_files import asked_types, numbered_pairs, read_pair_files
from gatas.datasets.splitting import split_graphs, split_nodes, splits_graphs
from gatas.datasets.targets import SPLITS, LinkTargets, NodeTargets
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph, NodeIds
from gatas.graph.columns import ColumnNames
from gatas.graph.inputs import Floats, Ints
from gatas.graph.reading import are_indices, indexed_nodes, indexed_types, weights_of
from gatas.graph.tables import Table, codes_of, read_checked, read_table, warn_of_unused

Tabled = TypeVar("Tabled", bound=TableData)

ONE_TYPE = "link"
"""What edges are called where no column says."""


def read_dataset(edges: str | Path, nodes: str | Path | None = None, **settings: Any) -> Dataset:
    """A data set from an edge table and a node table (Parquet, CSV, TSV). `settings` are those of `DataConfig`.

    >>> dataset = read_dataset("edges.csv", "nodes.csv", label="topic", edge_type="kind")
    >>> dataset = read_dataset("edges.parquet", task="link prediction", link_types=["bought"])
    """
    config = data_config({"edges": edges, "nodes": nodes, **settings})
    assert isinstance(config, NodeTableData | LinkTableData)
    return read_tables(config)


def read_tables(config: NodeTableData | LinkTableData, data_dir: str | Path | None = None) -> Dataset:
    """Read the data set that a config's tables hold; files that lie in `data_dir` under their name are taken from there."""
    config = config.below(Path.cwd())
    files = config if data_dir is None else config.with_files(_looked_for(Path(data_dir)))
    if isinstance(files, NodeTableData):
        return replace(_classes(files, _read(files)), origin=config)
    dataset = replace(_links(files, _read(files)), origin=config)
    if any(path is not None for path in dict(files.pairs).values()):
        dataset.check_leaks()  # of links that we held out ourselves, none can
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
    """Both files, and what they say as numbers."""

    edges: Table
    people: Table | None
    names: Any  # ids in node order
    source: Ints
    target: Ints
    edge_type: Ints
    edge_type_names: tuple[str, ...]
    kinds: Kinds

    @property
    def node_type(self) -> Ints | None:
        return self.kinds.number if self.kinds.names != ONE_KIND else None


def _read(config: TableData) -> Tables:
    edges = read_checked(config.edges, ColumnNames.of_settings(config.edge_columns))
    warn_of_unused(edges)
    people = None if config.nodes is None else read_table(config.nodes, ColumnNames.of_settings(config.node_columns))
    names, (source, target) = indexed_nodes(edges, people)
    types, type_names = indexed_types(edges)
    types = np.zeros(len(source), np.int64) if types is None else types
    kinds = Kinds(np.zeros(len(names), np.int64), ONE_KIND)
    if people is not None and "node_type" in people.columns:
        kinds = Kinds(*codes_of(people, "node_type"))
    return Tables(edges, people, names, source, target, types, tuple(type_names) or (ONE_TYPE,), kinds)


def _graph(config: TableData, tables: Tables, kept: NDArray[np.bool_] | None = None) -> Graph:
    """Make the graph of all edges, or of those that are kept."""
    edges = tables.edges
    rows = np.arange(len(tables.source)) if kept is None else np.flatnonzero(kept)
    weight = weights_of(edges)
    return Graph.from_edges(
        tables.source[rows],
        tables.target[rows],
        tables.edge_type[rows],
        num_nodes=len(tables.names),
        weight=None if weight is None else weight[rows],
        inverse=config.direction == "inverse",
        undirected=config.direction == "undirected",
        node_ids=None if are_indices(tables.names) else NodeIds.of(tables.names),
        edge_type_names=tables.edge_type_names,
        where=lambda row: f"{edges.path}, row {rows[row] + 1}",
    )


def _with_direction(config: Tabled, tables: Tables) -> Tabled:
    """Resolve the direction `auto`: undirected where every edge is listed both ways, else inverse."""
    if config.direction != "auto":
        return config
    listed = Graph.from_edges(tables.source, tables.target, tables.edge_type, num_nodes=len(tables.names),
                              num_edge_types=len(tables.edge_type_names))  # fmt: skip
    return config.model_copy(update={"direction": "undirected" if is_symmetric(listed) else "inverse"})


def _nodes(tables: Tables, features: Any) -> NodeTable:
    people = tables.people
    graphs = None if people is None or "graph" not in people.columns else codes_of(people, "graph")[0]
    types, names = (None, ()) if tables.node_type is None else (tables.node_type.astype(np.int16), tables.kinds.names)
    return NodeTable(len(tables.names), features, types, names, None if graphs is None else graphs.astype(np.int32))


def _classes(config: NodeTableData, tables: Tables) -> Dataset:
    """Make a data set of nodes with their classes, split by a column or by ratios."""
    people = tables.people
    assert people is not None
    config = _with_direction(config, tables)
    labels = read_labels(people, config.label)
    splits = node_splits(config, people, labels)
    encoding = learn_encoding(people, config, tables.kinds, splits["train"])
    targets = NodeTargets(labels.values, labels.names, splits)
    return Dataset(config.name, _graph(config, tables), targets, _nodes(tables, _encoded(encoding, tables)), encoding=encoding)


def _encoded(encoding: Encoding | None, tables: Tables) -> Floats | None:
    if encoding is None or tables.people is None:
        return None
    return encoding.encoded(tables.people, tables.kinds)


def node_splits(config: NodeTableData, people: Table, labels: Labels) -> dict[str, Ints]:
    """Nodes with a label, by the splits that a column says or by ratios."""
    if "split" not in people.columns:
        graphs = codes_of(people, "graph")[0] if "graph" in people.columns else None
        if graphs is None and config.split_by == "graphs":
            raise GraphError(
                f"data.split_by is graphs, but {people.path} does not say of which graph nodes are. Give data.graph."
            )
        if graphs is not None and splits_graphs(config, graphs, labels):
            return split_graphs(labels, graphs, config.ratios, config.seed)
        return split_nodes(labels, config.ratios, config.seed)
    splits, unlabelled = {}, 0
    for name, nodes in splits_of(people).items():
        labelled = nodes[labels.known[nodes]]
        unlabelled += len(nodes) - len(labelled)
        if labelled.size:
            splits[name] = labelled
    if "train" not in splits:
        raise GraphError(f"{people.path}, column {people.column_names['split']!r}: no node with a label is of the split "
                         "'train'. Mark what is to be learned from, or remove the column to split by ratios.")  # fmt: skip
    if unlabelled:
        warnings.warn(f"{unlabelled} nodes of splits have no label and were left out of these.", GatasWarning, stacklevel=4)
    return splits


def _links(config: LinkTableData, tables: Tables) -> Dataset:
    """Make a data set of links of the types asked for, held out of the graph."""
    config = _with_direction(config, tables)
    encoding = None if tables.people is None else learn_encoding(tables.people, config, tables.kinds, None)
    files = read_pair_files(config, tables.names)
    names = asked_types(config, tables.edge_type_names, files)
    kind = np.array([names.index(name) if name in names else UNASKED for name in tables.edge_type_names])
    listed = Links(tables.source, kind[tables.edge_type], tables.target, len(tables.names))
    given = {split: numbered_pairs(pairs, names, len(tables.names)) for split, pairs in files.items()}
    held = hold_out_links(
        listed,
        given,
        split=_edge_splits(tables.edges) if not given and "split" in tables.edges.columns else None,
        ratios=config.ratios,
        seed=config.seed,
        undirected=config.direction == "undirected",
        node_type=tables.node_type,
        where=str(tables.edges.path),
    )
    graph, nodes = _graph(config, tables, held.in_graph), _nodes(tables, _encoded(encoding, tables))
    return Dataset(config.name, graph, LinkTargets(names, held.splits, held.ends), nodes, encoding=encoding)


def _edge_splits(edges: Table) -> Ints:
    """Return 0, 1, 2 for train, valid, test and -1 for none, for each edge."""
    split = np.full(edges.num_rows, UNASKED)
    for number, name in enumerate(SPLITS):
        split[splits_of(edges).get(name, np.empty(0, np.int64))] = number
    return split
