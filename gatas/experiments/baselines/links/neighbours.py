"""Scores without training: common neighbours, Adamic–Adar, and how often a node is an end of links of the type.

The first two look at the undirected graph of all training edges, whatever their types, so they rank alike for every type
and in both directions.
"""

from time import perf_counter
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from gatas.datasets import Dataset
from gatas.experiments.baselines.links.edges import type_names, typed_edges
from gatas.experiments.baselines.links.scores import measured
from gatas.experiments.baselines.links.triples import triples_of
from gatas.tasks import LinkTask
from gatas.tasks.learnable import Learnable
from gatas.training.config import Config, NamedData
from gatas.training.run import TrainedRun


class Heuristic(Learnable):
    """What scores typed pairs by counting."""

    def represent(self, target: Tensor, **given: Any) -> Tensor:
        """(B, 1) nodes themselves: there is nothing to compute before pairs are known."""
        return target[:, None]

    def score_pairs(self, source: Tensor, edge_type: Tensor, target: Tensor) -> Tensor:
        """(B,) scores of typed pairs."""
        raise NotImplementedError


class CommonNeighbours(Heuristic):
    """How many neighbours two nodes share."""

    adjacency: Tensor  # (N, N) sparse, symmetric
    weight: Tensor  # (N,) what a shared neighbour counts

    def __init__(self, dataset: Dataset) -> None:
        super().__init__()
        edges, size = typed_edges(dataset).untyped(), dataset.graph.num_nodes
        edges = edges[:, edges[0] != edges[1]]
        self.matrix = sparse.csr_array((np.ones(edges.shape[1], np.float32), (edges[0], edges[1])), shape=(size, size))
        parts = (torch.from_numpy(edges), torch.ones(edges.shape[1]), (size, size))
        adjacency = torch.sparse_coo_tensor(*parts, check_invariants=True).coalesce()
        self.register_buffer("adjacency", adjacency, persistent=False)
        self.register_buffer("weight", self.weights(np.diff(self.matrix.indptr)), persistent=False)

    def weights(self, degree: Any) -> Tensor:
        """(N,) what each node counts as a shared neighbour."""
        return torch.ones(len(degree))

    def score_pairs(self, source: Tensor, edge_type: Tensor, target: Tensor) -> Tensor:
        shared = self.matrix[source.cpu().numpy()].multiply(self.matrix[target.cpu().numpy()])
        return torch.from_numpy(shared.tocsr() @ self.weight.cpu().numpy()).to(source.device)

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """(B, N) scores of all nodes, whatever the type."""
        rows = torch.from_numpy(self.matrix[source.cpu().numpy()].toarray()).to(source.device)
        scores: Tensor = torch.sparse.mm(self.adjacency, (rows * self.weight).T).T
        return scores

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """(B, N) scores of all nodes; as many neighbours are shared in either direction."""
        return self.score_targets(target, edge_type)


class AdamicAdar(CommonNeighbours):
    """Σ 1 / ln(degree) over shared neighbours (Adamic & Adar, 2003)."""

    def weights(self, degree: Any) -> Tensor:
        return torch.from_numpy(1 / np.log(np.maximum(degree, 2))).float()  # who is shared has two neighbours at least


class Popularity(Heuristic):
    """How often a node is a source or a target of training links of the type, whatever the other end."""

    sources: Tensor  # (num_types, N)
    targets: Tensor  # (num_types, N)

    def __init__(self, dataset: Dataset) -> None:
        super().__init__()
        source, kind, target = triples_of(dataset).T
        shape = (len(type_names(dataset)), dataset.graph.num_nodes)
        for name, node in (("sources", source), ("targets", target)):
            counts = np.bincount(kind * shape[1] + node, minlength=shape[0] * shape[1]).reshape(shape)
            self.register_buffer(name, torch.from_numpy(counts).float(), persistent=False)

    def score_pairs(self, source: Tensor, edge_type: Tensor, target: Tensor) -> Tensor:
        return self.sources[edge_type, source].log1p() + self.targets[edge_type, target].log1p()

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """(B, N) counts, the same for every source."""
        return self.targets[edge_type]

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """(B, N) counts, the same for every target."""
        return self.sources[edge_type]


HEURISTICS: dict[str, type[CommonNeighbours | Popularity]] = {
    "common-neighbours": CommonNeighbours,
    "adamic-adar": AdamicAdar,
    "popularity": Popularity,
}


def fit_heuristic(name: str, dataset: Dataset, seed: int, device: torch.device) -> TrainedRun:
    """A run of one epoch, in which edges are counted; seeds change nothing."""
    started = perf_counter()
    model = HEURISTICS[name](dataset).to(device)
    history = [{"epoch": 0, "loss": 0.0, "seconds": perf_counter() - started}]
    metrics = {"best_epoch": 0, "epochs": 1, **measured(model.score_pairs, LinkTask(dataset, 1), device)}
    return TrainedRun(Config(data=NamedData(name=dataset.name)), seed, metrics, history, model, dataset)
