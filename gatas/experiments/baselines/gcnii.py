"""GCNII: Chen et al., "Simple and deep graph convolutional networks" (2020).

Settings and starting values are those of the paper's Table 4 and github.com/chennnM/GCNII; for PPI it is GCNII*, with
residuals, one graph a step; for other data those for Cora with fewer layers.
"""

import warnings
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GCN2Conv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gatas.experiments.baselines.peer import DROPOUTS, OWN, RATES, Peer, PeerRecipe, PeerSpace, Recipes, patient, trained


def _citation(num_layers: int, hidden_size: int, decay: float, dropout: float, l2: float) -> PeerRecipe:
    sizes = {"num_layers": num_layers, "hidden_size": hidden_size, "initial": 0.1, "decay": decay, "dropout": dropout}
    return PeerRecipe(
        {"rows_sum_to_one": True, **sizes, "dense_l2_share": 5e-4 / l2},
        trained(learning_rate=0.01, l2=l2, epochs=1500, patience=100, monitor="loss"),
    )


class GCNII(Peer):
    """Many convolutions, each with some of the first layer (`initial`, α) and weights near the identity (`decay`, λ)."""

    recipes: ClassVar[Recipes] = {
        "cora": _citation(64, 64, decay=0.5, dropout=0.6, l2=0.01),
        "citeseer": _citation(32, 256, decay=0.6, dropout=0.7, l2=0.01),
        "pubmed": _citation(16, 256, decay=0.4, dropout=0.5, l2=5e-4),
        OWN: PeerRecipe(
            {"num_layers": 16, "hidden_size": 64, "initial": 0.1, "decay": 0.5, "dropout": 0.5},
            patient(learning_rate=0.01, l2=5e-4),
        ),
        "ppi": PeerRecipe(
            {"num_layers": 9, "hidden_size": 2048, "initial": 0.5, "decay": 1.0, "dropout": 0.2, "starred": True},
            trained(learning_rate=0.001, by_graph=True, epochs=8000, patience=2000),
        ),
    }
    space: ClassVar[PeerSpace] = {
        **RATES, "dropout": DROPOUTS, "hidden_size": (64, 128, 256), "num_layers": (4, 8, 16, 32), "initial": (0.1, 0.3, 0.5),
        "decay": (0.5, 1.0, 1.5), "starred": (False, True),
    }  # fmt: skip

    def build(
        self, num_layers: int, hidden_size: int, initial: float, decay: float, dropout: float,
        dense_l2_share: float = 1.0, starred: bool = False,
    ) -> None:  # fmt: skip
        self.dropout, self.dense_l2_share, self.starred = dropout, dense_l2_share, starred
        self.first, self.last = nn.Linear(self.feature_size, hidden_size), nn.Linear(hidden_size, self.num_classes)
        options: dict[str, Any] = {"shared_weights": not starred, "normalize": False}
        self.layers = nn.ModuleList(
            [GCN2Conv(hidden_size, initial, decay, layer=number + 1, **options) for number in range(num_layers)]
        )
        for weight in self.layers.parameters():
            nn.init.uniform_(weight, -(hidden_size**-0.5), hidden_size**-0.5)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        normalised: tuple[Tensor, Tensor] = gcn_norm(edges, num_nodes=num_nodes)
        return normalised

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        first = x = F.relu(self.first(x))
        along = (edges, values) if self.vmaps else (as_matrix(edges, values, len(x)),)  # vmap knows no sparse matrices
        for layer in self.layers:
            out = layer(F.dropout(x, self.dropout, self.training), first, *along)
            x = F.relu(out + x if self.starred else out)
        logits: Tensor = self.last(F.dropout(x, self.dropout, self.training))
        return logits

    def l2_share(self, name: str) -> float:
        return 1.0 if name.startswith("layers.") else self.dense_l2_share


def as_matrix(edges: Tensor, values: Tensor, num_nodes: int) -> Tensor:
    """Edges in the order of the nodes that look along them: a product with it holds nothing for each edge."""
    nodes = torch.arange(num_nodes + 1, device=edges.device)
    starts = torch.searchsorted(edges[1].contiguous(), nodes)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that such matrices are in beta
        return torch.sparse_csr_tensor(starts, edges[0], values, (num_nodes, num_nodes), check_invariants=False)
