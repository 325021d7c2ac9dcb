"""Graphs of NetworkX, in and out."""

from collections.abc import Sequence
from typing import Any

import networkx as nx

from gatas.errors import GraphError
from gatas.graph.graph import Graph
from gatas.graph.names import Names


def from_networkx(graph: "nx.Graph[Any]", *, edge_type: str = "type", weight: str = "weight", inverse: bool = False) -> Graph:
    """Any NetworkX graph; `edge_type` and `weight` name edge attributes. Undirected graphs get both directions."""
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
