"""`Peer`: another model for node classification. It sees the whole graph at once and is trained by our loop."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import coalesce

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.sampling.sampler import Mode
from gatas.tasks.learnable import Learnable
from gatas.training.config import TrainingConfig

CITATIONS = ("cora", "citeseer", "pubmed")
OWN = "own"
"""Under this name recipes have ordinary settings, for data that nobody has tuned the peer for."""
ALL_NODES = 1 << 20
"""A batch size that no split reaches: one step an epoch, or one for each graph."""


class PeerRecipe(NamedTuple):
    """What a peer is made of for a data set, and how it learns."""

    model: Mapping[str, Any]
    training: TrainingConfig


Recipes = Mapping[str, PeerRecipe]
PeerSpace = Mapping[str, tuple[Any, ...]]
"""What a search tries: values by the name of a setting, of the peer's `build` or of `TrainingConfig`."""

RATES: PeerSpace = {"learning_rate": (0.001, 0.003, 0.01, 0.03), "l2": (0.0, 5e-5, 5e-4, 5e-3)}
DROPOUTS = (0.1, 0.3, 0.5, 0.7)


def trained(**settings: Any) -> TrainingConfig:
    """Adam as peers use it: without clipping, on all training nodes at once."""
    usual = {"epochs": 1000, "patience": 100, "learning_rate": 0.001, "monitor": "metric", "batch_size": ALL_NODES}
    return TrainingConfig(**{"optimiser": "adam", "max_norm": None, **usual, **settings})


def patient(**settings: Any) -> TrainingConfig:
    """Training on data that nobody has tuned a peer for: nothing ends it while validation data still improves."""
    return trained(**{"epochs": 10_000, "patience": 200, **settings})


