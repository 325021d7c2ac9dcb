"""From listed edges to the set of triplets Z (§3.1): reverses added, zero weights dropped, repeats collapsed, sorted."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GatasWarning, GraphError
from gatas.graph.counts import counted
from gatas.graph.inputs import FLOAT32, Floats, Ints, Where, as_count, as_indices, as_weights

Repeated = Literal["collapse", "count"]
MAX_NODES = 2**31 - 1
MAX_EDGE_TYPES = 2**20


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
    """Check what the user listed, column by column."""
    sources, targets = as_indices(source, "source", where), as_indices(target, "target", where)
    types = np.zeros(len(sources), np.int64) if edge_type is None else as_indices(edge_type, "edge_type", where)
    weights = None if weight is None else as_weights(weight, where)
    for name, column in (("target", targets), ("edge_type", types), ("weight", weights)):
        if column is not None and len(column) != len(sources):
            raise GraphError(f"{name} has {len(column)} values, but source has {len(sources)}. Give one per edge.")
    return EdgeList(sources, types, targets, weights)


def without_zeros(edges: EdgeList) -> EdgeList:
    """Drop edges of weight 0, which cannot be walked, with a warning; their nodes and types stay known."""
    if edges.weight is None or edges.weight.all():
        return edges
    dropped = int((edges.weight == 0).sum())
    warn_of_zeros(dropped, stacklevel=4)
    return edges.take(edges.weight > 0)


def warn_of_zeros(dropped: int, stacklevel: int) -> None:
    """Count the edges that were dropped because they weigh nothing."""
    count, verb = counted(dropped, "edge has", "edges have"), "was" if dropped == 1 else "were"
    warnings.warn(f"{count} weight 0 and {verb} dropped.", GatasWarning, stacklevel=stacklevel)


def checked_range(edges: EdgeList, num_nodes: int | None, where: Where) -> int:
    """Return the number of nodes, given or found; no edge may point outside it."""
    found = max(int(edges.source.max(initial=-1)), int(edges.target.max(initial=-1))) + 1  # Python's ints do not wrap
    num_nodes = found if num_nodes is None else as_count(num_nodes, "num_nodes")
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


def numbered_types(types: Ints, num_edge_types: int | None, names: Sequence[str], where: Where) -> tuple[Ints, tuple[str, ...]]:
    """Number edge types from 0 without gaps, with a name for each. A given number of types is taken as it is."""
    if num_edge_types is None and not names:
        return _compacted(types)
    count = len(names) if num_edge_types is None else as_count(num_edge_types, "num_edge_types")
    if names and len(names) != count:
        raise GraphError(f"{len(names)} edge type names were given for {count} types. Give one per type.")
    if count > MAX_EDGE_TYPES:
        raise GraphError(f"num_edge_types is {count:,}, but at most {MAX_EDGE_TYPES:,} fit. Leave it out to renumber types.")
    if types.size and types.max() >= count:
        at = int(np.argmax(types >= count))
        raise GraphError(
            f"{where(at)} has type {types[at]}, but there are {count} types (0 to {count - 1}). "
            f"Pass num_edge_types={types.max() + 1}, or renumber the types."
        )
    return types, tuple(names) or tuple(str(number) for number in range(count))


def _compacted(types: Ints) -> tuple[Ints, tuple[str, ...]]:
    highest = int(types.max(initial=-1))
    few = highest < 2 * MAX_EDGE_TYPES  # counting is many times faster than sorting
    used = np.flatnonzero(np.bincount(types)) if few else np.unique(types)
    names = tuple(str(number) for number in used)
    if used.size > MAX_EDGE_TYPES:
        raise GraphError(f"there are {used.size:,} edge types, but at most {MAX_EDGE_TYPES:,} fit. Are these node ids?")
    if used.size == highest + 1:
        return types, names
    warnings.warn(
        f"edge types are numbered up to {highest}, but only {used.size} occur; they were renumbered 0 to "
        f"{used.size - 1} and keep their numbers as names. Pass num_edge_types to keep the numbers.",
        GatasWarning,
        stacklevel=4,
    )
    return np.searchsorted(used, types).astype(np.int64), names


def inverse_names(names: Sequence[str]) -> tuple[str, ...]:
    """Name inverse types: `likes⁻¹`, unless the data has a type of that name, then `likes⁻¹⁻¹` and so on."""
    found: list[str] = []
    for name in names:
        inverse = f"{name}⁻¹"
        while inverse in names or inverse in found:
            inverse += "⁻¹"
        found.append(inverse)
    return tuple(found)


def with_inverse_types(edges: EdgeList, num_edge_types: int, num_nodes: int) -> EdgeList:
    """Add (j, r⁻¹, i) for each (i, r, j); the inverse of type k is type k + num_edge_types."""
    inverse_type = edges.edge_type + num_edge_types
    both = _joined(edges, replace(edges, source=edges.target, edge_type=inverse_type, target=edges.source))
    return _distinct(both, num_nodes) if both.weight is None else both.take(_sorted(both, num_nodes)[0])


def with_reverses(edges: EdgeList, num_nodes: int) -> EdgeList:
    """Add (j, r, i) for each (i, r, j), unless the data says so itself: doing it twice changes nothing."""
    both = _joined(edges, replace(edges, source=edges.target, target=edges.source))
    if both.weight is None:
        return _distinct(both, num_nodes)
    order, first = _sorted(both, num_nodes)
    if pairs := _differing_weights(both.weight[order], first):
        warn_of_differing_weights(pairs, stacklevel=4)
    return both.take(order[first])  # the sort is stable: of two equal triplets, the one that was listed comes first


def warn_of_differing_weights(pairs: int, stacklevel: int) -> None:
    """Count the pairs of nodes whose two directions have different weights."""
    count = counted(pairs, "pair of nodes is", "pairs of nodes are")
    text = f"{count} listed in both directions with different weights; each direction keeps its own."
    warnings.warn(text, GatasWarning, stacklevel=stacklevel)


def collapsed(edges: EdgeList, num_nodes: int, repeated: Repeated) -> EdgeList:
    """Sort by (source, edge_type, target); repeats become one edge whose weights add up ("count": 1 for each)."""
    if repeated == "count" and edges.weight is None:
        edges = replace(edges, weight=np.ones(len(edges), np.float32))
    if edges.weight is None:
        unique = _distinct(edges, num_nodes)
        return replace(unique, num_repeated=len(edges) - len(unique))
    order, first = _sorted(edges, num_nodes)
    unique = edges.take(order[first])
    if len(unique) < len(edges):
        total = np.add.reduceat(edges.weight[order].astype(np.float64), np.flatnonzero(first))
        if total.max() > FLOAT32.max:
            at = int(total.argmax())
            raise GraphError(
                f"the weights of the repeated edge from node {unique.source[at]} to node {unique.target[at]} add up to "
                f"{total[at]:.3g}, but at most {FLOAT32.max:.0e} fits. Rescale the weights."
            )
        unique = replace(unique, weight=total.astype(np.float32))
    return replace(unique, num_repeated=len(edges) - len(unique))


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


def _keys(edges: EdgeList, num_types: int, num_nodes: int) -> Ints | None:
    """Return one number per triplet, ascending as triplets do; None where that would overflow."""
    if num_types * num_nodes * num_nodes >= 2**63:
        return None
    keys: Ints = (edges.source * num_types + edges.edge_type) * num_nodes + edges.target
    return keys


def _distinct(edges: EdgeList, num_nodes: int) -> EdgeList:
    """Sort unweighted edges, each once. Sorting keys and taking them apart again beats ordering three columns."""
    num_types = int(edges.edge_type.max(initial=0)) + 1
    keys = _keys(edges, num_types, num_nodes)
    if keys is None:
        order, first = _sorted(edges, num_nodes)
        return edges.take(order[first])
    keys.sort()
    rest, target = np.divmod(keys[_changes(keys)], num_nodes)
    source, edge_type = np.divmod(rest, num_types)
    return replace(edges, source=source, edge_type=edge_type, target=target)


def _sorted(edges: EdgeList, num_nodes: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the order by (source, edge_type, target), and which of the ordered edges are the first of their kind."""
    keys = _keys(edges, int(edges.edge_type.max(initial=0)) + 1, num_nodes)
    if keys is not None:
        order = np.argsort(keys, kind="stable")
        return order, _changes(keys[order])
    order = np.lexsort((edges.target, edges.edge_type, edges.source))
    return order, _changes(*(column[order] for column in (edges.source, edges.edge_type, edges.target)))


def _changes(*columns: Ints) -> NDArray[np.bool_]:
    """Return where a row differs from the one before it; the first always does."""
    first = np.ones(len(columns[0]), bool)
    first[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return first


def _differing_weights(weight: Floats, first: NDArray[np.bool_]) -> int:
    starts = np.flatnonzero(first)
    differs = np.maximum.reduceat(weight, starts) != np.minimum.reduceat(weight, starts) if starts.size else starts
    return int(differs.sum()) // 2
