"""R-GCN: Schlichtkrull et al., "Modeling relational data with graph convolutional networks" (2018), by PyG's layer.

The paper's data for nodes (AIFB, MUTAG, …) has no features; sizes here are those of PyG's examples/hetero for DBLP. Layers
may have a norm. Node types without features have learned embeddings, as in PyG's examples.
"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import RGCNConv

from gatas.datasets import Dataset
from gatas.experiments.baselines.classic import make_norm
from gatas.experiments.baselines.peer import CITATIONS, DROPOUTS, OWN, RATES, Peer, PeerRecipe, PeerSpace, Recipes, patient

ORDINARY = PeerRecipe(
    {"hidden_size": 64, "num_layers": 2, "dropout": 0.5, "num_bases": 8}, patient(learning_rate=0.005, l2=5e-4, patience=100)
)


class RGCN(Peer):
    """The mean over neighbours for each edge type, with a matrix of its own, mixed from `num_bases`."""

    vmaps = captures = False  # edges of a type are chosen by the host
    typed = True
    recipes: ClassVar[Recipes] = dict.fromkeys((*CITATIONS, OWN), ORDINARY)
    space: ClassVar[PeerSpace] = {
        **RATES, "dropout": DROPOUTS, "hidden_size": (32, 64, 128, 256), "num_layers": (1, 2, 3), "num_bases": (2, 8, 30),
        "norm": ("none", "layer", "batch"),
    }  # fmt: skip

    def edges_of(self, dataset: Dataset) -> tuple[Tensor, Tensor | None]:
        graph = dataset.graph
        self.num_edge_types = graph.num_edge_types
        edges = np.stack([np.asarray(graph.neighbour), np.asarray(graph.source)]).astype(np.int64)
        return torch.from_numpy(edges), torch.from_numpy(np.asarray(graph.edge_type).astype(np.int64))

    def build(self, hidden_size: int, num_layers: int, dropout: float, num_bases: int, norm: str = "none") -> None:
        self.dropout = dropout
        self.first, self.last = nn.Linear(self.feature_size, hidden_size), nn.Linear(hidden_size, self.num_classes)
        mixed = min(num_bases, self.num_edge_types)
        self.layers = nn.ModuleList(
            [RGCNConv(hidden_size, hidden_size, self.num_edge_types, num_bases=mixed) for _ in range(num_layers)]
        )
        self.norms = nn.ModuleList([make_norm(norm, hidden_size) for _ in range(num_layers)])

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.relu(norm(layer(F.dropout(x, self.dropout, self.training), edges, values)))
        logits: Tensor = self.last(F.dropout(x, self.dropout, self.training))
        return logits
