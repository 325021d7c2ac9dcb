"""Attention over a target's sample of neighbours (eqs. 3, 4), K heads at once.

B targets, S slots, U distinct pairs. F' neighbour size, F'' head size.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.nn.dropout import Dropout
from gatas.nn.ops import attend


class NeighbourAttention(nn.Module):
    """g scores pairs, d says what they contribute; both for every head. Keys and values are made once per distinct pair."""

    def __init__(self, input_size: int, neighbour_size: int, head_size: int, num_heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.hidden_size, self.head_size = num_heads, neighbour_size, head_size
        self.hidden_of_target = nn.Linear(input_size, num_heads * neighbour_size)  # g's hidden layer, split over its
        self.hidden_of_neighbour = nn.Linear(neighbour_size, num_heads * neighbour_size, bias=False)  # two arguments
        self.score = nn.Parameter(torch.empty(num_heads, neighbour_size))  # g's output layer; its bias would cancel
        self.value = nn.Linear(neighbour_size, num_heads * head_size)  # d
        self.value_dropout, self.weight_dropout = Dropout(dropout, place=6), Dropout(dropout, place=7)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """g starts small, so that attention starts at the prior P."""
        fan_in = self.hidden_of_target.in_features + self.hidden_of_neighbour.in_features
        small = math.sqrt(6 / (fan_in * (self.hidden_size + self.num_heads)))
        for layer in (self.hidden_of_target, self.hidden_of_neighbour):
            nn.init.uniform_(layer.weight, -small, small)
        nn.init.zeros_(self.hidden_of_target.bias)
        nn.init.xavier_uniform_(self.score)
        limit = math.sqrt(6 / (self.value.in_features + self.head_size))  # Glorot's, head by head
        nn.init.uniform_(self.value.weight, -limit, limit)
        nn.init.zeros_(self.value.bias)

    def forward(
        self,
        inputs: Tensor,  # (B, input_size)  h of the targets
        neighbours: Tensor,  # (U, F')      n
        index: Tensor,  # (B, S)
        log_probability: Tensor,  # (B, S)
        mask: Tensor,  # (B, S)
        targets: Tensor,  # (B,)            names of targets and pairs, which dropout is keyed by
        node: Tensor,  # (U,)
        path: Tensor,  # (U,)
    ) -> Tensor:
        heads = (-1, self.num_heads, self.hidden_size)
        target_terms = self.hidden_of_target(inputs).view(heads)  # (B, K, F')
        keys = self.hidden_of_neighbour(neighbours).view(heads)  # (U, K, F')
        values = self.value_dropout.of_elu(self.value(neighbours), node, path)  # (U, K·F'')   d
        keep = self._kept_weights(targets, node, path, index) if self.weight_dropout.active else None
        values = values.view(-1, self.num_heads, self.head_size)
        mixed = attend(target_terms, keys, self.score, values, index, log_probability, mask, keep)  # (B, K, F'')
        return F.elu(mixed).flatten(1)  # (B, K·F'')

    def _kept_weights(self, targets: Tensor, node: Tensor, path: Tensor, index: Tensor) -> Tensor:
        """(B, S, K) for each (target, neighbour, head)."""
        pair = node[index] ^ (path[index] * 0x9E3779B1)  # one word of two; a clash costs two slots their independence
        return self.weight_dropout.keep(self.num_heads, targets[:, None].expand_as(index), pair)
