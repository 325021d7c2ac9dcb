"""Classic layers with norm and residual: Luo, Shi & Wu, "Classic GNNs are strong baselines" (2024).

Each layer has a linear shortcut, a norm, ReLU and dropout, and a dense layer ends it, as in github.com/LUOyk1999/tunedGNN
(medium_graph/model.py). Sizes for citations are from run_gnn.sh there, where these have neither norm nor residual; here they
have, as the names say: without, it is the plain peer. Other data has settings in the middle of those for Amazon and
Coauthor. Batch norm takes the statistics of all nodes in evaluation too, not running ones: a step sees all nodes anyway.
"""

from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_remaining_self_loops

from gatas.experiments.baselines.peer import DROPOUTS, OWN, RATES, Peer, PeerRecipe, PeerSpace, Recipes, patient, trained
from gatas.experiments.baselines.sage import ProjectingSAGEConv


def make_norm(name: str, size: int) -> nn.Module:
    """The norm of that name: `layer`, `batch` or `none`."""
    if name == "batch":
        return nn.BatchNorm1d(size, track_running_stats=False)
    return nn.LayerNorm(size) if name == "layer" else nn.Identity()


def recipes(
    cora: tuple[int, int, float], citeseer: tuple[int, int, float], pubmed: tuple[int, int, float], rate: float
) -> Recipes:
    """Recipes for (num_layers, hidden_size, dropout) of each citation network and a learning rate for Pubmed."""
    decays = {"cora": (0.001, 5e-4), "citeseer": (0.001, 0.01), "pubmed": (rate, 5e-4)}
    sizes = {"cora": cora, "citeseer": citeseer, "pubmed": pubmed}
    return {
        **{
            name: PeerRecipe(
                {"rows_sum_to_one": True, "num_layers": num_layers, "hidden_size": hidden_size, "dropout": dropout},
                trained(learning_rate=decays[name][0], l2=decays[name][1], epochs=500, patience=200),
            )
            for name, (num_layers, hidden_size, dropout) in sizes.items()
        },
        OWN: PeerRecipe({"num_layers": 3, "hidden_size": 256, "dropout": 0.5}, patient(learning_rate=0.001, l2=5e-5)),
        "ppi": PeerRecipe(
            {"num_layers": 3, "hidden_size": 512, "dropout": 0.2},
            trained(learning_rate=0.005, by_graph=True, epochs=10_000, patience=100),
        ),
    }


SPACE: PeerSpace = {
    **RATES, "dropout": DROPOUTS, "hidden_size": (64, 128, 256, 512), "num_layers": (2, 3, 4, 6),
    "norm": ("layer", "batch", "none"), "residual": (True, False),
}  # fmt: skip


class NormalisedGCN(Peer):
    """GCN's convolutions."""

    drops_features = False
    recipes: ClassVar[Recipes] = recipes((3, 512, 0.7), (2, 512, 0.5), (2, 256, 0.7), rate=0.005)
    space: ClassVar[PeerSpace] = SPACE

    def build(
        self, num_layers: int, hidden_size: int, dropout: float, norm: str = "layer", residual: bool = True, **more: Any
    ) -> None:
        self.dropout = dropout
        pairs = list(pairwise([self.feature_size, *[hidden_size] * num_layers]))
        self.layers = nn.ModuleList([self.convolution(*both, **more) for both in pairs])
        self.shortcuts = nn.ModuleList([self.shortcut(*both) for both in pairs if residual])
        self.norms = nn.ModuleList([make_norm(norm, hidden_size) for _ in pairs])
        self.last = nn.Linear(hidden_size, self.num_classes)

    def convolution(self, in_size: int, out_size: int) -> nn.Module:
        made: nn.Module = GCNConv(in_size, out_size, normalize=False)
        return made

    def shortcut(self, in_size: int, out_size: int) -> nn.Module:
        return nn.Linear(in_size, out_size)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        normalised: tuple[Tensor, Tensor] = gcn_norm(edges, num_nodes=num_nodes)
        return normalised

    def convolved(self, layer: nn.Module, x: Tensor, edges: Tensor, values: Tensor | None) -> Tensor:
        found: Tensor = layer(x, edges) if values is None else layer(x, edges, values)
        return found

    def logits(self, x: Tensor, edges: Tensor, values: Tensor | None) -> Tensor:
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            out = self.convolved(layer, x, edges, values)
            if self.shortcuts:
                out = out + self.shortcuts[number](x)
            x = F.dropout(F.relu(norm(out)), self.dropout, self.training)
        logits: Tensor = self.last(x)
        return logits


class NormalisedSAGE(NormalisedGCN):
    """GraphSAGE's means."""

    recipes: ClassVar[Recipes] = recipes((3, 256, 0.7), (3, 512, 0.2), (4, 512, 0.7), rate=0.005)

    def convolution(self, in_size: int, out_size: int) -> nn.Module:
        return ProjectingSAGEConv(in_size, out_size)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        return edges, None


class NormalisedGAT(NormalisedGCN):
    """GAT's attention, with heads side by side."""

    recipes: ClassVar[Recipes] = recipes((3, 512, 0.2), (3, 256, 0.5), (2, 512, 0.5), rate=0.01)
    space: ClassVar[PeerSpace] = {**SPACE, "num_heads": (1, 4, 8)}

    def convolution(self, in_size: int, out_size: int, num_heads: int = 1) -> nn.Module:
        made: nn.Module = GATConv(in_size, out_size // num_heads, num_heads, add_self_loops=False, bias=False)
        return made

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        return add_remaining_self_loops(edges, num_nodes=num_nodes)[0], None


class NormalisedMLP(NormalisedGCN):
    """Dense layers; a layer's own input is its shortcut. The paper has no perceptron: sizes are those of its GCN."""

    def convolution(self, in_size: int, out_size: int) -> nn.Module:
        return nn.Linear(in_size, out_size)

    def shortcut(self, in_size: int, out_size: int) -> nn.Module:
        return nn.Identity() if in_size == out_size else nn.Linear(in_size, out_size)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        return edges, None

    def convolved(self, layer: nn.Module, x: Tensor, edges: Tensor, values: Tensor | None) -> Tensor:
        found: Tensor = layer(x)
        return found
