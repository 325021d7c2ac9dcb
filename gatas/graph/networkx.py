"""Graphs of NetworkX, in and out."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa

from gatas.errors import GatasWarning, GraphError
from gatas.graph.graph import Graph
from gatas.graph.names import Names
from gatas.graph.node_columns import is_list, node_table
from gatas.graph.nodes import NodeTable
from gatas.graph.tables import Table, is_number_column


def from_networkx(
    graph: "nx.Graph[Any]",
    *,
    edge_type: str = "type",
    weight: str = "weight",
    features: str | Sequence[str] = (),
    label: str | None = None,
    split: str | None = None,
    inverse: bool = False,
) -> Graph:
    """Any NetworkX graph; undirected ones get both directions. `edge_type` and `weight` name edge attributes.

    `features`, `label` and `split` name node attributes: numbers, or one that is a vector; classes as numbers or text, none
    where a node has no label; and train, valid or test.

    >>> dataset = Dataset.from_graph(from_networkx(graph, features=["age", "height"], label="club", split="split"))
    """
    if inverse and not graph.is_directed():
        raise GraphError("the NetworkX graph is undirected, so every edge is its own inverse. Leave out inverse.")
    names = list(graph.nodes)
    number = {name: index for index, name in enumerate(names)}
    edges = list(graph.edges(data=True))
    types = _attribute(edges, edge_type)
    kinds = [] if types is None else _kinds(types)
    code = {kind: index for index, kind in enumerate(kinds)}
    return Graph.from_edges(
        [number[source] for source, _, _ in edges],
        [number[target] for _, target, _ in edges],
        None if types is None else [code[kind] for kind in types],
        num_nodes=len(names),
        weight=_attribute(edges, weight),
        inverse=inverse,
        undirected=not graph.is_directed(),
        node_names=None if _are_numbers(names) else Names.of(names),
        edge_type_names=[str(kind) for kind in kinds],
        nodes=_node_table(graph, [features] if isinstance(features, str) else list(features), {"label": label, "split": split}),
        where=lambda edge: f"the edge from {edges[edge][0]!r} to {edges[edge][1]!r}",
    )


def to_networkx(graph: Graph) -> "nx.MultiDiGraph[Any]":
    """A `MultiDiGraph` with the original ids, edge attribute `type` (its name), and `weight` where there is one."""
    result: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    names = range(graph.num_nodes) if graph.node_names is None else graph.node_names.tolist()
    result.add_nodes_from(names)
    weights = [{}] * graph.num_edges if graph.weight is None else [{"weight": float(weight)} for weight in graph.weight]
    for source, target, kind, weight in zip(
        graph.source.tolist(), graph.neighbour.tolist(), graph.edge_type.tolist(), weights, strict=True
    ):
        result.add_edge(names[source], names[target], type=graph.edge_type_names[kind], **weight)
    return result


def _node_table(graph: "nx.Graph[Any]", features: list[str], given: dict[str, str | None]) -> NodeTable | None:
    """Attributes as the columns of a table; those that have no use are said."""
    named = {name: column for name, column in given.items() if column is not None}
    there = {name for _, attributes in graph.nodes(data=True) for name in attributes}
    if unused := sorted(map(str, there - {*features, *named.values()})):
        warnings.warn(
            f"{len(unused)} attributes of nodes were not used: {', '.join(map(repr, unused))}. Name them by features, label or "
            "split if they should be.",
            GatasWarning,
            stacklevel=3,
        )
    if not features and not named:
        return None
    if missing := [name for name in (*features, *named.values()) if name not in there]:
        raise GraphError(
            f"no node has the attribute {missing[0]!r}; nodes have {', '.join(sorted(map(repr, there))) or 'none'}."
        )
    columns = {name: _node_column(graph, name) for name in (*features, *named.values())}
    for name in features:
        if not (is_number_column(columns[name]) or is_list(columns[name].type)):
            raise GraphError(f"the attribute {name!r} holds {columns[name].type}; features are numbers. Encode it first.")
    ours = {name: columns.pop(column) for name, column in named.items()}
    return node_table(Table(Path("the NetworkX graph"), ours, named, columns, graph.number_of_nodes()), None)


def _node_column(graph: "nx.Graph[Any]", name: str) -> Any:
    values = [attributes.get(name) for _, attributes in graph.nodes(data=True)]
    try:
        return pa.chunked_array([pa.array(values)])
    except (pa.ArrowException, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise GraphError(
            f"the attribute {name!r} of nodes is not of one kind ({reason}). Make it numbers, text or lists."
        ) from None


def _attribute(edges: Sequence[tuple[Any, Any, dict[str, Any]]], name: str) -> list[Any] | None:
    """An attribute of all edges, or None if none of them has it."""
    values = [attributes.get(name) for _, _, attributes in edges]
    missing = [value is None for value in values]
    if all(missing):
        return None
    if any(missing):
        source, target, _ = edges[missing.index(True)]
        raise GraphError(
            f"the edge from {source!r} to {target!r} lacks the attribute {name!r}, which others have. "
            "Give it to all edges, or to none."
        )
    return values


def _kinds(types: Sequence[Any]) -> list[Any]:
    """The distinct edge types in ascending order, all numbers or all text."""
    if len({isinstance(kind, str) for kind in types}) > 1:
        raise GraphError("edge types must be of one kind, but some are text and some are not. Make all of them text.")
    try:
        return sorted(set(types))
    except TypeError as error:
        raise GraphError(f"edge types cannot be put in order ({error}). Use text or integers.") from error


def _are_numbers(names: Sequence[Any]) -> bool:
    """Whether nodes are 0, 1, 2 … in order; 0.0 and False are equal to 0, but not the same id."""
    return all(type(name) is int and name == index for index, name in enumerate(names))
