"""GATNE-T: a base embedding, and for each type one gathered from neighbours, mixed by self-attention over types.

Cen et al. (KDD 2019); sizes and starting values as in the authors' code (THUDM/GATNE, src/main.py): edge embeddings of 10
dimensions, attention of 20, 10 neighbours a type. The loss is theirs too, TensorFlow's `nce_loss`: contexts have a bias, and
the logarithm of how often a node is drawn as a negative is subtracted. (Their src/main_pytorch.py leaves both out; DGL's run
of it has a ROC-AUC of 76.29 on Twitter, the paper 92.30.) The negatives of a step may repeat; there they are distinct.
Neighbours are drawn once, with replacement; there, where a node has fewer than 10, each is taken at least once.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from gatas.experiments.baselines.links.skipgram import SkipGram, of_type, transformed
from gatas.experiments.baselines.links.walks import Layers

EDGE_SIZE, ATTENTION_SIZE, NUM_NEIGHBOURS = 10, 20, 10


class GATNE(SkipGram):
    """v = b + M ᵀ U a, of length 1."""

    noise = "log-uniform"
    neighbours: Tensor
    log_expected: Tensor

    def __init__(self, layers: Layers, size: int, expected: Tensor, generator: Generator) -> None:
        super().__init__(layers, size, expected, generator)
        num_nodes, num_types, deviation = layers.num_nodes, layers.num_types, size**-0.5
        self.base = nn.Parameter(torch.empty(num_nodes, size).uniform_(-1, 1))
        self.edge_embeddings = nn.Parameter(torch.empty(num_nodes, num_types, EDGE_SIZE).uniform_(-1, 1))
        self.transform = nn.Parameter(torch.empty(num_types, EDGE_SIZE, size).normal_(std=deviation))  # M
        self.hidden = nn.Parameter(torch.empty(num_types, EDGE_SIZE, ATTENTION_SIZE).normal_(std=deviation))  # W
        self.attention = nn.Parameter(torch.empty(num_types, ATTENTION_SIZE).normal_(std=deviation))  # w
        self.bias = nn.Parameter(torch.zeros(num_nodes))
        self.register_buffer("log_expected", expected.log(), persistent=False)
        self.register_buffer("neighbours", drawn_neighbours(layers, NUM_NEIGHBOURS, generator), persistent=False)

    def embed(self, node: Tensor, edge_type: Tensor) -> Tensor:
        types = torch.arange(self.layers.num_types, device=node.device)[:, None]
        gathered = of_type(self.edge_embeddings, self.neighbours[node], types).mean(2)  # (B, T, EDGE_SIZE)  U
        by_type = F.embedding(edge_type, self.hidden.flatten(1)).view(-1, EDGE_SIZE, ATTENTION_SIZE)
        hidden = torch.tanh(gathered @ by_type)  # (B, T, ATTENTION_SIZE)
        weights = torch.softmax(torch.einsum("bta,ba->bt", hidden, F.embedding(edge_type, self.attention)), dim=1)  # a
        mixed = torch.einsum("bt,bts->bs", weights, gathered)
        return F.normalize(F.embedding(node, self.base) + transformed(mixed, edge_type, self.transform), dim=1)

    def offset(self, node: Tensor) -> Tensor:
        return F.embedding(node, (self.bias - self.log_expected)[:, None]).squeeze(-1)


def drawn_neighbours(layers: Layers, count: int, generator: Generator) -> Tensor:
    """(N, T, count) of each node and type; itself where it has none."""
    found = torch.arange(layers.num_nodes, device=layers.indptr.device).repeat(layers.num_types)[:, None].repeat(1, count)
    row = layers.degree().nonzero().squeeze(1)
    found[row] = layers.drawn(row[:, None].expand(-1, count), generator)
    return found.view(layers.num_types, layers.num_nodes, count).transpose(0, 1).contiguous()
