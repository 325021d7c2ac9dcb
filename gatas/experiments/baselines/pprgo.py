"""PPRGo: Bojchevski et al., "Scaling graph neural networks with approximate PageRank" (2020).

Settings are those that config_seml.yaml in github.com/TUM-DAML/pprgo_pytorch has for Cora-Full and Pubmed (config_demo.yaml is
for Reddit). Here evaluation mixes the same `top` neighbours as training, instead of a power iteration over all nodes, and the
epoch that is best on validation data is kept; the authors take the last. Their split is another: they have no figures for ours.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import degree, get_ppr

from gatas.datasets import Dataset
from gatas.experiments.baselines.peer import CITATIONS, Peer, PeerRecipe, Recipes, trained
from gatas.sampling.sampler import Mode


class PPRGo(Peer):
    """A perceptron for each of the nodes that a walk from the target is most likely at, mixed by how likely that is."""

    recipes: ClassVar[Recipes] = dict.fromkeys(
        CITATIONS,
        PeerRecipe(
            {"hidden_size": 32, "dropout": 0.1, "teleport": 0.25, "threshold": 1e-4, "top": 32},
            trained(learning_rate=0.005, l2=1e-4, batch_size=512, epochs=200, patience=200),
        ),
    )
    neighbours: Tensor  # (N, top)
    weights: Tensor  # (N, top), 0 where there are fewer

    def __init__(
        self, dataset: Dataset, *, teleport: float, threshold: float, top: int, seed: int = 0, **settings: object
    ) -> None:
        super().__init__(dataset, seed=seed, **settings)  # type: ignore[arg-type]
        self.vmaps = True
        self.captures = True
        neighbours, weights = likeliest(self.edges, dataset.graph.num_nodes, teleport, threshold, top)
        self.register_buffer("neighbours", neighbours, persistent=False)
        self.register_buffer("weights", weights, persistent=False)

    def build(self, hidden_size: int, dropout: float) -> None:
        self.dropout = dropout
        self.first = nn.Linear(self.feature_size, hidden_size, bias=False)
        self.second = nn.Linear(hidden_size, self.num_classes, bias=False)

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        neighbours, weights = self.neighbours[target], self.weights[target]  # (B, top)
        if neighbours.numel() < len(self.features) and not self.num_embedded:
            logits = self.local(F.dropout(self.features[neighbours], self.dropout, self.training))
        else:
            logits = self.local(self.with_embeddings(self.dropped_features()))[neighbours]  # (B, top, num_classes)
        return (logits * weights[..., None]).sum(1)

    def local(self, x: Tensor) -> Tensor:
        """Logits from a node's own features."""
        logits: Tensor = self.second(F.dropout(F.relu(self.first(x)), self.dropout, self.training))
        return logits


def likeliest(edges: Tensor, num_nodes: int, teleport: float, threshold: float, top: int) -> tuple[Tensor, Tensor]:
    """(N, top) nodes with the largest personalised PageRank π, and π weighted by √(degree of target / degree of node)."""
    (target, node), chance = get_ppr(edges.flip(0), teleport, threshold, num_nodes=num_nodes)
    order = chance.argsort(descending=True, stable=True)
    order = order[target[order].argsort(stable=True)]  # target by target, the likeliest first
    target, node, chance = target[order], node[order], chance[order]
    rank = torch.arange(len(target)) - torch.searchsorted(target, torch.arange(num_nodes))[target]
    kept = rank < top
    root = degree(edges[1], num_nodes).clamp_min(1).sqrt()
    neighbours, weights = torch.zeros(num_nodes, top, dtype=torch.int64), torch.zeros(num_nodes, top)
    neighbours[target[kept], rank[kept]] = node[kept]
    weights[target[kept], rank[kept]] = (root[target] * chance.float() / root[node])[kept]
    return neighbours, weights
