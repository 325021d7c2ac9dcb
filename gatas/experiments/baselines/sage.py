"""GraphSAGE with mean aggregation: Hamilton, Ying & Leskovec, "Inductive representation learning on large graphs" (2017).

PPI: two layers of 2 × 128 and a dense one, as in github.com/williamleif/GraphSAGE, but with all neighbours instead of samples.
The paper has no citations of the public split: settings are those of DGL's examples/pytorch/graphsage, with the mean instead of
its "gcn" aggregation. Other data: a wider layer, and patience.
"""

from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import SAGEConv

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


class GraphSAGE(Peer):
    """The node itself and the mean of its neighbours, layer after layer."""

    recipes: ClassVar[Recipes] = {
        **dict.fromkeys(
            CITATIONS,
            PeerRecipe(
                {"rows_sum_to_one": True, "hidden_sizes": (16,), "dropout": 0.5},
                trained(learning_rate=0.01, l2=5e-4, epochs=200, patience=200),
            ),
        ),
        OWN: PeerRecipe({"hidden_sizes": (64,), "dropout": 0.5}, patient(learning_rate=0.01, l2=5e-4)),
        "ppi": PeerRecipe(
            {"hidden_sizes": (256, 256), "dropout": 0.0, "ends_dense": True},
            trained(learning_rate=0.01, by_graph=True, epochs=1000, patience=100),
        ),
    }
    space: ClassVar[PeerSpace] = {**RATES, "dropout": DROPOUTS, "hidden_sizes": ((64,), (256,), (64, 64), (256, 256))}

    def build(self, hidden_sizes: tuple[int, ...], dropout: float, ends_dense: bool = False) -> None:
        self.dropout = dropout
        sizes = (self.feature_size, *hidden_sizes)
        self.layers = nn.ModuleList([ProjectingSAGEConv(*both) for both in pairwise(sizes)])
        self.ends_dense = ends_dense
        self.last = (nn.Linear if ends_dense else ProjectingSAGEConv)(sizes[-1], self.num_classes)

    def logits(self, x: Tensor, edges: Tensor, values: None) -> Tensor:
        for layer in self.layers:
            x = F.dropout(F.relu(layer(x, edges)), self.dropout, self.training)
        logits: Tensor = self.last(x) if self.ends_dense else self.last(x, edges)
        return logits


class ProjectingSAGEConv(SAGEConv):  # type: ignore[misc]
    """PyG's layer, which takes the mean of inputs or of outputs, whichever are narrower."""

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        if self.in_channels <= self.out_channels:
            same: Tensor = super().forward(x, edges)
            return same
        sent = F.linear(x, self.lin_l.weight)
        total: Tensor = self.propagate(edges, x=(sent, sent), size=None) + self.lin_l.bias + self.lin_r(x)
        return total
