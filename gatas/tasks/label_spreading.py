"""Labels spread over the graph (Zhou et al. 2004), as far as they reach: what they say of nodes that have none.

N nodes, K classes, A ways to spread: strengths, of every matrix.
"""

from collections.abc import Sequence
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from gatas.datasets import Dataset, NodeTargets
from gatas.errors import ConfigError
from gatas.graph import Graph
from gatas.tasks.part_weights import PRIOR

STRENGTHS = (0.5, 0.9, 0.99)
"""α: the share that a node takes from its neighbours at each iteration. The larger it is, the farther labels reach."""
ITERATIONS = 50
SMOOTHING = 0.1
"""The share of each node's scores that all classes have alike: one whose labels do not reach a node is unlikely, no more."""
FITTED_NODES = 4096
"""Validation nodes that weights are fitted to, at most."""
FLATTEST, STEEPEST = 0.05, 20.0
"""What logits are multiplied by, at least and at most, while weights are fitted."""

_made: WeakKeyDictionary[Dataset, ReferenceType[Tensor]] = WeakKeyDictionary()


def spread_labels(dataset: Dataset) -> Tensor:
    """Return (A, N, K) evidence of each class, in nats above the mean over classes; models of one data set share it.

    It is zero where no label reaches, and for all training nodes: their own labels come back to them over any edge.
    """
    known = _made.get(dataset)
    found = None if known is None else known()
    if found is None:
        found = torch.from_numpy(_spread(dataset))
        _made[dataset] = ref(found)
    return found


def check_spreads(dataset: Dataset, *, trains: bool) -> None:
    """Refuse data whose labels cannot be spread; data that is mapped may be answered from, but not trained on."""
    if not isinstance(dataset.targets, NodeTargets) or dataset.targets.multi_label:
        raise ConfigError(
            f"model.label_spreading is true, but {dataset.name} is for {dataset.task}: it is for nodes with one class each. "
            "Set it to false."
        )
    if dataset.mapped and trains:
        raise ConfigError(
            f"model.label_spreading is true, but {dataset.name} is mapped from a store: labels are spread in memory. Set it "
            "to false."
        )


def _spread(dataset: Dataset) -> NDArray[np.float32]:
    targets = dataset.node_targets
    train = np.asarray(targets.splits["train"])
    labels, num_classes = np.asarray(targets.labels)[train], len(targets.names)
    start = np.zeros((dataset.graph.num_nodes, num_classes), np.float32)
    start[train, labels] = 1.0
    matrices = spreading_matrices(dataset.graph)
    found = np.empty((len(matrices) * len(STRENGTHS), *start.shape), np.float32)
    for place, matrix in enumerate(matrices):
        own = slice(place * len(STRENGTHS), (place + 1) * len(STRENGTHS))
        for scores in spread_over(matrix, start, STRENGTHS, out=found[own]):
            _make_evidence(scores)
    found[:, train] = 0.0
    return found


def spreading_matrices(graph: Graph) -> list[sparse.csr_array]:
    """Return what labels are spread by: S, and for edges of several types two more, which weigh hubs and types otherwise."""
    adjacency = _adjacency(graph)
    if len(graph.original_edge_types) == 1:
        return [_normalised(adjacency)]
    return [_normalised(adjacency), _shared_out(adjacency), _types_alike(graph)]


def normalised_adjacency(graph: Graph) -> sparse.csr_array:
    """Return S = D^-1/2 A D^-1/2 of the graph without types and directions; self-edges do not count."""
    return _normalised(_adjacency(graph))


def _adjacency(graph: Graph) -> sparse.csr_array:
    """Return A, of the larger weight where two nodes are joined both ways."""
    source, other, _, weight = _edges(graph)
    adjacency = sparse.coo_array((weight, (source, other)), shape=(graph.num_nodes, graph.num_nodes)).tocsr()
    if graph.weight is None:
        adjacency.data[:] = 1.0  # edges of several types between two nodes are one
    return sparse.csr_array(adjacency.maximum(adjacency.T))


def _edges(graph: Graph) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[Any], NDArray[np.float32]]:
    """Return the source, the other end, the type and the weight of all edges but self-edges."""
    source = np.repeat(np.arange(graph.num_nodes, dtype=np.int32), np.diff(graph.indptr))
    other, kind = np.asarray(graph.neighbour), np.asarray(graph.edge_type)
    weight = np.ones(len(other), np.float32) if graph.weight is None else np.asarray(graph.weight, np.float32)
    real = source != other
    return source[real], other[real], kind[real], weight[real]


