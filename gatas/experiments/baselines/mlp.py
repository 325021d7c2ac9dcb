"""A perceptron that looks at no neighbours.

Citations: hidden 16, dropout and decay of Kipf & Welling's `mlp` (github.com/tkipf/gcn, train.py). PPI: sizes are ours,
the rest is as for GAT. Other data: a wider layer, and patience.
"""

from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

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


class MLP(Peer):
    """Dense layers with dropout before each."""

    recipes: ClassVar[Recipes] = {
        **dict.fromkeys(
            CITATIONS,
            PeerRecipe(
                {"rows_sum_to_one": True, "hidden_sizes": (16,), "dropout": 0.5},
                trained(learning_rate=0.01, l2=5e-4, epochs=200, patience=10, monitor="loss"),
            ),
        ),
        OWN: PeerRecipe({"hidden_sizes": (64,), "dropout": 0.5}, patient(learning_rate=0.01, l2=5e-4)),
        "ppi": PeerRecipe(
            {"hidden_sizes": (512, 512), "dropout": 0.0}, trained(learning_rate=0.005, by_graph=True, epochs=1000, patience=100)
        ),
    }
    space: ClassVar[PeerSpace] = {**RATES, "dropout": DROPOUTS, "hidden_sizes": ((64,), (256,), (64, 64), (256, 256))}

    def build(self, hidden_sizes: tuple[int, ...], dropout: float) -> None:
        self.dropout = dropout
        sizes = (self.feature_size, *hidden_sizes, self.num_classes)
        layers = [nn.Linear(*both) for both in pairwise(sizes)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)

    def logits(self, x: Tensor, edges: Tensor, values: None) -> Tensor:
        for layer in self.layers[:-1]:
            x = F.dropout(F.relu(layer(x)), self.dropout, self.training)
        logits: Tensor = self.layers[-1](x)
        return logits

    def l2_share(self, name: str) -> float:
        return float(name.startswith("layers.0."))
