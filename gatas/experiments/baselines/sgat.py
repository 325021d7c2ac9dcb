"""SGAT: Ye & Ji, "Sparse graph attention networks" (2021): attention that is zero for most edges, by an L0 penalty.

Each edge has one hard-concrete gate (Louizos, Welling & Kingma 2018) for all layers and heads. Settings are those of
github.com/Yangyeeee/SGAT, from whose code it is also known that gates look at the first head of the first layer. That code
reads Cora through an old DGL, whose `CoraDataset` is not Planetoid's split: it trains on the first 140 of the raw file and
validates on 300. So its 84.2 % on Cora cannot be compared with ours; Citeseer and Pubmed are the same there.
"""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import add_remaining_self_loops

from gatas.experiments.baselines.peer import CITATIONS, Peer, PeerRecipe, Recipes, trained

TEMPERATURE, LOWEST, HIGHEST = 2 / 3, -0.1, 1.1
"""β, γ and ζ of the hard-concrete distribution."""


def drawn_gates(logits: Tensor) -> Tensor:
    """Gates in [0, 1], exactly 0 or 1 with a chance of their own; the gradient flows to `logits`."""
    uniform = torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)
    return _stretched((uniform.logit() + logits) / TEMPERATURE)


def likely_gates(logits: Tensor) -> Tensor:
    """The gates of an evaluation: nothing is drawn."""
    return _stretched(logits / TEMPERATURE)


def chance_open(logits: Tensor) -> Tensor:
    """The probability that a gate is not 0: what the L0 norm of all gates is expected to be, edge by edge."""
    return torch.sigmoid(logits - TEMPERATURE * math.log(-LOWEST / HIGHEST))


def _stretched(logits: Tensor) -> Tensor:
    return (torch.sigmoid(logits) * (HIGHEST - LOWEST) + LOWEST).clamp(0, 1)


class SGAT(Peer):
    """Two layers that take the mean of the neighbours whose gates are open; a node's gate to itself always is."""

    recipes: ClassVar[Recipes] = dict.fromkeys(
        CITATIONS,
        PeerRecipe(
            {"rows_sum_to_one": True, "hidden_size": 32, "num_heads": 2, "dropout": 0.6, "l0": 1e-6},
            trained(learning_rate=0.01, l2=5e-4, epochs=200, patience=150),
        ),
    )

    def build(self, hidden_size: int, num_heads: int, dropout: float, l0: float) -> None:
        self.hidden_size, self.num_heads, self.dropout, self.l0 = hidden_size, num_heads, dropout, l0
        self.first = nn.Linear(self.feature_size, num_heads * hidden_size, bias=False)
        self.second = nn.Linear(num_heads * hidden_size, self.num_classes, bias=False)
        self.of_source, self.of_target = (nn.Parameter(torch.empty(1, hidden_size)) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(()))
        for weight in (self.first.weight, self.second.weight):
            nn.init.xavier_normal_(weight, gain=math.sqrt(2))
        for weight in (self.of_source, self.of_target):
            nn.init.normal_(weight, std=math.sqrt(2 / hidden_size))

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        """With self-loops, whose value is 1."""
        edges, _ = add_remaining_self_loops(edges, num_nodes=num_nodes)
        return edges, (edges[0] == edges[1]).float()

    def logits(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        hidden = self.first(x)  # (N, K·F)
        shares = self.shares(hidden[:, : self.hidden_size], edges, values)  # (E,)
        hidden = F.elu(self.mixed(hidden, edges, shares))
        return self.mixed(self.second(F.dropout(hidden, self.dropout, self.training)), edges, shares)

    def shares(self, hidden: Tensor, edges: Tensor, loops: Tensor) -> Tensor:
        """(E,) gates, of each node's edges divided by their sum."""
        logits = (hidden * self.of_source).sum(1)[edges[0]] + (hidden * self.of_target).sum(1)[edges[1]] + self.bias
        if self.training:
            self.expected_norm = (chance_open(logits) * (1 - loops)).sum()
        gates = torch.maximum(drawn_gates(logits) if self.training else likely_gates(logits), loops)
        return gates / gates.new_zeros(len(hidden)).index_add(0, edges[1], gates)[edges[1]]

    def mixed(self, x: Tensor, edges: Tensor, shares: Tensor) -> Tensor:
        kept = F.dropout(shares, self.dropout, self.training)
        return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]] * kept[:, None])

    def penalty(self) -> Tensor:
        return self.l0 * self.expected_norm