def _normalised(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 A D^-1/2."""
    root = _inverse(np.sqrt(adjacency.sum(axis=1, dtype=np.float64)))
    return _scaled(adjacency, np.repeat(root, np.diff(adjacency.indptr)) * root[adjacency.indices])


def _shared_out(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return A D^-1: a node shares what it has among its neighbours, so that a hub says little to each."""
    return _scaled(adjacency, _inverse(adjacency.sum(axis=0, dtype=np.float64))[adjacency.indices])


def _types_alike(graph: Graph) -> sparse.csr_array:
    """Return the mean over the edge types that a node has, each of the neighbours of that type by their weights.

    So the edges of a type count as much as those of any other, however many they are and whatever its weights are like.
    """
    source, other, kind, weight = _edges(graph)
    _, group = np.unique(source.astype(np.int64) * graph.num_edge_types + kind, return_inverse=True)
    value = weight * _inverse(np.bincount(group, weight.astype(np.float64)).astype(np.float64))[group]
    matrix = sparse.coo_array((value, (source, other)), shape=(graph.num_nodes, graph.num_nodes)).tocsr()
    return _scaled(matrix, np.repeat(_inverse(matrix.sum(axis=1, dtype=np.float64)), np.diff(matrix.indptr)))


def _inverse(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / values; zeros where they are zero."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0)


def _scaled(matrix: sparse.csr_array, factors: NDArray[np.float64]) -> sparse.csr_array:
    """Return a matrix whose entries are multiplied, in float32."""
    return sparse.csr_array(((matrix.data * factors).astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def spread_over(
    matrix: sparse.csr_array,
    start: NDArray[np.float32],
    strengths: Sequence[float],
    iterations: int = ITERATIONS,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Return (A, N, K): F after so many iterations of F = α S F + (1 - α) Y, from Y on, for each α.

    That is αⁿ Sⁿ Y + (1 - α) Σ αᵏ Sᵏ Y over k < n, whose products are the same for every α.
    """
    found = np.empty((len(strengths), *start.shape), np.float32) if out is None else out
    found[:] = 0.0
    power, scaled = start, np.empty_like(start)
    for count in range(iterations + 1):
        for strength, sums in zip(strengths, found, strict=True):
            share = strength**count * (1.0 if count == iterations else 1 - strength)
            sums += np.multiply(power, np.float32(share), out=scaled)
        if count < iterations:
            power = matrix @ power
    return found


def _make_evidence(scores: NDArray[np.float32]) -> None:
    """Replace scores by the ln of their smoothed shares less its mean over classes; where all are zero, by zeros."""
    total = scores.sum(1, keepdims=True)
    reached = total[:, 0] > np.finfo(np.float32).tiny
    shares = scores[reached] / total[reached]
    logarithms = np.log((1 - SMOOTHING) * shares + SMOOTHING / scores.shape[1])
    scores[:] = 0.0
    scores[reached] = logarithms - logarithms.mean(1, keepdims=True)


def weighted_evidence(weights: Tensor, spread: Tensor) -> Tensor:
    """Return the (…, K) sum of (A, …, K) evidence by weights, in the precision that it has."""
    return (weights.view(-1, *[1] * (spread.dim() - 1)) * spread).sum(0)


def fit_spreading(logits: Tensor, spread: Tensor, labels: Tensor) -> Tensor:
    """Return (A,) weights from 0 on by which (A, n, K) evidence added to (n, K) logits makes labels likeliest.

    Logits may be multiplied by a number meanwhile: how far they can be believed is found together with what labels add to
    them. Few labels say little: without any, weights are 0.
    """
    from scipy.optimize import minimize  # a third of a second, which an import need not wait for

    some = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), FITTED_NODES)).astype(np.int64))
    own, evidence, truth = (tensor.detach().cpu().numpy() for tensor in (logits, spread, labels))
    own, evidence, truth = own[some].astype(np.float64), evidence[:, some].astype(np.float64), truth[some]
    if not len(truth) or not np.isfinite(own).all():
        return torch.zeros(len(spread))

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slope, weights, count = np.exp(values[0]), values[1:], len(truth)
        both = slope * own + np.tensordot(weights, evidence, 1)
        both -= both.max(1, keepdims=True)
        chance = np.exp(both)
        total = chance.sum(1, keepdims=True)
        rows = np.arange(count)
        found = (np.log(total[:, 0]) - both[rows, truth]).mean() + PRIOR / count * (values**2).sum()
        chance /= total
        chance[rows, truth] -= 1
        slopes = [slope * (chance * own).sum(), *np.tensordot(evidence, chance, 2)]
        return float(found), np.array(slopes) / count + 2 * PRIOR / count * values

    bounds = [(np.log(FLATTEST), np.log(STEEPEST)), *[(0.0, None)] * len(spread)]
    found = minimize(loss, np.zeros(1 + len(spread)), jac=True, method="L-BFGS-B", bounds=bounds)
    return torch.from_numpy((found.x[1:] / np.exp(found.x[0])).astype(np.float32))
