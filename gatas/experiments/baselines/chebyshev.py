"""Chebyshev filters: Defferrard, Bresson & Vandergheynst (2016), as Kipf & Welling (2017) compare with them.

Settings are those of github.com/tkipf/gcn (`gcn_cheby`). The three filters T₀, T₁, T₂ here are "K = 2" in their Table 3.
"""

from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor
from torch_geometric.nn import ChebConv
from torch_geometric.utils import get_laplacian, to_scipy_sparse_matrix

from gatas.experiments.baselines.gcn import GCN

NUM_FILTERS = 3


class Chebyshev(GCN):
    """GCN's two layers with polynomials of the Laplacian."""

    def convolution(self, in_size: int, out_size: int) -> Any:
        return ProjectingChebConv(in_size, out_size, NUM_FILTERS)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        """2L / λ − I."""
        edges, weights = get_laplacian(edges, normalization="sym", num_nodes=num_nodes)
        laplacian = to_scipy_sparse_matrix(edges, weights, num_nodes).tocsr()
        start = np.random.default_rng(0).normal(size=num_nodes)
        largest = float(eigsh(laplacian, 1, which="LM", v0=start, return_eigenvectors=False)[0])
        return edges, 2 * weights / largest - (edges[0] == edges[1]).float()


class ProjectingChebConv(ChebConv):  # type: ignore[misc]
    """PyG's layer by Clenshaw's recurrence: what is sent along the edges is as wide as the output, not as the input."""

    def forward(self, x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        first, *others = (lin(x) for lin in self.lins)
        last = second_last = torch.zeros_like(first)
        for one in reversed(others):
            last, second_last = one + 2 * self.propagate(edges, x=last, norm=weights) - second_last, last
        total: Tensor = first + self.propagate(edges, x=last, norm=weights) - second_last + self.bias
        return total
