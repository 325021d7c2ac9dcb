"""GCN: Kipf & Welling, "Semi-supervised classification with graph convolutional networks" (2017).

Settings are those of the paper's §5.2 and github.com/tkipf/gcn; for other data a wider layer, and patience.
"""

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gatas.experiments.baselines.peer import (
    CITATIONS,
    DROPOUTS,
    OWN,
    RATES,
    Peer,
    PeerRecipe,
    PeerSpace,
    Recipes,
    patient,
    trained,
)


class GCN(Peer):
    """Two convolutions with the renormalised adjacency."""

    recipes: ClassVar[Recipes] = {
        **dict.fromkeys(
            CITATIONS,
            PeerRecipe(
                {"rows_sum_to_one": True, "hidden_size": 16, "dropout": 0.5},
                trained(learning_rate=0.01, l2=5e-4, epochs=200, patience=10, monitor="loss"),
            ),
        ),
        OWN: PeerRecipe({"hidden_size": 64, "dropout": 0.5}, patient(learning_rate=0.01, l2=5e-4)),
    }
    space: ClassVar[PeerSpace] = {**RATES, "dropout": DROPOUTS, "hidden_size": (16, 64, 128, 256)}

    def build(self, hidden_size: int, dropout: float) -> None:
        self.dropout = dropout
        self.first, self.second = (
            self.convolution(self.feature_size, hidden_size),
            self.convolution(hidden_size, self.num_classes),
        )

    def convolution(self, in_size: int, out_size: int) -> Any:
        return GCNConv(in_size, out_size, normalize=False)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        normalised: tuple[Tensor, Tensor] = gcn_norm(edges, num_nodes=num_nodes)
        return normalised

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        x = F.relu(self.first(x, edges, values))
        logits: Tensor = self.second(F.dropout(x, self.dropout, self.training), edges, values)
        return logits

    def l2_share(self, name: str) -> float:
        return float(name.startswith("first."))
