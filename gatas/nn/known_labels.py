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
        own, seen = self._seen(nodes, paths, labels, noise)
        if own.ndim == 2:
            added: Tensor = self.embeddings(own.to(self.embeddings.weight.dtype))
        else:
            added = F.embedding(own.clamp_min(0), self.embeddings.weight.T)
        return torch.where(seen[:, None], added, 0)

    def known(self, nodes: Tensor, paths: Tensor, labels: Tensor | None, noise: NoiseSource) -> Tensor:
        """(U, num_labels) of 0 and 1 for pairs of node and path: the labels themselves, where they are seen."""
        own, seen = self._seen(nodes, paths, labels, noise)
        found = own if own.ndim == 2 else F.one_hot(own.clamp_min(0), self.embeddings.in_features)
        return found.to(self.embeddings.weight.dtype) * seen[:, None]

    def _seen(self, nodes: Tensor, paths: Tensor, labels: Tensor | None, noise: NoiseSource) -> tuple[Tensor, Tensor]:
        """The labels of nodes, and which pairs see any: not over the self-loop, and none that training hides."""
        if labels is None:
            raise GatasError(
                "the encoder was made for known labels, and none came. Give those of all nodes, -1 for unknown ones."
            )
        own = labels.index_select(0, nodes)
        # The design hides the labels of all targets of a batch. In one layer none comes back to its own node but over the
        # self-loop, so each target's own is hidden from it alone: to hide those of other targets too would leave fewer labels
        # in training than in answers, the larger the batch the fewer, and what a node is taught would depend on its batch.
        seen = paths != SELF_LOOP
        if self.dropout.active:
            seen = seen & (self.dropout.keep(1, noise, nodes).squeeze(-1) > 0)
        return own, seen if own.ndim == 2 else seen & (own >= 0)
