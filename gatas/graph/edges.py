"""From listed edges to the set of triplets Z (§3.1): reverses added, zero weights dropped, repeats collapsed, sorted."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError
from gatas.graph.inputs import FLOAT32, Floats, Ints, Where, as_indices, as_weights

Repeated = Literal["collapse", "count"]
MAX_NODES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class EdgeList:
    """Triplets (source, edge_type, target), weighted or not, and how many listed edges were repeats of another."""

    source: Ints
    edge_type: Ints
    target: Ints
    weight: Floats | None
    num_repeated: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def take(self, chosen: NDArray[Any]) -> "EdgeList":
        weight = None if self.weight is None else self.weight[chosen]
        return replace(
            self,
            source=self.source[chosen],
            edge_type=self.edge_type[chosen],
            target=self.target[chosen],
            weight=weight,
        )


def listed_edges(source: Any, target: Any, edge_type: Any, weight: Any, where: Where) -> EdgeList:
    """Check what the user listed, column by column; an edge of weight 0 cannot be walked and is dropped with a warning."""
    sources, targets = as_indices(source, "source", where), as_indices(target, "target", where)
    types = np.zeros(len(sources), np.int64) if edge_type is None else as_indices(edge_type, "edge_type", where)
    weights = None if weight is None else as_weights(weight, where)
    for name, column in (("target", targets), ("edge_type", types), ("weight", weights)):
        if column is not None and len(column) != len(sources):
            raise GraphError(f"{name} has {len(column)} values, but source has {len(sources)}. Give one per edge.")
    edges = EdgeList(sources, types, targets, weights)
    if weights is not None and (weights == 0).any():
        dropped = int((weights == 0).sum())
        warnings.warn(f"{dropped} edges have weight 0 and were dropped.", GatasWarning, stacklevel=3)
        edges = edges.take(weights > 0)
    return edges


def checked_range(edges: EdgeList, num_nodes: int | None, where: Where) -> int:
    """The number of nodes, given or found; no edge may point outside it."""
    found = max(edges.source.max(initial=-1), edges.target.max(initial=-1)) + 1
    if num_nodes is None:
        num_nodes = int(found)
    if num_nodes < 1:
        raise GraphError("the graph has no nodes. Give at least one edge, or num_nodes.")
    if num_nodes > MAX_NODES:
        raise GraphError(f"the graph has {num_nodes:,} nodes, but at most {MAX_NODES:,} fit. Renumber the nodes from 0.")
    if found > num_nodes:
        at = int(np.argmax((edges.source >= num_nodes) | (edges.target >= num_nodes)))
        node = max(edges.source[at], edges.target[at])
        raise GraphError(
            f"{where(at)} points to node {node}, but the graph has {num_nodes} nodes (0 to {num_nodes - 1}). "
            f"Pass num_nodes={found}, or renumber the nodes."
        )
    return num_nodes


def with_inverse_types(edges: EdgeList, num_edge_types: int, num_nodes: int) -> EdgeList:
    """(i, r, j) also gives (j, r⁻¹, i); the inverse of type k is type k + num_edge_types."""
    inverse_type = edges.edge_type + num_edge_types
    both = _joined(edges, replace(edges, source=edges.target, edge_type=inverse_type, target=edges.source))
    return both.take(_sorted(both, num_nodes)[0])


def with_reverses(edges: EdgeList, num_nodes: int) -> EdgeList:
    """(i, r, j) also gives (j, r, i), unless the data says so itself: doing it twice changes nothing."""
    both = _joined(edges, replace(edges, source=edges.target, target=edges.source))
    order, first = _sorted(both, num_nodes)
    if both.weight is not None and (pairs := _differing_weights(both.weight[order], first)):
        warnings.warn(
            f"{pairs} pairs of nodes are listed in both directions with different weights; each direction keeps its own.",
            GatasWarning,
            stacklevel=3,
        )
    return both.take(order[first])  # the sort is stable: of two equal triplets, the one that was listed comes first


def collapsed(edges: EdgeList, num_nodes: int, repeated: Repeated) -> EdgeList:
    """Sort by (source, edge_type, target); repeats become one edge whose weights add up ("count": 1 for each)."""
    if repeated == "count" and edges.weight is None:
        edges = replace(edges, weight=np.ones(len(edges), np.float32))
    order, first = _sorted(edges, num_nodes)
    unique = edges.take(order[first])
    num_repeated = len(edges) - len(unique)
    if edges.weight is not None and num_repeated:
        total = np.add.reduceat(edges.weight[order].astype(np.float64), np.flatnonzero(first))
        if total.max() > FLOAT32.max:
            raise GraphError(f"the weights of a repeated edge add up to {total.max():.3g}; at most {FLOAT32.max:.0e} fits.")
        unique = replace(unique, weight=total.astype(np.float32))
    return replace(unique, num_repeated=edges.num_repeated + num_repeated)


def _joined(left: EdgeList, right: EdgeList) -> EdgeList:
    weight = None
    if left.weight is not None and right.weight is not None:
        weight = np.concatenate([left.weight, right.weight])
    return EdgeList(
        np.concatenate([left.source, right.source]),
        np.concatenate([left.edge_type, right.edge_type]),
        np.concatenate([left.target, right.target]),
        weight,
        left.num_repeated,
    )


def _sorted(edges: EdgeList, num_nodes: int) -> tuple[Ints, NDArray[np.bool_]]:
    """The order by (source, edge_type, target), and which of the ordered edges are the first of their kind."""
    num_types = int(edges.edge_type.max(initial=0)) + 1
    if num_types * num_nodes * num_nodes < 2**63:  # one sort of one key is several times faster than three
        key = (edges.source * num_types + edges.edge_type) * num_nodes + edges.target
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        changes = ordered[1:] != ordered[:-1]
    else:
        order = np.lexsort((edges.target, edges.edge_type, edges.source))
        columns = [column[order] for column in (edges.source, edges.edge_type, edges.target)]
        changes = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return order, np.concatenate([np.ones(min(1, len(order)), bool), changes])


def _differing_weights(weight: Floats, first: NDArray[np.bool_]) -> int:
    starts = np.flatnonzero(first)
    differs = np.maximum.reduceat(weight, starts) != np.minimum.reduceat(weight, starts) if starts.size else starts
    return int(differs.sum()) // 2
