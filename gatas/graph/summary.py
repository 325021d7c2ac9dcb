"""What a graph looks like, in numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gatas.graph.graph import Graph


@dataclass(frozen=True)
class Degrees:
    """Out-degrees over one edge type, among the nodes that have any such edge."""

    edge_type: str
    num_edges: int
    num_sources: int
    num_targets: int
    mean: float
    median: float
    p90: float
    p99: float
    max: int


@dataclass(frozen=True)
class Summary:
    """Counts of everything that makes a graph easy or hard to learn from."""

    num_nodes: int
    num_edges: int
    weighted: bool
    degrees: tuple[Degrees, ...]
    num_isolated: int  # neither out- nor in-edges, self-edges aside
    num_dangling: int  # in-edges, but no way out
    num_components: int
    largest_component: int
    num_self_edges: int
    num_repeated: int


def summarise(graph: Graph) -> Summary:
    """Count nodes, edges, degrees per type, isolated and dangling nodes, components, self and repeated edges."""
    source, target = graph.source, graph.neighbour
    proper = source != target
    out_degree = np.bincount(source[proper], minlength=graph.num_nodes)
    in_degree = np.bincount(target[proper], minlength=graph.num_nodes)
    component = components(graph)
    return Summary(
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        weighted=graph.weight is not None,
        degrees=_degrees(graph, source),
        num_isolated=int(((out_degree == 0) & (in_degree == 0)).sum()),
        num_dangling=int(((out_degree == 0) & (in_degree > 0)).sum()),
        num_components=int(component.max()) + 1,
        largest_component=int(np.bincount(component).max()),
        num_self_edges=int((~proper).sum()),
        num_repeated=graph.num_repeated,
    )


def components(graph: Graph) -> NDArray[np.int32]:
    """Return the weakly connected component of each node."""
    from scipy.sparse.csgraph import connected_components  # with scipy.linalg, which nothing else here needs

    ones = np.ones(graph.num_edges, np.int8)
    adjacency = sparse.csr_array((ones, graph.neighbour, graph.indptr), shape=(graph.num_nodes, graph.num_nodes))
    component: NDArray[np.int32] = connected_components(adjacency, directed=True, connection="weak")[1]
    return component


def _degrees(graph: Graph, source: NDArray[np.int32]) -> tuple[Degrees, ...]:
    """Count degrees with one sort by type, so that thousands of types cost no more than one."""
    order = np.argsort(graph.edge_type, kind="stable")
    ends = np.searchsorted(graph.edge_type[order], np.arange(1, graph.num_edge_types))
    parts = np.split(order, ends)[: graph.num_edge_types]
    return tuple(
        _degrees_of(name, source[part], graph.neighbour[part]) for name, part in zip(graph.edge_type_names, parts, strict=True)
    )


def _degrees_of(name: str, source: NDArray[np.int32], target: NDArray[np.int32]) -> Degrees:
    counts = np.unique(source, return_counts=True)[1]
    median, p90, p99 = np.quantile(counts, [0.5, 0.9, 0.99]).tolist() if counts.size else (0.0, 0.0, 0.0)
    return Degrees(
        edge_type=name,
        num_edges=source.size,
        num_sources=counts.size,
        num_targets=np.unique(target).size,
        mean=float(counts.mean()) if counts.size else 0.0,
        median=median,
        p90=p90,
        p99=p99,
        max=int(counts.max(initial=0)),
    )
