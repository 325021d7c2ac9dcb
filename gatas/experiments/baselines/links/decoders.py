"""Scores of typed pairs from representations of their nodes.

`Bilinear` is what HGB's homGNN.py calls DistMult; `DistMult` is that of Yang et al. (2015), with a diagonal matrix.
"""

import torch
from torch import Tensor, nn


class Bilinear(nn.Module):
    """x ᵀ W y with a full matrix W for each type."""

    def __init__(self, size: int, num_types: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_types, size, size))
        for own in self.weight:
            nn.init.xavier_normal_(own)

    def forward(self, source: Tensor, target: Tensor, edge_type: Tensor) -> Tensor:
        # Of every type, then the one asked for: a matrix for each pair would not fit into memory.
        asked = torch.einsum("bx,txy,by->bt", source, self.weight, target)
        return asked.gather(1, edge_type[:, None]).squeeze(1)

    def as_target_of(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """(B, size) vectors whose products with representations are their scores as targets."""
        return by_type(source, self.weight, edge_type)

    def as_source_of(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """(B, size) vectors whose products with representations are their scores as sources."""
        return by_type(target, self.weight.transpose(1, 2), edge_type)


class DistMult(nn.Module):
    """Σ x w y with a vector w for each type; symmetric."""

    def __init__(self, size: int, num_types: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_types, size))
        nn.init.xavier_normal_(self.weight)

    def forward(self, source: Tensor, target: Tensor, edge_type: Tensor) -> Tensor:
        return (source * self.weight[edge_type] * target).sum(-1)

    def as_target_of(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """(B, size) vectors whose products with representations are their scores as targets."""
        return source * self.weight[edge_type]

    def as_source_of(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """(B, size) vectors whose products with representations are their scores as sources."""
        return target * self.weight[edge_type]


def by_type(vectors: Tensor, matrices: Tensor, edge_type: Tensor) -> Tensor:
    """(B, size) of (B, size) vectors, each by the matrix of its type, one type after another."""
    found = torch.empty_like(vectors)
    for kind in sorted(set(edge_type.tolist())):
        own = edge_type == kind
        found[own] = vectors[own] @ matrices[kind]
    return found
