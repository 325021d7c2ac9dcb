"""What stands on a representation: classes of a node, or types of a link between two (§4.2)."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class NodeHead(nn.Module):
    """Logits for classes; hidden layers in between where there are any (the paper: none, or two of 256)."""

    def __init__(self, input_size: int, num_classes: int, hidden_sizes: tuple[int, ...] = ()) -> None:
        super().__init__()
        sizes = (input_size, *hidden_sizes)
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
        self.output = nn.Linear(sizes[-1], num_classes)

    def forward(self, representations: Tensor) -> Tensor:
        for layer in self.hidden:
            representations = F.elu(layer(representations))
        logits: Tensor = self.output(representations)  # (B, num_classes)
        return logits


class PairHead(nn.Module):
    """Logits for the types of a link: a dense layer per node, both side by side, two hidden layers, one output per type.

    With `products` the products of both, number by number, stand beside them: to see whether one node is among what the other
    has seen is then a sum, and need not be learned from examples.
    """

    def __init__(self, input_size: int, num_types: int, hidden_size: int = 256, *, products: bool = False) -> None:
        super().__init__()
        self.products = products
        self.dense = nn.Linear(input_size, hidden_size)
        self.pair = NodeHead((3 if products else 2) * hidden_size, num_types, (hidden_size, hidden_size))

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        source, target = F.elu(self.dense(sources)), F.elu(self.dense(targets))  # (B, hidden_size)
        parts = [source, target, source * target] if self.products else [source, target]
        logits: Tensor = self.pair(torch.cat(parts, dim=-1))  # (B, num_types)
        return logits
