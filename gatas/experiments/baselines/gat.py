"""GAT: Veličković et al., "Graph attention networks" (2018).

Settings are those of the paper's §3.3 and github.com/PetarV-/GAT, early stopping too: patience counts from the last time that
validation loss or accuracy was as good as ever, and the last epoch is kept where both were. For PPI the linear shortcuts are
those of PyG's examples/ppi.py, a step sees one graph instead of two, and the best micro-F1 is kept. Other data has wider
heads, and patience.
"""

from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv
from torch_geometric.utils import add_remaining_self_loops

from gatas.experiments.baselines.peer import DROPOUTS, OWN, RATES, Peer, PeerRecipe, PeerSpace, Recipes, patient, trained

CITATION = {"rows_sum_to_one": True, "hidden_sizes": (8,), "num_heads": (8, 1), "dropout": 0.6}
STOPPING = {"epochs": 100_000, "patience": 100, "monitor": "both"}


class DroppingGATConv(GATConv):  # type: ignore[misc]
    """PyG's layer, but projected features are dropped too once they have been scored, as the authors do."""

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        sent = self.lin(x).view(-1, self.heads, self.out_channels)
        scores = (sent * self.att_src).sum(-1), (sent * self.att_dst).sum(-1)
        attention = self.edge_updater(edges, alpha=scores, edge_attr=None, size=None)
        sent = F.dropout(sent, self.dropout, self.training)
        out = self.propagate(edges, x=(sent, sent), alpha=attention, size=None)
        total: Tensor = (out.flatten(1) if self.concat else out.mean(1)) + self.bias
        return total


class GAT(Peer):
    """Layers of attention heads, side by side in hidden layers and averaged in the last."""

    layer: ClassVar[Any] = DroppingGATConv
    recipes: ClassVar[Recipes] = {
        **dict.fromkeys(("cora", "citeseer"), PeerRecipe(CITATION, trained(learning_rate=0.005, l2=5e-4, **STOPPING))),
        "pubmed": PeerRecipe({**CITATION, "num_heads": (8, 8)}, trained(learning_rate=0.01, l2=1e-3, **STOPPING)),
        OWN: PeerRecipe({"hidden_sizes": (16,), "num_heads": (8, 1), "dropout": 0.5}, patient(learning_rate=0.005, l2=5e-4)),
        "ppi": PeerRecipe(
            {"hidden_sizes": (256, 256), "num_heads": (4, 4, 6), "dropout": 0.0, "shortcuts": True},
            trained(learning_rate=0.005, by_graph=True, **{**STOPPING, "monitor": "either"}),
        ),
    }
    space: ClassVar[PeerSpace] = {
        **RATES, "dropout": DROPOUTS, "hidden_sizes": ((8,), (16,), (32,), (64,)), "num_heads": ((8, 1), (8, 8), (4, 1)),
    }  # fmt: skip

    def build(self, hidden_sizes: tuple[int, ...], num_heads: tuple[int, ...], dropout: float, shortcuts: bool = False) -> None:
        self.dropout = dropout
        widths = [size * heads for size, heads in zip(hidden_sizes, num_heads, strict=False)]
        shapes = zip((self.feature_size, *widths), (*hidden_sizes, self.num_classes), num_heads, strict=True)
        options = {"dropout": dropout, "add_self_loops": False}
        self.layers = nn.ModuleList(
            [
                self.layer(in_size, out_size, heads, concat=number < len(hidden_sizes), **options)
                for number, (in_size, out_size, heads) in enumerate(shapes)
            ]
        )
        sizes = (self.feature_size, *widths, self.num_classes)
        beside = pairwise(sizes) if shortcuts else ()
        self.shortcuts = nn.ModuleList([nn.Linear(*both) for both in beside])

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        return add_remaining_self_loops(edges, num_nodes=num_nodes)[0], None

    def logits(self, x: Tensor, edges: Tensor, values: None) -> Tensor:
        for number, layer in enumerate(self.layers):
            out = layer(x, edges)
            if self.shortcuts:
                out = out + self.shortcuts[number](x)
            x = out if number == len(self.layers) - 1 else F.dropout(F.elu(out), self.dropout, self.training)
        return x
