"""Answers that take no training, to measure a model against: a vote of the neighbours, Adamic–Adar."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from gatas.datasets import Dataset, NodeTargets, NumberTargets
from gatas.graph import Graph
from gatas.graph.inputs import Ints

Floats64 = NDArray[np.float64]


def neighbours_vote(dataset: Dataset, nodes: Ints) -> Floats64:
    """Return (n, classes) shares of the training labels among the neighbours of nodes; where there are none, of all of them."""
    targets = dataset.targets
    assert isinstance(targets, NodeTargets)
    training = targets.splits["train"]
    votes = np.zeros((dataset.graph.num_nodes, len(targets.names)))
    if targets.multi_label:
        votes[training] = targets.labels[training]
    else:
        votes[training, targets.labels[training]] = 1
    return _means(dataset.graph, nodes, training, votes)


def neighbours_mean(dataset: Dataset, nodes: Ints) -> Floats64:
    """Return (n, T) means of the training numbers of the neighbours of nodes; where there are none, of all of them."""
    targets = dataset.targets
    assert isinstance(targets, NumberTargets)
    training = targets.splits["train"]
    usual = np.nanmean(targets.values[training], axis=0)
    values = np.zeros((dataset.graph.num_nodes, len(targets.names)))
    values[training] = np.where(np.isnan(targets.values[training]), usual, targets.values[training])
    return _means(dataset.graph, nodes, training, values)


def _means(graph: Graph, nodes: Ints, training: Ints, values: Floats64) -> Floats64:
    """Return the means over neighbours that are training nodes, each as often as edges lead there."""
    known = np.zeros(graph.num_nodes)
    known[training] = 1
    rows = adjacency(graph)[nodes]
    count = np.asarray(rows @ known)[:, None]
    usual = values[training].mean(0, keepdims=True)
    means: Floats64 = np.where(count > 0, np.asarray(rows @ values) / np.maximum(count, 1), usual)
    return means


def adjacency(graph: Graph) -> sparse.csr_array:
    """Return (N, N) numbers of edges in either direction, of any type, without those of a node to itself."""
    size = (graph.num_nodes, graph.num_nodes)
    ones = np.ones(graph.num_edges)
    matrix = sparse.csr_array((ones, graph.neighbour.astype(np.int64), graph.indptr), shape=size)
    both = sparse.csr_array(matrix + matrix.T)
    both.setdiag(0)
    both.eliminate_zeros()
    return both


class SharedNeighbourScores:
    """Scores pairs by the neighbours that they share, those with few neighbours more; types and directions do not count."""

    def __init__(self, graph: Graph) -> None:
        self.near = adjacency(graph)
        self.near.data[:] = 1
        degree = np.diff(self.near.indptr)
        self.weighted = sparse.csr_array(self.near * (1 / np.log(np.maximum(degree, 2)))[None, :])

    def score(self, source: Ints, target: Ints) -> Floats64:
        """Return (n,) scores of pairs of nodes."""
        return np.asarray(self.weighted[source].multiply(self.near[target]).sum(1)).ravel()

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) scores of every node as the other end."""
        rows = self.weighted[source.cpu().numpy()] @ self.near
        return torch.from_numpy(np.asarray(rows.todense(), np.float32)).to(source.device)

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """Return the same of the other direction, which does not count."""
        return self.score_targets(target, edge_type)
