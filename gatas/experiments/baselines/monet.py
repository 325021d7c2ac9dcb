"""MoNet: Monti et al., "Geometric deep learning on graphs and manifolds using mixture model CNNs" (2017).

Pseudo-coordinates are degrees^(−1/2) of both ends (their §5.2). Their code is not public: settings are those of DGL's
examples/pytorch/monet/citation.py.
"""

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GMMConv
from torch_geometric.utils import degree, remove_self_loops

from gatas.experiments.baselines.peer import CITATIONS, Peer, Recipe, Recipes, trained


class MoNet(Peer):
    """Two layers of Gaussian kernels over projected pseudo-coordinates."""

    recipes: ClassVar[Recipes] = {
        name: Recipe(
            {"rows_sum_to_one": True, "hidden_size": 16, "num_kernels": 3, "pseudo_size": 3 if name == "pubmed" else 2,
             "dropout": 0.5},
            trained(learning_rate=0.01, l2=5e-4, epochs=200, patience=200, monitor="loss"),
        )
        for name in CITATIONS
    }  # fmt: skip

    def build(self, hidden_size: int, num_kernels: int, pseudo_size: int, dropout: float) -> None:
        self.dropout = dropout
        sizes = (self.feature_size, hidden_size, self.num_classes)
        self.layers = nn.ModuleList([GMMConv(*both, pseudo_size, num_kernels, aggr="add") for both in pairwise(sizes)])
        self.projections = nn.ModuleList([nn.Linear(2, pseudo_size) for _ in self.layers])

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        edges, _ = remove_self_loops(edges)
        return edges, degree(edges[1], num_nodes).clamp_min(1).rsqrt()[edges].T

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        first, second = (
            (layer, torch.tanh(projection(values))) for layer, projection in zip(self.layers, self.projections, strict=True)
        )
        x = first[0](x, edges, first[1])
        logits: Tensor = second[0](F.dropout(x, self.dropout, self.training), edges, second[1])
        return logits
