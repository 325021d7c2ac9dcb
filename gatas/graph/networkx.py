"""Graphs of NetworkX, in and out."""

from typing import Any

import networkx as nx

from gatas.errors import GraphError
from gatas.graph.graph import Graph
from gatas.graph.names import Names


def from_networkx(graph: nx.Graph, *, edge_type: str = "type", weight: str = "weight", inverse: bool = False) -> Graph:
    """Any NetworkX graph; `edge_type` and `weight` name edge attributes. Undirected graphs get both directions."""
    names = list(graph.nodes)
    number = {name: index for index, name in enumerate(names)}
    edges = list(graph.edges(data=True))
    types = [attributes.get(edge_type) for _, _, attributes in edges]
    weights = [attributes.get(weight) for _, _, attributes in edges]
    for what, values in ((edge_type, types), (weight, weights)):
        if any(value is None for value in values) and any(value is not None for value in values):
            raise GraphError(f"only some edges have the attribute {what!r}. Give it to all of them, or to none.")
    typed, weighted = bool(types) and types[0] is not None, bool(weights) and weights[0] is not None
    kinds = sorted({str(kind) for kind in types}) if typed else []
    return Graph.from_edges(
        [number[source] for source, _, _ in edges],
        [number[target] for _, target, _ in edges],
        [kinds.index(str(kind)) for kind in types] if typed else None,
        num_nodes=len(names),
        weight=weights if weighted else None,
        inverse=inverse,
        undirected=not graph.is_directed(),
        node_names=None if names == list(range(len(names))) else Names.of(names),
        edge_type_names=kinds,
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
