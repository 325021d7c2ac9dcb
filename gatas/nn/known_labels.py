"""Known labels of neighbours as inputs; a target never sees its own."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.errors import GatasError
from gatas.nn.dropout import Dropout
from gatas.ops.random import NoiseSource

SELF_LOOP = 0
"""The path from a node to itself: the only one over which a target meets itself, and over which it sees no label."""


class KnownLabels(nn.Module):
    """What the known labels of a neighbour add to it; nothing where none is known.

    A node counts at its shortest step only, so that the only path to a target itself is the self-loop, which adds nothing: what
    is predicted of a node does not depend on its own label.
    """

    def __init__(self, num_labels: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.embeddings = nn.Linear(num_labels, size, bias=False)
        nn.init.xavier_uniform_(self.embeddings.weight)
        self.dropout = Dropout(dropout, place=8)

    def forward(self, nodes: Tensor, paths: Tensor, labels: Tensor | None, noise: NoiseSource) -> Tensor:
        """(U, size) for pairs of node and path, from labels of all nodes: (N,) numbers, or (N, num_labels) of 0 and 1."""
        if labels is None:
            raise GatasError(
                "the encoder was made for known labels, and none came. Give those of all nodes, -1 for unknown ones."
            )
        own = labels.index_select(0, nodes)
        seen = paths != SELF_LOOP
        if self.dropout.active:
            seen = seen & (self.dropout.keep(1, noise, nodes).squeeze(-1) > 0)
        if own.ndim == 2:
            added: Tensor = self.embeddings(own.to(self.embeddings.weight.dtype))
        else:
            added, seen = F.embedding(own.clamp_min(0), self.embeddings.weight.T), seen & (own >= 0)
        return torch.where(seen[:, None], added, 0)
