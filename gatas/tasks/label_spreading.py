"""Labels spread over the graph (Zhou et al. 2004), as far as they reach: what they say of nodes that have none.

N nodes, K classes, A strengths.
"""

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
    matrix = normalised_adjacency(dataset.graph)
    found = np.empty((len(STRENGTHS), *start.shape), np.float32)
    for place, strength in enumerate(STRENGTHS):
        _evidence(spread_over(matrix, start, strength), found[place])
    found[:, train] = 0.0
    return found


def normalised_adjacency(graph: Graph) -> sparse.csr_array:
    """Return S = D^-1/2 A D^-1/2 of the graph without types and directions; self-edges do not count."""
    size = graph.num_nodes
    source = np.repeat(np.arange(size, dtype=np.int32), np.diff(graph.indptr))
    other = np.asarray(graph.neighbour)
    weight = np.ones(len(other), np.float32) if graph.weight is None else np.asarray(graph.weight, np.float32)
    real = source != other
    adjacency = sparse.coo_array((weight[real], (source[real], other[real])), shape=(size, size)).tocsr()
    if graph.weight is None:
        adjacency.data[:] = 1.0  # edges of several types between two nodes are one
    adjacency = sparse.csr_array(adjacency.maximum(adjacency.T))
    degree = np.asarray(adjacency.sum(axis=1), np.float64)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros(size), where=degree > 0)
    adjacency.data *= (np.repeat(root, np.diff(adjacency.indptr)) * root[adjacency.indices]).astype(np.float32)
    return adjacency


def spread_over(
    matrix: sparse.csr_array, start: NDArray[np.float32], strength: float, iterations: int = ITERATIONS
) -> NDArray[np.float32]:
    """Return F after so many iterations of F = α S F + (1 - α) Y, from Y on."""
    kept, found = (1 - strength) * start, start
    for _ in range(iterations):
        found = matrix @ found
        found *= strength
        found += kept
    return found


def _evidence(scores: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Write the ln of smoothed shares less their mean over classes; zeros where scores are."""
    total = scores.sum(1, keepdims=True)
    reached = total[:, 0] > np.finfo(np.float32).tiny
    shares = scores[reached] / total[reached]
    logarithms = np.log((1 - SMOOTHING) * shares + SMOOTHING / scores.shape[1])
    out[:] = 0.0
    out[reached] = logarithms - logarithms.mean(1, keepdims=True)


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
