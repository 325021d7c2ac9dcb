"""Whole-graph encoders of PyG with decoders of typed links, trained by our loop.

Settings are those of HGB (THUDM/HGB, LP/GATNE/src/homGNN.py) for GCN and GAT: two layers of 200, leaky ReLU, dropout of 0.5
between them, GAT with two heads and then one, Adam at 0.01. There nodes are one-hot, which is an embedding of each node; here
an embedding goes into the first layer. HGB trains one model per type, warm-started from the last, by squared error; here one
model learns all types by our loop's cross-entropy, with its negatives and its early stopping, by macro ROC-AUC or, where links
are ranked, by MRR. `RGCNEncoder` is Schlichtkrull et al. (2018) in the same sizes: basis decomposition and DistMult.
`BlockRGCNEncoder` has their settings for FB15k-237: two layers of 500 dimensions in blocks of 5 × 5, relations in either
direction, ReLU, a share of 0.4 of the edges dropped in each step, Adam at 0.01, an L2 penalty of 0.01 on the decoder; they drop
self-loops at 0.2, which PyG's layer does not. As in HGB the links to be predicted stay in the graph.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, RGCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops

from gatas.datasets import Dataset
from gatas.experiments.baselines.links.decoders import Bilinear, DistMult
from gatas.experiments.baselines.links.edges import type_names, typed_edges
from gatas.experiments.baselines.links.triples import triples_of
from gatas.sampling.sampler import Mode
from gatas.tasks.learnable import Learnable

NUM_BASES = 2
TRAINING: Mapping[str, Any] = MappingProxyType(
    {
        "batch_size": 20_000,  # each step encodes the whole graph; HGB has 10,000
        "epochs": 500,
        "patience": 10,
        "optimiser": "adam",
        "learning_rate": 0.01,
        "max_norm": None,
        "monitor": "metric",
    }
)
BLOCK_SIZE, BLOCK_RGCN_SIZE, EDGE_DROPOUT = 5, 500, 0.4


class LinkPeer(Learnable):
    """Learned embeddings, layers over all training edges, and a decoder."""

    captures = False
    randomness = "different"  # dropout

    def __init__(self, dataset: Dataset, decoder: Literal["bilinear", "distmult"], *, size: int = 200, seed: int = 0) -> None:
        super().__init__()
        self.num_nodes, self.num_asked, self.size, self.decoder_name = (
            dataset.graph.num_nodes,
            len(dataset.names),
            size,
            decoder,
        )
        for name, tensor in self._graph(dataset).items():
            self.register_buffer(name, tensor, persistent=False)
        self.reset(seed)

    def _graph(self, dataset: Dataset) -> dict[str, Tensor]:
        """What layers take besides representations, by name."""
        raise NotImplementedError

    def _make_layers(self) -> list[nn.Module]:
        raise NotImplementedError

    def _layer(self, layer: nn.Module, representations: Tensor) -> Tensor:
        raise NotImplementedError

    def reset(self, seed: int) -> None:
        device = next(self.buffers()).device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Parameter(nn.init.xavier_normal_(torch.empty(self.num_nodes, self.size), gain=1.4))
            self.layers = nn.ModuleList(self._make_layers())
            self.decoder = {"bilinear": Bilinear, "distmult": DistMult}[self.decoder_name](self.size, self.num_asked)
        self.to(device)

    def encode(self) -> Tensor:
        """(N, size) of all nodes."""
        representations: Tensor = self.embedding
        for number, layer in enumerate(self.layers):
            if number:
                representations = F.dropout(representations, 0.5, self.training)
            representations = F.leaky_relu(self._layer(layer, representations))
        return representations

    def represent(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """(B, size); nothing is sampled, so that `draw` and `mode` change nothing."""
        return self.encode()[target]

    def score(self, source: Tensor, target: Tensor, edge_type: Tensor) -> Tensor:
        """(B,) logits of the types asked for, from representations."""
        logits: Tensor = self.decoder(source, target, edge_type)
        return logits

    def forward(self, source: Tensor, edge_type: Tensor, target: Tensor, label: Tensor) -> Tensor:
        """(B,) logits in training."""
        representations = self.encode()
        return self.score(representations[source], representations[target], edge_type)


class GCNEncoder(LinkPeer):
    """Kipf & Welling (2017) over the edges of all types."""

    edges: Tensor
    weight: Tensor

    def _graph(self, dataset: Dataset) -> dict[str, Tensor]:
        untyped = torch.from_numpy(typed_edges(dataset).untyped())
        edges, weight = gcn_norm(untyped, num_nodes=self.num_nodes)
        return {"edges": edges, "weight": weight}

    def _make_layers(self) -> list[nn.Module]:
        return [GCNConv(self.size, self.size, normalize=False) for _ in range(2)]  # normalised once, above

    def _layer(self, layer: nn.Module, representations: Tensor) -> Tensor:
        found: Tensor = layer(representations, self.edges, self.weight)
        return found


class GATEncoder(LinkPeer):
    """Veličković et al. (2018) over the edges of all types."""

    edges: Tensor

    def _graph(self, dataset: Dataset) -> dict[str, Tensor]:
        untyped = torch.from_numpy(typed_edges(dataset).untyped())
        return {"edges": add_self_loops(untyped, num_nodes=self.num_nodes)[0]}

    def _make_layers(self) -> list[nn.Module]:
        heads = (2, 1)
        sizes = (self.size, self.size * heads[0])
        return [GATConv(size, self.size, own, add_self_loops=False) for size, own in zip(sizes, heads, strict=True)]

    def _layer(self, layer: nn.Module, representations: Tensor) -> Tensor:
        found: Tensor = layer(representations, self.edges)
        return found


class RGCNEncoder(LinkPeer):
    """Schlichtkrull et al. (2018); each type has a mixture of few matrices."""

    edges: Tensor
    types: Tensor

    def _graph(self, dataset: Dataset) -> dict[str, Tensor]:
        typed = typed_edges(dataset)
        self.num_types = typed.num_types
        edges = torch.stack([torch.from_numpy(typed.source), torch.from_numpy(typed.target)])
        return {"edges": edges, "types": torch.from_numpy(typed.edge_type)}

    def _make_layers(self) -> list[nn.Module]:
        return [RGCNConv(self.size, self.size, self.num_types, num_bases=NUM_BASES) for _ in range(2)]

    def _layer(self, layer: nn.Module, representations: Tensor) -> Tensor:
        found: Tensor = layer(representations, self.edges, self.types)
        return found


class BlockRGCNEncoder(LinkPeer):
    """Schlichtkrull et al. (2018); each relation, and each in the other direction, has a block-diagonal matrix."""

    edges: Tensor
    types: Tensor

    def _graph(self, dataset: Dataset) -> dict[str, Tensor]:
        source, kind, target = torch.from_numpy(triples_of(dataset)).T
        self.num_types = len(type_names(dataset))
        edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
        return {"edges": edges, "types": torch.cat([kind, kind + self.num_types])}

    def _make_layers(self) -> list[nn.Module]:
        blocks = self.size // BLOCK_SIZE
        return [RGCNConv(self.size, self.size, 2 * self.num_types, num_blocks=blocks) for _ in range(2)]

    def l2_share(self, name: str) -> float:
        return float(name.startswith("decoder."))

    def encode(self) -> Tensor:
        """(N, size) of all nodes; in training each layer sees a part of the edges."""
        representations: Tensor = self.embedding
        for number, layer in enumerate(self.layers):
            edges, types = self.edges, self.types
            if self.training:
                kept = torch.rand(len(types), device=types.device) >= EDGE_DROPOUT
                edges, types = edges[:, kept], types[kept]
            found: Tensor = layer(representations, edges, types)
            representations = F.relu(found) if number + 1 < len(self.layers) else found
        return representations
