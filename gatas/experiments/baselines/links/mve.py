"""MVE: an embedding for each type of edge (a view), and a robust one that the views vote for (Qu et al., CIKM 2017).

The view of a pair is learned by skip-gram, contexts being shared between views; views are drawn towards the robust embedding,
which is their mean weighted by attention. In the paper labels of nodes teach the attention; here, where there are none, it is
taught by the same walks, through the robust embedding. Links are scored by the robust embedding, whatever their type.
The weight η of the agreement is ours.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from gatas.experiments.baselines.links.skipgram import SkipGram, of_type, one_hot
from gatas.experiments.baselines.links.walks import Layers

AGREEMENT = 0.05


class MVE(SkipGram):
    """One embedding of each node in each view."""

    absent: Tensor

    def __init__(self, layers: Layers, size: int, expected: Tensor, generator: Generator) -> None:
        super().__init__(layers, size, expected, generator)
        bound = 0.5 / size
        self.views = nn.Parameter(torch.empty(layers.num_nodes, layers.num_types, size).uniform_(-bound, bound))
        self.attention = nn.Parameter(torch.zeros(layers.num_types, layers.num_types * size))  # z, of all views side by side
        self.register_buffer("absent", (layers.degree() == 0).view(layers.num_types, -1).T, persistent=False)

    def embed(self, node: Tensor, edge_type: Tensor) -> Tensor:
        return of_type(self.views, node, edge_type)

    def final(self, node: Tensor, edge_type: Tensor) -> Tensor:
        views = self._views(node)
        return self._robust(views, self._votes(node, views))

    def forward(self, centre: Tensor, edge_type: Tensor, context: Tensor, negatives: Tensor) -> Tensor:
        views = self._views(centre)
        own = (views * one_hot(edge_type, views.shape[1])[:, :, None]).sum(1)
        votes = self._votes(centre, views.detach())
        voted = self._robust(views.detach(), votes)  # teaches the attention, not the views
        robust = self._robust(views, votes.detach())
        apart = (votes.detach() * (views - robust[:, None]).square().sum(-1)).sum(-1).mean()
        taught = self.contrast(voted, context, negatives)
        return self.contrast(own, context, negatives) + taught + AGREEMENT * apart

    def _views(self, node: Tensor) -> Tensor:
        """(B, T, size)"""
        return F.embedding(node, self.views.flatten(1)).view(len(node), -1, self.size)

    def _votes(self, node: Tensor, views: Tensor) -> Tensor:
        """(B, T) weights of views that the node has edges in."""
        logits = (views.flatten(1) @ self.attention.T).masked_fill(self.absent[node], -torch.inf)
        return torch.softmax(logits, dim=1).nan_to_num(0.0)  # a node without any edge has no vote

    def _robust(self, views: Tensor, votes: Tensor) -> Tensor:
        return torch.einsum("bt,btd->bd", votes, views)
