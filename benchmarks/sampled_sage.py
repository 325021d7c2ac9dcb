"""GraphSAGE on uniform samples of neighbours, hop by hop (Hamilton et al., 2017), to stand beside ours.

PyG draws these samples with pyg-lib or torch-sparse, which not everyone can install; the layers are PyG's.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import SAGEConv

from gatas import Dataset, Graph
from gatas.ops.compiled import compiled
from gatas.ops.distinct import distinct
from gatas.ops.random import DRAW, stream
from gatas.ops.random.cpu import U32, threefry
from gatas.ops.threads import run_rows
from gatas.sampling.sampler import Mode
from gatas.tasks.learnable import Learnable


class Hop(NamedTuple):
    """The nodes that a layer reads, which of them it represents, and edges from the former to the latter."""

    nodes: Tensor  # (V,)
    kept: Tensor  # (n,)
    edges: Tensor  # (2, E) from a row of `nodes` to a row of `kept`


class SampledSAGE(Learnable):
    """Layers of SAGEConv over up to `fan_outs` neighbours of each node: first of the targets, then of all that these see."""

    captures = False
    features: Tensor

    def __init__(self, dataset: Dataset, *, hidden_size: int, fan_outs: tuple[int, ...], dropout: float, seed: int = 0) -> None:
        super().__init__()
        self.graph, self.fan_outs, self.dropout, self.hidden_size = dataset.graph, fan_outs, dropout, hidden_size
        self.num_classes, self.draws = len(dataset.names), 0
        self.register_buffer("features", torch.tensor(np.asarray(dataset.features)), persistent=False)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self.seed = seed
        sizes = (self.features.shape[1], *[self.hidden_size] * (len(self.fan_outs) - 1), self.num_classes)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = nn.ModuleList([SAGEConv(*both) for both in pairwise(sizes)])
        self.to(self.features.device)

    def forward(self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None) -> Tensor:
        """(B, num_classes) logits; neighbours are drawn anew in every call."""
        self.draws += 1
        hops = sample_hops(self.graph, target.cpu(), self.fan_outs, seed=self.seed, draw=self.draws)
        x = self.features[hops[-1].nodes.to(target.device)]
        for number, (layer, hop) in enumerate(zip(self.layers, reversed(hops), strict=True)):
            x = F.relu(x) if number else x
            x = F.dropout(x, self.dropout, self.training)
            x = layer((x, x[hop.kept.to(x.device)]), hop.edges.to(x.device))
        return x

    def evaluation_batch(self, device: torch.device) -> int:
        return 512


def sample_hops(graph: Graph, targets: Tensor, fan_outs: tuple[int, ...], *, seed: int, draw: int) -> list[Hop]:
    """From the targets outwards; each node is in a hop once, and all of one hop are looked at from in the next."""
    hops, nodes = list[Hop](), targets
    for number, fan_out in enumerate(fan_outs):
        drawn, counts = sample_neighbours(graph, nodes, fan_out, key=stream(seed, DRAW, draw, number))
        used = torch.arange(fan_out) < counts[:, None]
        reached, place = distinct(torch.cat([nodes, drawn[used]]))
        looks = torch.arange(len(nodes)).repeat_interleave(counts)
        hops.append(Hop(reached, place[: len(nodes)], torch.stack([place[len(nodes) :], looks])))
        nodes = reached
    return hops


def sample_neighbours(graph: Graph, nodes: Tensor, fan_out: int, *, key: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """(n, fan_out) distinct neighbours of each node, all alike likely, and how many they are: fewer where it has fewer."""
    drawn, counts = torch.empty(len(nodes), fan_out, dtype=torch.int64), torch.empty(len(nodes), dtype=torch.int64)
    rows, out, sizes = nodes.numpy(), drawn.numpy(), counts.numpy()

    def work(start: int, stop: int) -> None:
        own = slice(start, stop)
        draw_uniformly(graph.indptr, graph.neighbour, rows[own], U32(key[0]), U32(key[1]), out[own], sizes[own])

    run_rows(work, len(nodes), fan_out)
    return drawn, counts


@compiled()
def draw_uniformly(indptr, neighbour, nodes, key0, key1, drawn, counts):
    """Floyd's algorithm: each draw is among one neighbour more, and one that was drawn before gives way to the newcomer."""
    for row in range(nodes.size):
        start = indptr[nodes[row]]
        degree = indptr[nodes[row] + 1] - start
        counts[row] = min(degree, drawn.shape[1])
        for k in range(counts[row]):
            last = degree - counts[row] + k
            word, _ = threefry(key0, key1, U32(nodes[row]), U32(k))
            chosen = np.int64(np.uint64(word) * np.uint64(last + 1) >> np.uint64(32))
            for before in range(k):
                if drawn[row, before] == chosen:
                    chosen = last
            drawn[row, k] = chosen
        for k in range(counts[row]):
            drawn[row, k] = neighbour[start + drawn[row, k]]