class Peer(Learnable):
    """A network over all nodes of a data set. `settings` are those of its `build`; weights are a function of `seed`.

    Where graphs stand side by side it looks at the one that `first_node` says. `rows_sum_to_one` divides each node's features
    by their sum, as Kipf's loader does with bags of words. With an `embedding_size`, nodes of types without features get a
    learned embedding, in columns of its own beside the features.
    """

    randomness = "different"
    vmaps: bool = True
    """Whether many of its kind can be trained as one program."""
    drops_features: bool = True
    """Whether features are dropped before the first layer."""
    typed: bool = False
    """Whether it is for graphs whose nodes or edges have types."""
    learns_numbers: bool = True
    """Whether it can learn numbers of nodes as well as classes."""
    recipes: ClassVar[Recipes] = {}
    """By data set; those of `own` (else `cora`) and `ppi` serve for other data with one label a node, or multi-label data."""
    space: ClassVar[PeerSpace] = {}
    """What a search tries beside the settings of a recipe."""
    build: Callable[..., None]
    """Makes the layers."""

    dropout: float
    """Dropout of features, and of whatever else a peer drops."""

    features: Tensor  # (N, num_features)
    filled: Tensor  # where features, row after row, are not 0
    embedding_row: Tensor  # (N,) each node's row of `embedding`, from 1 on; 0: it has none
    edges: Tensor  # (2, E) from a neighbour to the node that looks at it, in the order of the latter
    edge_values: Tensor | None  # (E, …) what the layers want to know of each

    def __init__(
        self, dataset: Dataset, *, rows_sum_to_one: bool = False, embedding_size: int = 0, seed: int = 0, **settings: Any
    ) -> None:
        super().__init__()
        if dataset.features is None and not embedding_size:
            raise ConfigError(f"{dataset.name} has no features, which a {type(self).__name__} learns from.")
        features: NDArray[Any] = dense_features(dataset)
        if rows_sum_to_one:
            total = features.sum(1, keepdims=True)
            features = features / np.where(total > 0, total, 1)
        bare = torch.from_numpy(featureless(dataset)) if embedding_size else torch.zeros(len(features), dtype=torch.bool)
        self.settings, self.num_classes, self.num_embedded = settings, len(dataset.names), int(bare.sum())
        self.embedding_size = embedding_size if self.num_embedded else 0
        self.feature_size = features.shape[1] + self.embedding_size  # of what goes into the first layer
        self.register_buffer("features", torch.tensor(features, dtype=torch.float32), persistent=False)
        self.register_buffer("filled", self.features.flatten().nonzero().squeeze(1), persistent=False)
        self.register_buffer("embedding_row", bare.cumsum(0) * bare, persistent=False)
        self._look_at(dataset)
        self.reset(seed)

    def _look_at(self, dataset: Dataset) -> None:
        """Keep the edges in the order of the nodes that look along them, and where each graph begins."""
        edges, values = self.edges_of(dataset)
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

    def edges_of(self, dataset: Dataset) -> tuple[Tensor, Tensor | None]:
        """Edges of a data set, and what the layers want to know of each."""
        return self.prepared(edges_of(dataset), dataset.graph.num_nodes)

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
            if self.num_embedded:
                self.embedding = nn.Parameter(torch.randn(self.num_embedded, self.embedding_size) / self.embedding_size**0.5)
        self.to(self.features.device)

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """(B, num_classes) logits; nothing is sampled, so `draw` and `mode` change nothing."""
        if first_node is None:
            return self.logits(self.with_embeddings(self.dropped_features()), self.edges, self.edge_values)[target]
        first = int(first_node[0])
        end = self.ends[first]
        own = slice(self.starts[first], self.starts[end])
        values = None if self.edge_values is None else self.edge_values[own]
        x = F.dropout(self.features[first:end], self.dropout, self.training and self.drops_features)
        return self.logits(self.with_embeddings(x, first, end), self.edges[:, own] - first, values)[target - first]

    def dropped_features(self) -> Tensor:
        """Features after dropout, which is drawn for those that are not 0 alone: of a bag of words that is one in a hundred."""
        if not (self.training and self.dropout and self.drops_features and len(self.filled)):
            return self.features
        kept = F.dropout(self.features.flatten()[self.filled], self.dropout)
        return torch.zeros_like(self.features).flatten().scatter(0, self.filled, kept).view(self.features.shape)

    def with_embeddings(self, features: Tensor, first: int = 0, end: int | None = None) -> Tensor:
        """(n, feature_size) features and, where there are any, embeddings of the nodes from `first` on."""
        if not self.num_embedded:
            return features
        rows = F.pad(self.embedding, (0, 0, 1, 0))[self.embedding_row[first:end]]
        return torch.cat([features, F.dropout(rows, self.dropout, self.training and self.drops_features)], 1)


def dense_features(dataset: Dataset) -> NDArray[np.float32]:
    """(N, num_features) features; without any columns where there are none."""
    features = dataset.features
    if features is None:
        return np.zeros((dataset.graph.num_nodes, 0), np.float32)
    return np.asarray(features if isinstance(features, np.ndarray) else features.toarray())


def featureless(dataset: Dataset) -> NDArray[np.bool_]:
    """(N,) whether a node is of a type without features: one whose rows are all 0. Without types, whether there are none."""
    if dataset.features is None:
        return np.ones(dataset.graph.num_nodes, np.bool_)
    node_type = dataset.nodes.node_type
    if node_type is None:
        return np.zeros(dataset.graph.num_nodes, np.bool_)
    filled: Any = dataset.features != 0
    return np.asarray(np.bincount(node_type, filled.sum(1)) == 0)[node_type]


def propagate(x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
    """(n, size) sums over the edges that end at each node, weighted by their values."""
    return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]] * values[:, None])


def edges_of(dataset: Dataset) -> Tensor:
    """(2, E) each pair of neighbours once, whatever the types of its edges."""
    graph = dataset.graph
    pairs = np.stack([np.asarray(graph.neighbour), np.asarray(graph.source)]).astype(np.int64)
    edges: Tensor = coalesce(torch.from_numpy(pairs), num_nodes=graph.num_nodes)
    return edges
