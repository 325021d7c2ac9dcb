"""`PathWeights`: how much each typed path between two nodes speaks for a link of each type."""

import torch
from torch import Tensor, nn

TABLE_SIZE = 20_000
"""Up to so many pairs of a link type and a path, each has weights of its own."""


class PathWeights(nn.Module):
    """Learned weights a(type, path) of T link types and P paths: a constant, and the slopes of ln P forth and back.

    Where pairs of type and path are few, each has its own weights. Where they are many, the weights are a sum over K factors:
    the type's, times one for the relation at each step of the path. So a path that training has hardly seen, or not at all,
    has weights that come from its relations and their places.

    Args:
        relations: (P, C) relations of each path, first step first, -1 after the last.
        num_types: T.
        num_relations: Relations that paths are made of.
        own_path: (T,) the place of the path that is a link of that type itself, which is no evidence for it; -1 for none.
        rank: K.
    """

    relations: Tensor
    own_path: Tensor
    types_with_path: Tensor

    def __init__(self, relations: Tensor, num_types: int, num_relations: int, own_path: Tensor, rank: int = 32) -> None:
        super().__init__()
        self.num_types, self.num_relations, self.num_paths = num_types, num_relations, len(relations)
        self.register_buffer("relations", torch.where(relations < 0, num_relations, relations), persistent=False)
        self.register_buffer("own_path", own_path, persistent=False)
        self.register_buffer("types_with_path", (own_path >= 0).nonzero()[:, 0], persistent=False)  # a GPU waits to count them
        self.unreached = nn.Parameter(torch.zeros(num_types))
        self.is_table = num_types * self.num_paths <= TABLE_SIZE
        if self.is_table:
            self.table = nn.Parameter(torch.zeros(num_types, self.num_paths, 3))
            return
        self.of_type = nn.Parameter(torch.randn(num_types, 3, rank) * 0.1)
        self.of_step = nn.Parameter(0.5 + torch.randn(relations.shape[1], num_relations + 1, rank) * 0.3)

    def extended(self, relations: Tensor, own_path: Tensor) -> "PathWeights":
        """Return weights for further paths as well, by the same factors; only where weights are not a table."""
        assert not self.is_table
        with torch.random.fork_rng(devices=[]):  # what is drawn is not used
            every = torch.cat([self.relations, relations.to(self.relations.device)])
            sizes = (self.num_types, self.num_relations, own_path.to(every.device), self.of_type.shape[2])
            longer = PathWeights(every, *sizes)
        longer.unreached, longer.of_type, longer.of_step = self.unreached, self.of_type, self.of_step
        return longer

    def forward(self) -> Tensor:
        """Return (T, P, 3) weights; zeros for the path that is the link itself."""
        weights = self.table if self.is_table else torch.einsum("pk,tjk->tpj", self.factors(), self.of_type)
        types = self.types_with_path
        return weights.index_put((types, self.own_path[types]), weights.new_zeros(()))

    def of_types(self, types: Tensor, of_path: Tensor | None = None) -> Tensor:
        """Return (n, P, 3) weights of some types; `of_path` are `factors`, where these are known already."""
        if self.is_table:
            weights = self.table[types]
        else:
            weights = torch.einsum("pk,tjk->tpj", self.factors() if of_path is None else of_path, self.of_type[types])
        own = self.own_path[types]
        rows = (own >= 0).nonzero()[:, 0]
        return weights.index_put((rows, own[rows]), weights.new_zeros(()))

    def factors(self) -> Tensor:
        """Return (P, K) factors of paths, where weights are not a table: products over the steps of each."""
        product = self.of_step[0][self.relations[:, 0]]
        for step in range(1, self.relations.shape[1]):
            product = product * self.of_step[step][self.relations[:, step]]
        return product
