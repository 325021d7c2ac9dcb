"""GRAND: Feng et al., "Graph random neural network for semi-supervised learning on graphs" (2020).

Settings are those of run_cora.sh, run_citeseer.sh and run_pubmed.sh in github.com/THUDM/GRAND. A step looks at all nodes S
times, each time without the nodes that were dropped, and all S are pulled to their sharpened mean: `consistency` in the
settings of training. Three things differ from that code: dense layers start as Glorot's, where theirs start with a mean
below zero, which dies on features that do not sum to one; batch norm has the statistics of all nodes in evaluation too; and
patience counts from the smallest validation loss, where theirs counts from the best accuracy as well.
"""

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gatas.experiments.baselines.classic import make_norm
from gatas.experiments.baselines.gcnii import as_matrix
from gatas.experiments.baselines.peer import (
    ALL_NODES,
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


def _agreeing(weight: float, draws: int, temperature: float) -> dict[str, Any]:
    return {
        "consistency": weight, "consistency_draws": draws, "temperature": temperature, "consistency_nodes": ALL_NODES,
        "monitor": "loss",
    }  # fmt: skip


def _model(num_steps: int, input_dropout: float, dropout: float, norm: str = "none") -> dict[str, Any]:
    return {"hidden_size": 32, "num_steps": num_steps, "input_dropout": input_dropout, "dropout": dropout, "norm": norm}


class GRAND(Peer):
    """A perceptron over features of some nodes that have walked up to `num_steps` steps, the mean of all lengths."""

    vmaps = captures = False  # features walk by a sparse matrix, which holds nothing for each edge
    drops_features = False  # but after they have walked
    learns_numbers = False  # draws agree on probabilities
    recipes: ClassVar[Recipes] = {
        "cora": PeerRecipe(
            {"rows_sum_to_one": True, **_model(8, 0.5, 0.5)},
            trained(learning_rate=0.01, l2=5e-4, epochs=5000, patience=200, **_agreeing(1.0, 4, 0.5)),
        ),
        "citeseer": PeerRecipe(
            {"rows_sum_to_one": True, **_model(2, 0.0, 0.2)},
            trained(learning_rate=0.01, l2=5e-4, epochs=5000, patience=200, **_agreeing(0.7, 2, 0.3)),
        ),
        "pubmed": PeerRecipe(
            {"rows_sum_to_one": True, **_model(5, 0.6, 0.8, "batch")},
            trained(learning_rate=0.2, l2=5e-4, epochs=5000, patience=100, **_agreeing(1.0, 4, 0.2)),
        ),
        OWN: PeerRecipe(
            {**_model(5, 0.5, 0.5), "hidden_size": 64},
            patient(learning_rate=0.01, l2=5e-4, **{**_agreeing(1.0, 4, 0.5), "monitor": "metric"}),
        ),
    }
    space: ClassVar[PeerSpace] = {
        **RATES, "dropout": DROPOUTS, "input_dropout": (0.0, 0.3, 0.5), "hidden_size": (32, 64, 128, 256),
        "num_steps": (1, 2, 5, 8), "norm": ("none", "batch"), "consistency": (0.5, 1.0, 1.5), "temperature": (0.2, 0.5),
    }  # fmt: skip

    def build(
        self,
        num_steps: int,
        hidden_size: int,
        dropout: float,
        input_dropout: float,
        norm: str = "none",
        drop_nodes: float = 0.5,
    ) -> None:
        self.num_steps, self.drop_nodes, self.dropout, self.input_dropout = num_steps, drop_nodes, dropout, input_dropout
        self.first, self.second = nn.Linear(self.feature_size, hidden_size), nn.Linear(hidden_size, self.num_classes)
        self.norms = nn.ModuleList([make_norm(norm, size) for size in (self.feature_size, hidden_size)])
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        normalised: tuple[Tensor, Tensor] = gcn_norm(edges, num_nodes=num_nodes)
        return normalised

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        x = F.dropout(self.norms[0](self.walked(self.kept_nodes(x), edges, values)), self.input_dropout, self.training)
        x = self.norms[1](F.relu(self.first(x)))
        logits: Tensor = self.second(F.dropout(x, self.dropout, self.training))
        return logits

    def kept_nodes(self, x: Tensor) -> Tensor:
        """Inputs without those of nodes that are dropped; in evaluation as much of each as is left on average (DropNode)."""
        share = 1 - self.drop_nodes
        if not self.training:
            return x * share
        return x * F.dropout(x.new_ones(len(x), 1), self.drop_nodes) * share  # torch scales what it keeps, the authors do not

    def walked(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        """The mean of x, Âx, …, Âᴷx."""
        total, matrix = x, as_matrix(edges, values, len(x))
        for _ in range(self.num_steps):
            x = matrix @ x
            total = total + x
        return total / (self.num_steps + 1)
