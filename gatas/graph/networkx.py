"""Graphs of NetworkX, in and out."""

from collections.abc import Sequence
from typing import Any

import networkx as nx

from gatas.errors import GraphError
from gatas.graph.graph import Graph
from gatas.graph.ids import NodeIds


def from_networkx(
    graph: "nx.Graph[Any]", *, edge_type: str = "type", weight: str = "weight", inverse: bool = False, undirected: bool = False
) -> Graph:
    """Make a graph of any NetworkX graph; undirected ones get both directions.

    Args:
        graph: Nodes may be any integers or any text, which become ids.
        edge_type: Edge attribute that holds the type of an edge, if edges have it.
        weight: Edge attribute that holds the weight of an edge, if edges have it.
        inverse: Give every edge type of a directed graph an inverse type of its own.
        undirected: Add the reverse of every edge of a directed graph under the same type.
    """
    if inverse and not graph.is_directed():
        raise GraphError("the NetworkX graph is undirected, so every edge is its own inverse. Leave out inverse.")
    ids = list(graph.nodes)
    index_of = {one: index for index, one in enumerate(ids)}
    edges = list(graph.edges(data=True))
    types = _attribute(edges, edge_type)
    kinds = [] if types is None else _kinds(types)
    code = {kind: index for index, kind in enumerate(kinds)}
    return Graph.from_edges(
        [index_of[source] for source, _, _ in edges],
        [index_of[target] for _, target, _ in edges],
        None if types is None else [code[kind] for kind in types],
        num_nodes=len(ids),
        weight=_attribute(edges, weight),
        inverse=inverse,
        undirected=undirected or not graph.is_directed(),
        node_ids=None if _are_indices(ids) else NodeIds.of(ids),
        edge_type_names=[str(kind) for kind in kinds],
        where=lambda edge: f"the edge from {edges[edge][0]!r} to {edges[edge][1]!r}",
    )


def to_networkx(graph: Graph) -> "nx.MultiDiGraph[Any]":
    """Return a `MultiDiGraph` with the original ids, edge attribute `type` (its name), and `weight` where there is one."""
    result: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    ids = range(graph.num_nodes) if graph.node_ids is None else graph.node_ids.tolist()
    result.add_nodes_from(ids)
    weights = [{}] * graph.num_edges if graph.weight is None else [{"weight": float(weight)} for weight in graph.weight]
    for source, target, kind, weight in zip(
        graph.source.tolist(), graph.neighbour.tolist(), graph.edge_type.tolist(), weights, strict=True
    ):
        result.add_edge(ids[source], ids[target], type=graph.edge_type_names[kind], **weight)
    return result


def _attribute(edges: Sequence[tuple[Any, Any, dict[str, Any]]], name: str) -> list[Any] | None:
    """Return an attribute of all edges, or None if none of them has it."""
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
    """Return the distinct edge types in ascending order, all numbers or all text."""
    if len({isinstance(kind, str) for kind in types}) > 1:
        raise GraphError("edge types must be of one kind, but some are text and some are not. Make all of them text.")
    try:
        return sorted(set(types))
    except TypeError as error:
        raise GraphError(f"edge types cannot be put in order ({error}). Use text or integers.") from error


def _are_indices(ids: Sequence[Any]) -> bool:
    """Whether nodes are 0, 1, 2 … in order; 0.0 and False are equal to 0, but not the same id."""
    return all(type(one) is int and one == index for index, one in enumerate(ids))
