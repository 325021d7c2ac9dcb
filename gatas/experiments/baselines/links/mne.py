"""MNE: a common embedding, and for each type a small one that is transformed and added (Zhang et al., IJCAI 2018).

200 and 10 dimensions as in the authors' code (HKUST-KnowComp/MNE). There the common embedding is learned first, from the edges
of all types, and held while the others are learned; here all are learned at once, as the paper describes it.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from gatas.experiments.baselines.links.skipgram import SkipGram, of_type, transformed
from gatas.experiments.baselines.links.walks import Layers

SMALL_SIZE = 10
WEIGHT = 0.5  # w of each type


class MNE(SkipGram):
    """b + w X ᵀ u of each type."""

    def __init__(self, layers: Layers, size: int, expected: Tensor, generator: Generator) -> None:
        super().__init__(layers, size, expected, generator)
        bound = 0.5 / size
        self.common = nn.Parameter(torch.empty(layers.num_nodes, size).uniform_(-bound, bound))
        self.small = nn.Parameter(torch.empty(layers.num_nodes, layers.num_types, SMALL_SIZE).uniform_(-bound, bound))
        self.transform = nn.Parameter(torch.empty(layers.num_types, SMALL_SIZE, size).normal_(std=size**-0.5))

    def embed(self, node: Tensor, edge_type: Tensor) -> Tensor:
        own = of_type(self.small, node, edge_type)
        return F.embedding(node, self.common) + WEIGHT * transformed(own, edge_type, self.transform)
