"""`Peer`: another model for node classification. It sees the whole graph at once and is trained by our loop."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import coalesce

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.sampling.sampler import Mode
from gatas.tasks.learnable import Learnable
from gatas.training.config import TrainingConfig

CITATIONS = ("cora", "citeseer", "pubmed")
ALL_NODES = 1 << 20
"""A batch size that no split reaches: one step an epoch, or one for each graph."""


class PeerRecipe(NamedTuple):
    """What a peer is made of for a data set, and how it learns."""

    model: Mapping[str, Any]
    training: TrainingConfig


Recipes = Mapping[str, PeerRecipe]


def trained(**settings: Any) -> TrainingConfig:
    """Adam as peers use it: without clipping, on all training nodes at once."""
    usual = {"epochs": 1000, "patience": 100, "learning_rate": 0.001, "monitor": "metric", "batch_size": ALL_NODES}
    return TrainingConfig(**{"optimiser": "adam", "max_norm": None, **usual, **settings})


class Peer(Learnable):
    """A network over all nodes of a data set. `settings` are those of its `build`; weights are a function of `seed`.

    Where graphs stand side by side it looks at the one that `first_node` says. `rows_sum_to_one` divides each node's features
    by their sum, as Kipf's loader does with bags of words.
    """

    randomness = "different"
    vmaps: bool = True
    """Whether many of its kind can be trained as one program."""
    recipes: ClassVar[Recipes] = {}
    """By data set; those of `cora` and `ppi` serve for other data with one label a node, or for multi-label data."""
    build: Callable[..., None]
    """Makes the layers."""

    dropout: float
    """Dropout of features, and of whatever else a peer drops."""

    features: Tensor  # (N, feature_size)
    filled: Tensor  # where features, row after row, are not 0
    edges: Tensor  # (2, E) from a neighbour to the node that looks at it, in the order of the latter
    edge_values: Tensor | None  # (E, …) what the layers want to know of each

    def __init__(self, dataset: Dataset, *, rows_sum_to_one: bool = False, seed: int = 0, **settings: Any) -> None:
        super().__init__()
        if dataset.features is None:
            raise ConfigError(f"{dataset.name} has no features, which a {type(self).__name__} learns from.")
        self.settings, self.feature_size, self.num_classes = settings, int(dataset.features.shape[1]), len(dataset.names)
        features = np.asarray(dataset.features if isinstance(dataset.features, np.ndarray) else dataset.features.toarray())
        if rows_sum_to_one:
            total = features.sum(1, keepdims=True)
            features = features / np.where(total > 0, total, 1)
        self.register_buffer("features", torch.tensor(features, dtype=torch.float32), persistent=False)
        self.register_buffer("filled", self.features.flatten().nonzero().squeeze(1), persistent=False)
        edges, values = self.prepared(edges_of(dataset), dataset.graph.num_nodes)
        order = edges[1].argsort(stable=True)
        self.register_buffer("edges", edges[:, order], persistent=False)
        self.register_buffer("edge_values", None if values is None else values[order], persistent=False)
        self.starts = torch.searchsorted(edges[1, order].contiguous(), torch.arange(dataset.graph.num_nodes + 1)).tolist()
        graph_id = dataset.nodes.graph_id
        self.ends = {}
        if graph_id is not None:
            self.vmaps = self.captures = False  # graphs differ in size
            sizes = np.bincount(graph_id)
            self.ends = {int(end - size): int(end) for end, size in zip(np.cumsum(sizes), sizes, strict=True)}
        self.reset(seed)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        """The edges that the layers go along, self-loops among them if any, and their values; computed once."""
        return edges, None

    def logits(self, x: Tensor, edges: Tensor, values: Any) -> Tensor:
        """(n, num_classes) of n nodes with features `x`, of which some have been dropped."""
        raise NotImplementedError

    def reset(self, seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.build(**self.settings)
        self.to(self.features.device)

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """(B, num_classes) logits; nothing is sampled, so `draw` and `mode` change nothing."""
        if first_node is None:
            return self.logits(self.dropped_features(), self.edges, self.edge_values)[target]
        first = int(first_node[0])
        end = self.ends[first]
        own = slice(self.starts[first], self.starts[end])
        values = None if self.edge_values is None else self.edge_values[own]
        x = F.dropout(self.features[first:end], self.dropout, self.training)
        return self.logits(x, self.edges[:, own] - first, values)[target - first]

    def dropped_features(self) -> Tensor:
        """Features after dropout, which is drawn for those that are not 0 alone: of a bag of words that is one in a hundred."""
        if not self.training or not self.dropout:
            return self.features
        kept = F.dropout(self.features.flatten()[self.filled], self.dropout)
        return torch.zeros_like(self.features).flatten().scatter(0, self.filled, kept).view(self.features.shape)


def edges_of(dataset: Dataset) -> Tensor:
    """(2, E) each pair of neighbours once, whatever the types of its edges."""
    graph = dataset.graph
    pairs = np.stack([np.asarray(graph.neighbour), np.asarray(graph.source)]).astype(np.int64)
    edges: Tensor = coalesce(torch.from_numpy(pairs), num_nodes=graph.num_nodes)
    return edges
