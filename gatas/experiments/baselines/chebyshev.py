"""Chebyshev filters: Defferrard, Bresson & Vandergheynst (2016), as Kipf & Welling (2017) compare with them.

Settings are those of github.com/tkipf/gcn (`gcn_cheby`). The three filters T₀, T₁, T₂ here are "K = 2" in their Table 3.
"""

from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh
from torch import Tensor
from torch_geometric.nn import ChebConv
from torch_geometric.utils import get_laplacian, to_scipy_sparse_matrix

from gatas.experiments.baselines.gcn import GCN

NUM_FILTERS = 3


class Chebyshev(GCN):
    """GCN's two layers with polynomials of the Laplacian."""

    def convolution(self, in_size: int, out_size: int) -> Any:
        return _Convolution(in_size, out_size, NUM_FILTERS)

    def prepared(self, edges: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
        """2L / λ − I."""
        edges, weights = get_laplacian(edges, normalization="sym", num_nodes=num_nodes)
        laplacian = to_scipy_sparse_matrix(edges, weights, num_nodes).tocsr()
        start = np.random.default_rng(0).normal(size=num_nodes)
        largest = float(eigsh(laplacian, 1, which="LM", v0=start, return_eigenvectors=False)[0])
        return edges, 2 * weights / largest - (edges[0] == edges[1]).float()


class _Convolution(ChebConv):  # type: ignore[misc]
    """PyG's, with what is normalised once and not in each step."""

    def __norm__(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor, *args: Any, **more: Any) -> Any:
        return edge_index, edge_weight
