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
    """Logits for the types of a link: a dense layer per node, both side by side, two hidden layers, one output per type."""

    def __init__(self, input_size: int, num_types: int, hidden_size: int = 256) -> None:
        super().__init__()
        self.dense = nn.Linear(input_size, hidden_size)
        self.pair = NodeHead(2 * hidden_size, num_types, (hidden_size, hidden_size))

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        both = torch.cat([F.elu(self.dense(sources)), F.elu(self.dense(targets))], dim=-1)  # (B, 2·hidden_size)
        logits: Tensor = self.pair(both)  # (B, num_types)
        return logits
