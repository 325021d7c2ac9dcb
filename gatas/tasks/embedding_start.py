"""Learned embeddings that start from the structure of the graph, which says more than chance where labels are few."""

from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gatas.graph import Graph
from gatas.transitions.factors import structure_factors

STRUCTURE_SCALE = 1.0
"""Root mean square of the numbers that embeddings start with, where settings leave it open: that of normalised features."""

_known: WeakKeyDictionary[Graph, NDArray[np.float32]] = WeakKeyDictionary()


def start_from_structure(embeddings: nn.Embedding, graph: Graph, scale: float | None) -> None:
    """Put factors of the graph in place of what was drawn: rows of length `scale` · √width, zeros for nodes without edges."""
    factors = shared_factors(graph, embeddings.embedding_dim)
    scale = STRUCTURE_SCALE if scale is None else scale
    with torch.no_grad():
        embeddings.weight.copy_(torch.from_numpy(factors) * (scale * embeddings.embedding_dim**0.5))


def shared_factors(graph: Graph, size: int) -> NDArray[np.float32]:
    """Return factors of a graph that are computed once for all models over it, of all seeds; those of one width are kept."""
    factors = _known.get(graph)
    if factors is None or factors.shape[1] != size:
        factors = _known[graph] = structure_factors(graph, size)
    return factors
