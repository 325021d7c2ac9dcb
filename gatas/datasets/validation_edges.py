"""Links of validation as edges of the graph, for the final test alone."""

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gatas.datasets.negatives import pair_keys
from gatas.errors import GatasWarning, GraphError
from gatas.graph import NO_INVERSE, Graph
from gatas.graph.counts import counted
from gatas.graph.edges import EdgeList
from gatas.graph.inputs import Floats, Ints

if TYPE_CHECKING:
    from gatas.datasets.dataset import Dataset


def with_validation_edges(dataset: "Dataset") -> "Dataset":
    """Return the data set with positives of validation in its graph; see `Dataset.with_validation_edges`."""
    pairs, graph = dataset.link_targets.splits.get("valid"), dataset.graph
    if pairs is None:
        raise GraphError(f"{dataset.name} has no split 'valid', so there are no links of it to add to the graph.")
    names = dict(zip(graph.edge_type_names, range(graph.num_edge_types), strict=True))
    kind = np.array([names.get(name, NO_INVERSE) for name in dataset.names], np.int64)[pairs.edge_type]
    unknown = (pairs.label == 1) & (kind < 0)
    if unknown.any():
        warnings.warn(
            f"{dataset.name}: {counted(int(unknown.sum()), 'validation link')} of types that no edge has cannot be edges and "
            "were left out of the graph.",
            GatasWarning,
            stacklevel=3,
        )
    chosen = (pairs.label == 1) & (kind >= 0)
    added = _new_edges(graph, pairs.source[chosen], kind[chosen], pairs.target[chosen])
    return replace(dataset, graph=_with_edges(graph, added), store=None)


def _new_edges(graph: Graph, source: Ints, kind: Ints, target: Ints) -> EdgeList:
    """Add to edges their inverses, and leave out repeats and what the graph has already."""
    inverse = np.array(graph.inverse_of, np.int64)[kind]
    back = inverse != NO_INVERSE
    source, target, kind = (
        np.concatenate([source, target[back]]),
        np.concatenate([target, source[back]]),
        np.concatenate([kind, inverse[back]]),
    )
    key = pair_keys(source, kind, target, graph.num_nodes)
    old = pair_keys(graph.source.astype(np.int64), graph.edge_type.astype(np.int64), graph.neighbour, graph.num_nodes)
    first = np.unique(key, return_index=True)[1]
    new = first[~np.isin(key[first], old)]
    return EdgeList(source[new], kind[new], target[new], _weights(graph, kind[new]))


def _weights(graph: Graph, kind: Ints) -> Floats | None:
    """Give new edges the mean weight of their type's edges, where edges have weights; 1 for a type without edges."""
    if graph.weight is None:
        return None
    count = np.bincount(graph.edge_type, minlength=graph.num_edge_types)
    total = np.bincount(graph.edge_type, graph.weight, minlength=graph.num_edge_types)
    mean = np.divide(total, count, out=np.ones(graph.num_edge_types), where=count > 0)
    return mean[kind].astype(np.float32)


def _with_edges(graph: Graph, added: EdgeList) -> Graph:
    columns = ((graph.source, added.source), (graph.neighbour, added.target), (graph.edge_type, added.edge_type))
    source, target, kind = (np.concatenate([old, new]).astype(np.int64) for old, new in columns)
    return Graph.from_edges(
        source,
        target,
        kind,
        num_nodes=graph.num_nodes,
        num_edge_types=graph.num_edge_types,
        weight=None if graph.weight is None or added.weight is None else np.concatenate([graph.weight, added.weight]),
        node_ids=graph.node_ids,
        edge_type_names=graph.edge_type_names,
        inverse_of=graph.inverse_of,
    )
