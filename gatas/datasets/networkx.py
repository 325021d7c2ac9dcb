"""Data sets of NetworkX: node attributes as features, labels and splits; edges of which some are held out as links."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa

from gatas.datasets.config import NODE_REGRESSION, ConfigTask, Direction, Ratios
from gatas.datasets.dataset import Dataset
from gatas.datasets.held_out import IndexedPairs, hold_out_links
from gatas.datasets.labels import Labels, read_numbers
from gatas.datasets.node_columns import features_of, labels_of, splits_of
from gatas.datasets.node_table import NodeTable
from gatas.datasets.splitting import split_nodes
from gatas.datasets.targets import LinkTargets, NodeTargets
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph
from gatas.graph.column_types import is_list, is_number_column
from gatas.graph.networkx import from_networkx
from gatas.graph.tables import Table

WHERE = Path("the NetworkX graph")


def dataset_from_networkx(
    graph: "nx.Graph[Any]",
    *,
    task: ConfigTask = "node classification",
    features: str | Sequence[str] = (),
    label: str | None = None,
    split: str | None = None,
    edge_type: str = "type",
    weight: str = "weight",
    direction: Direction = "auto",
    link_types: Sequence[str] | None = None,
    ratios: Ratios | Mapping[str, float] | None = None,
    name: str = "own data",
    seed: int = 0,
) -> Dataset:
    """Make a data set of a NetworkX graph; arguments are those of `Dataset.from_networkx`."""
    shares = ratios if isinstance(ratios, Ratios) else Ratios(**(ratios or {}))
    wanted = [features] if isinstance(features, str) else list(features)
    table = _node_attributes(graph, wanted, {"label": label, "split": split})
    directions = _directions(graph, direction)
    named: Any = {"edge_type": edge_type, "weight": weight}
    rows = NodeTable(graph.number_of_nodes(), features_of(table, None) if wanted else None)
    if task == "link prediction":
        return _links(from_networkx(graph, **named), rows, directions, link_types, shares, name, seed)
    if label is None:
        what = "numbers" if task == NODE_REGRESSION else "classes"
        raise GraphError(f"{task} needs {what}. Give the node attribute that holds them as label.")
    if task == NODE_REGRESSION:
        numbers = read_numbers(table, None)
        splits = splits_of(table) or split_nodes(numbers, shares, seed)
        return Dataset(name, from_networkx(graph, **named, **directions), numbers.targets(task, splits), rows)
    labels, names = labels_of(table)
    assert labels is not None
    known = np.ones(len(labels), np.bool_) if labels.ndim == 2 else labels >= 0
    splits = splits_of(table) or split_nodes(Labels(labels, known, names), shares, seed)
    return Dataset(name, from_networkx(graph, **named, **directions), NodeTargets(labels, names, splits), rows)


def _directions(graph: "nx.Graph[Any]", direction: Direction) -> dict[str, Any]:
    if not graph.is_directed():
        return {}
    return {"inverse": direction in ("auto", "inverse"), "undirected": direction == "undirected"}


def _links(
    whole: Graph,
    nodes: NodeTable,
    directions: dict[str, Any],
    link_types: Sequence[str] | None,
    ratios: Ratios,
    name: str,
    seed: int,
) -> Dataset:
    """Hold links of the types asked for out of the graph."""
    asked = tuple(link_types or whole.edge_type_names)
    if unknown := [one for one in asked if one not in whole.edge_type_names]:
        known = ", ".join(map(repr, whole.edge_type_names))
        raise GraphError(f"{unknown[0]!r} is not an edge type of the graph; it has {known}.")
    kinds = np.array([asked.index(one) if one in asked else -1 for one in whole.edge_type_names])
    undirected = directions.get("undirected", not directions)
    listed = IndexedPairs(
        whole.source.astype(np.int64), kinds[whole.edge_type], whole.neighbour.astype(np.int64), whole.num_nodes
    )
    held = hold_out_links(
        listed, {}, split=None, ratios=ratios, seed=seed, undirected=undirected, node_type=None, where=str(WHERE)
    )
    kept = held.in_graph
    graph = Graph.from_edges(
        listed.source[kept],
        listed.target[kept],
        whole.edge_type[kept].astype(np.int64),
        num_nodes=whole.num_nodes,
        weight=None if whole.weight is None else whole.weight[kept],
        node_ids=whole.node_ids,
        edge_type_names=whole.edge_type_names,
        inverse=directions.get("inverse", False),
        undirected=undirected,
    )
    return Dataset(name, graph, LinkTargets(asked, held.splits, held.ends, held.ranked), nodes)


def _node_attributes(graph: "nx.Graph[Any]", features: list[str], given: dict[str, str | None]) -> Table:
    """Return node attributes as the columns of a table; a warning names those that have no use."""
    named = {name: column for name, column in given.items() if column is not None}
    there = {name for _, attributes in graph.nodes(data=True) for name in attributes}
    if unused := sorted(map(str, there - {*features, *named.values()})):
        count = "1 attribute of nodes was" if len(unused) == 1 else f"{len(unused)} attributes of nodes were"
        warnings.warn(
            f"{count} not used: {', '.join(map(repr, unused))}. Name them by features, label or split if they should be.",
            GatasWarning,
            stacklevel=4,
        )
    if missing := [name for name in (*features, *named.values()) if name not in there]:
        raise GraphError(
            f"no node has the attribute {missing[0]!r}; nodes have {', '.join(sorted(map(repr, there))) or 'none'}."
        )
    columns = {name: _node_column(graph, name) for name in (*features, *named.values())}
    for name in features:
        if not (is_number_column(columns[name]) or is_list(columns[name].type)):
            raise GraphError(f"the attribute {name!r} holds {columns[name].type}; features are numbers. Encode it first.")
    ours = {name: columns.pop(column) for name, column in named.items()}
    return Table(WHERE, ours, named, columns, graph.number_of_nodes())


def _node_column(graph: "nx.Graph[Any]", name: str) -> Any:
    values = [attributes.get(name) for _, attributes in graph.nodes(data=True)]
    try:
        return pa.chunked_array([pa.array(values)])
    except (pa.ArrowException, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise GraphError(
            f"the attribute {name!r} of nodes is not of one kind ({reason}). Make it numbers, text or lists."
        ) from None
