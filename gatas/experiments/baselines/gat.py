"""GAT: Veličković et al., "Graph attention networks" (2018).

Settings are those of the paper's §3.3 and github.com/PetarV-/GAT, whose patience also counts from the last time that
validation loss or accuracy was as good as ever. That code keeps the epoch where both are, here the best accuracy is kept, of
equal ones the smaller loss; and it drops projected features once more, which PyG's layer does not. For PPI the linear shortcuts
are those of PyG's examples/ppi.py, and a step sees one graph instead of two.
"""

from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv
from torch_geometric.utils import add_remaining_self_loops

from gatas.experiments.baselines.peer import Peer, Recipe, Recipes, trained

CITATION = {"rows_sum_to_one": True, "hidden_sizes": (8,), "num_heads": (8, 1), "dropout": 0.6}
STOPPING = {"epochs": 100_000, "patience": 100, "monitor": "either"}


class GAT(Peer):
    """Layers of attention heads, side by side in hidden layers and averaged in the last."""

    layer: ClassVar[Any] = GATConv
    recipes: ClassVar[Recipes] = {
        **dict.fromkeys(("cora", "citeseer"), Recipe(CITATION, trained(learning_rate=0.005, l2=5e-4, **STOPPING))),
        "pubmed": Recipe({**CITATION, "num_heads": (8, 8)}, trained(learning_rate=0.01, l2=1e-3, **STOPPING)),
        "ppi": Recipe(
            {"hidden_sizes": (256, 256), "num_heads": (4, 4, 6), "dropout": 0.0, "shortcuts": True},
            trained(learning_rate=0.005, by_graph=True, **STOPPING),
        ),
    }

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
