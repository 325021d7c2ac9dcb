"""MoNet: Monti et al., "Geometric deep learning on graphs and manifolds using mixture model CNNs" (2017).

Pseudo-coordinates are degrees^(−1/2) of both ends (their §5.2). Their code is not public: sizes are those of DGL's
examples/pytorch/monet/citation.py; self-loops, ReLU and dropout of the input are those of GCN, which they compare
with, and neighbours are averaged as in PyG. This variant was first chosen with Cora's test data in view; chosen anew among
eight by validation data (Cora, 5 seeds each, see docs/peers.md) it is the same.
"""

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GMMConv
from torch_geometric.utils import add_remaining_self_loops, degree

from gatas.experiments.baselines.peer import CITATIONS, Peer, PeerRecipe, Recipes, trained


class MoNet(Peer):
    """Two layers of Gaussian kernels over projected pseudo-coordinates."""

    recipes: ClassVar[Recipes] = {
        name: PeerRecipe(
            {"rows_sum_to_one": True, "hidden_size": 16, "num_kernels": 3, "pseudo_size": 3 if name == "pubmed" else 2,
             "dropout": 0.5},
            trained(learning_rate=0.01, l2=5e-4, epochs=200, patience=200),
        )
        for name in CITATIONS
    }  # fmt: skip

    def build(self, hidden_size: int, num_kernels: int, pseudo_size: int, dropout: float) -> None:
        self.dropout = dropout
        sizes = (self.feature_size, hidden_size, self.num_classes)
        layers = [GMMConv(*both, pseudo_size, num_kernels) for both in pairwise(sizes)]
        for layer in layers:
            layer.root = None  # the self-loop speaks for the node; PyG 2.8 cannot be told so when a layer is made
            nn.init.normal_(layer.mu, std=0.1)
            nn.init.ones_(layer.sigma)
        self.layers = nn.ModuleList(layers)
        self.projections = nn.ModuleList([nn.Linear(2, pseudo_size) for _ in self.layers])

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        edges, _ = add_remaining_self_loops(edges, num_nodes=num_nodes)
        return edges, degree(edges[1], num_nodes).rsqrt()[edges].T

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        first, second = (
            (layer, torch.tanh(projection(values))) for layer, projection in zip(self.layers, self.projections, strict=True)
        )
        x = F.relu(first[0](x, edges, first[1]))
        logits: Tensor = second[0](F.dropout(x, self.dropout, self.training), edges, second[1])
        return logits
