"""APPNP: Gasteiger, Bojchevski & Günnemann, "Predict then propagate" (2019).

Settings are those of the paper's §5 and github.com/gasteigerjo/ppnp, early stopping too: patience counts from the last time
that validation loss or accuracy was as good as ever, and the best accuracy is kept, of equal ones the smaller loss.
Other data has less decay, and patience.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
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


class APPNP(Peer):
    """A perceptron whose logits walk the graph and come back."""

    recipes: ClassVar[Recipes] = {
        **dict.fromkeys(
            CITATIONS,
            PeerRecipe(
                {"rows_sum_to_one": True, "hidden_size": 64, "num_steps": 10, "teleport": 0.1, "dropout": 0.5},
                trained(learning_rate=0.01, l2=5e-3, epochs=10_000, patience=100, monitor="either"),
            ),
        ),
        OWN: PeerRecipe(
            {"hidden_size": 64, "num_steps": 10, "teleport": 0.1, "dropout": 0.5}, patient(learning_rate=0.01, l2=5e-4)
        ),
    }
    space: ClassVar[PeerSpace] = {
        **RATES, "dropout": DROPOUTS, "hidden_size": (64, 128, 256), "num_steps": (2, 5, 10), "teleport": (0.1, 0.3, 0.5, 0.9),
    }  # fmt: skip

    def build(self, hidden_size: int, num_steps: int, teleport: float, dropout: float) -> None:
        self.num_steps, self.teleport, self.dropout = num_steps, teleport, dropout
        self.first = nn.Linear(self.feature_size, hidden_size, bias=False)
        self.second = nn.Linear(hidden_size, self.num_classes, bias=False)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        normalised: tuple[Tensor, Tensor] = gcn_norm(edges, num_nodes=num_nodes)
        return normalised

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        x = self.second(F.dropout(x, self.dropout, self.training))
        start = x
        for _ in range(self.num_steps):
            # PyG's layer drops edges from those that the step before has left, so that ten steps leave next to none
            kept = F.dropout(values, self.dropout, self.training)
            walked = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]] * kept[:, None])
            x = (1 - self.teleport) * walked + self.teleport * start
        return x

    def l2_share(self, name: str) -> float:
        return float(name.startswith("first."))
