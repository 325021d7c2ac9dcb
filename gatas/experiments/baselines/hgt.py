"""HGT: Hu et al., "Heterogeneous graph transformer" (2020), by PyG's layer.

Settings are those of PyG's examples/hetero/hgt_dblp.py. Node types without features have learned embeddings.
"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import HGTConv

from gatas.datasets import Dataset
from gatas.experiments.baselines.peer import CITATIONS, DROPOUTS, OWN, RATES, Peer, PeerRecipe, PeerSpace, Recipes, patient
from gatas.sampling.sampler import Mode

ORDINARY = PeerRecipe(
    {"hidden_size": 64, "num_layers": 1, "num_heads": 2, "dropout": 0.2}, patient(learning_rate=0.005, l2=1e-3, patience=100)
)
Relation = tuple[str, str, str]


class HGT(Peer):
    """Attention with matrices for each node type and each kind of edge: its type and those of both ends."""

    vmaps = captures = False  # PyG's layer chooses rows by type on the host
    typed = True
    recipes: ClassVar[Recipes] = dict.fromkeys((*CITATIONS, OWN), ORDINARY)
    space: ClassVar[PeerSpace] = {
        **RATES, "dropout": DROPOUTS, "hidden_size": (32, 64, 128, 256), "num_layers": (1, 2, 3), "num_heads": (2, 4, 8),
    }  # fmt: skip
    order: Tensor  # (N,) nodes by type
    place: Tensor  # (N,) of each node in that order

    def edges_of(self, dataset: Dataset) -> tuple[Tensor, Tensor | None]:
        """Edges between nodes in the order of their types, and the kind of each."""
        graph, given = dataset.graph, dataset.nodes.node_type
        node_type = np.zeros(graph.num_nodes, np.int64) if given is None else np.asarray(given).astype(np.int64)
        order = np.argsort(node_type, kind="stable")
        self.register_buffer("order", torch.from_numpy(order), persistent=False)
        self.register_buffer("place", torch.from_numpy(np.argsort(order)), persistent=False)
        self.sizes = {f"n{kind}": int(size) for kind, size in enumerate(np.bincount(node_type)) if size}
        source, target = np.asarray(graph.neighbour), np.asarray(graph.source)
        kinds = np.stack([node_type[source], np.asarray(graph.edge_type).astype(np.int64), node_type[target]], 1)
        found, kind = np.unique(kinds, axis=0, return_inverse=True)
        self.relations: list[Relation] = [(f"n{one}", f"e{edge}", f"n{other}") for one, edge, other in found]
        first = np.searchsorted(node_type[order], node_type)  # the first place of each node's type
        within = np.argsort(order) - first
        for number in range(len(found)):
            own = kind.reshape(-1) == number
            edges = torch.from_numpy(np.stack([within[source[own]], within[target[own]]]))
            self.register_buffer(f"edges_{number}", edges, persistent=False)
        return torch.from_numpy(np.stack([source, target]).astype(np.int64)), None

    def build(self, hidden_size: int, num_layers: int, num_heads: int, dropout: float) -> None:
        self.dropout = dropout
        self.first = nn.ModuleDict({kind: nn.Linear(self.feature_size, hidden_size) for kind in self.sizes})
        types = (list(self.sizes), self.relations)
        self.layers = nn.ModuleList([HGTConv(hidden_size, hidden_size, types, num_heads) for _ in range(num_layers)])
        self.last = nn.Linear(hidden_size, self.num_classes)

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """(B, num_classes) logits; all graphs are looked at, of which no other changes anything."""
        return super().forward(target)

    def logits(self, x: Tensor, edges: Tensor, values: None) -> Tensor:
        kinds, parts = list(self.sizes), x[self.order].split(list(self.sizes.values()))  # type: ignore[no-untyped-call]
        found = {kind: F.relu(self.first[kind](part)) for kind, part in zip(kinds, parts, strict=True)}
        along = {relation: getattr(self, f"edges_{number}") for number, relation in enumerate(self.relations)}
        for layer in self.layers:
            told = layer(found, along)
            found = {kind: F.dropout(told.get(kind, own), self.dropout, self.training) for kind, own in found.items()}
        logits: Tensor = self.last(torch.cat([found[kind] for kind in kinds])[self.place])
        return logits
