"""NAGphormer: Chen et al., "NAGphormer: a tokenized graph transformer for node classification in large graphs" (2023).

Each node is a sequence of what is met on average after 0, 1, … steps (Hop2Token), which a transformer reads. Settings are
those of commands.txt in github.com/JHL-HUST/NAGphormer, for random splits of 60 %; other data has those for Photo. The first
dense layer comes before the steps instead of after, which is the same and narrower. The learning rate is constant
instead of rising and falling, so that Cora has 0.001 instead of a peak of 0.01, by which it learns nothing from 140 labels
here; decay is L2 in the loss instead of AdamW's.
"""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gatas.datasets import Dataset
from gatas.experiments.baselines.peer import (
    DROPOUTS,
    OWN,
    Peer,
    PeerRecipe,
    PeerSpace,
    Recipes,
    edges_of,
    patient,
    propagate,
    trained,
)
from gatas.sampling.sampler import Mode


def _citation(num_steps: int, num_eigenvectors: int, dropout: float) -> PeerRecipe:
    sizes = {"hidden_size": 512, "num_layers": 1, "num_heads": 8, "num_steps": num_steps, "num_eigenvectors": num_eigenvectors}
    return PeerRecipe(
        {"rows_sum_to_one": True, **sizes, "dropout": dropout},
        trained(learning_rate=0.001, l2=1e-5, batch_size=2000, epochs=2000, patience=50),
    )


class TransformerLayer(nn.Module):
    """Attention among the tokens of a node, then a dense layer, each with a norm before it."""

    def __init__(self, size: int, num_heads: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout, self.attention_dropout = num_heads, dropout, attention_dropout
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        self.query_key_value, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.wide, self.narrow = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + F.dropout(self.attended(self.norms[0](tokens)), self.dropout, self.training)
        found = self.narrow(F.gelu(self.wide(self.norms[1](tokens))))
        return tokens + F.dropout(found, self.dropout, self.training)

    def attended(self, tokens: Tensor) -> Tensor:
        """(B, T, size)."""
        num_nodes, num_tokens, size = tokens.shape
        shape = (num_nodes, num_tokens, 3, self.num_heads, size // self.num_heads)
        query, key, value = self.query_key_value(tokens).view(shape).permute(2, 0, 3, 1, 4)  # (B, K, T, size / K)
        weights = (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).softmax(-1)  # (B, K, T, T)
        mixed = F.dropout(weights, self.attention_dropout, self.training) @ value
        found: Tensor = self.out(mixed.transpose(1, 2).reshape(num_nodes, num_tokens, size))
        return found


class NAGphormer(Peer):
    """A transformer over the hops of each target."""

    drops_features = False
    recipes: ClassVar[Recipes] = {
        "cora": _citation(3, 3, 0.1),
        "citeseer": _citation(7, 3, 0.3),
        "pubmed": _citation(7, 15, 0.1),
        OWN: PeerRecipe(
            {"hidden_size": 128, "num_layers": 1, "num_heads": 8, "num_steps": 3, "num_eigenvectors": 10, "dropout": 0.1},
            patient(learning_rate=0.001, l2=1e-5, batch_size=2000, patience=100),
        ),
    }
    space: ClassVar[PeerSpace] = {
        "learning_rate": (0.0005, 0.001, 0.003, 0.01), "l2": (0.0, 1e-5, 1e-4, 1e-3), "dropout": DROPOUTS,
        "hidden_size": (64, 128, 256, 512), "num_layers": (1, 2, 3), "num_steps": (2, 3, 5, 7, 10),
    }  # fmt: skip
    positions: Tensor  # (N, num_eigenvectors)

    def __init__(self, dataset: Dataset, *, num_eigenvectors: int, **settings: Any) -> None:
        self.num_eigenvectors = max(0, min(num_eigenvectors, dataset.graph.num_nodes - 3))
        super().__init__(dataset, **settings)
        found = eigenvectors(edges_of(dataset).numpy(), dataset.graph.num_nodes, self.num_eigenvectors)
        self.register_buffer("positions", torch.tensor(found, dtype=torch.float32), persistent=False)

    def build(
        self, hidden_size: int, num_layers: int, num_heads: int, num_steps: int, dropout: float, attention_dropout: float = 0.1
    ) -> None:
        self.dropout, self.num_steps = dropout, num_steps
        self.first = nn.Linear(self.feature_size + self.num_eigenvectors, hidden_size)
        layer = (hidden_size, num_heads, dropout, attention_dropout)
        self.layers = nn.ModuleList([TransformerLayer(*layer) for _ in range(num_layers)])
        self.norm, self.score = nn.LayerNorm(hidden_size), nn.Linear(2 * hidden_size, 1)
        self.last = nn.Sequential(
            nn.Linear(hidden_size, hidden_size // 2), nn.ReLU(), nn.Linear(hidden_size // 2, self.num_classes)
        )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02 / math.sqrt(num_layers))
                nn.init.zeros_(module.bias)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        normalised: tuple[Tensor, Tensor] = gcn_norm(edges, num_nodes=num_nodes)
        return normalised

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        tokens = self.tokens()[target]
        for layer in self.layers:
            tokens = layer(tokens)
        return self.read(self.norm(tokens))

    def tokens(self) -> Tensor:
        """(N, num_steps + 1, size): Âᵏ[x ‖ positions]W + b for k from 0 on."""
        x = torch.cat([self.with_embeddings(self.features), self.positions], 1)
        hops = [F.linear(x, self.first.weight)]
        for _ in range(self.num_steps):
            assert self.edge_values is not None
            hops.append(propagate(hops[-1], self.edges, self.edge_values))
        return torch.stack(hops, 1) + self.first.bias

    def read(self, tokens: Tensor) -> Tensor:
        """(B, num_classes) from the node's own token and the others, weighted by how they score beside it."""
        own, others = tokens[:, :1], tokens[:, 1:]
        weights = self.score(torch.cat([own.expand_as(others), others], -1)).softmax(1)  # (B, num_steps, 1)
        logits: Tensor = self.last(own.squeeze(1) + (weights * others).sum(1))
        return logits

    def evaluation_batch(self, device: torch.device) -> int:
        return 1 << 14


def eigenvectors(edges: NDArray[np.int64], num_nodes: int, count: int) -> NDArray[np.float64]:
    """(N, count) of the normalised Laplacian, from the second smallest eigenvalue on; of the graph without directions."""
    if not count:
        return np.zeros((num_nodes, 0))
    ones = sparse.csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(num_nodes, num_nodes))
    both = (ones + ones.T > 0).astype(float)
    root = sparse.diags_array(np.maximum(both.sum(1), 1) ** -0.5)
    start = np.random.default_rng(0).normal(size=num_nodes)
    try:  # the largest of 2I − L are the smallest of L, and are found sooner
        values, vectors = eigsh(root @ both @ root + sparse.eye_array(num_nodes), count + 1, which="LA", v0=start, tol=1e-2)
    except ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
        vectors = np.pad(vectors, ((0, 0), (0, count + 1 - len(values))))
        values = np.pad(values, (0, count + 1 - len(values)))
    return np.asarray(vectors[:, np.argsort(-values)][:, 1:])
