"""Attention over a target's sample of neighbours (eqs. 3, 4), K heads at once.

B targets, S slots, U distinct pairs. F' neighbour size, F'' head size.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.nn.dropout import Dropout
from gatas.ops.attend import attend
from gatas.ops.attend_neighbours import WIDEST, Precision, Storage, attend_neighbours
from gatas.ops.random import NoiseSource
from gatas.sampling import Neighbourhood


class NeighbourAttention(nn.Module):
    """g scores pairs, d says what they contribute; both for every head.

    Keys and values are made once for each pair that is given; where every slot has one of its own, a GPU makes them in tiles
    and never writes them. Its tensor cores work at `precision` or, under autocast, in bfloat16; keys and values that it does
    write are kept as `storage` says, and one that float16 cannot hold makes what looks at it NaN.
    """

    precision: Precision = "tf32"
    storage: Storage = "auto"

    def __init__(
        self,
        input_size: int,
        neighbour_size: int,
        head_size: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        prior: bool = True,
    ) -> None:
        super().__init__()
        self.prior = prior
        self.num_heads, self.hidden_size, self.head_size = num_heads, neighbour_size, head_size
        self.hidden_of_target = nn.Linear(input_size, num_heads * neighbour_size)  # g's hidden layer, split over its
        self.hidden_of_neighbour = nn.Linear(neighbour_size, num_heads * neighbour_size, bias=False)  # two arguments
        self.score = nn.Parameter(torch.empty(num_heads, neighbour_size))  # g's output layer; its bias would cancel
        self.value = nn.Linear(neighbour_size, num_heads * head_size)  # d
        self.weight_dropout = Dropout(dropout, place=6)
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
        index: Tensor | None,  # (B, S)     which pair each slot holds; None: U = B·S, its own
        neighbourhood: Neighbourhood,
        targets: Tensor,  # (B,)
        noise: NoiseSource,
    ) -> Tensor:
        target_terms = self.hidden_of_target(inputs).view(len(inputs), self.num_heads, self.hidden_size)  # (B, K, F')
        keep = self._kept_weights(targets, neighbourhood, noise) if self.weight_dropout.active else None
        slots = (self.prior_of(neighbourhood), neighbourhood.mask, keep)
        if neighbours.is_cuda and neighbours.dtype != torch.float64 and max(self.hidden_size, self.head_size) <= WIDEST:
            mixed = self._on_gpu(target_terms, neighbours, index, *slots)  # (B, K, F'')
        else:
            if index is None:
                index = torch.arange(len(neighbours), device=neighbours.device).view(neighbourhood.node.shape)
            keys = self.hidden_of_neighbour(neighbours).view(len(neighbours), self.num_heads, self.hidden_size)  # (U, K, F')
            values = F.elu(self.value(neighbours)).view(len(neighbours), self.num_heads, self.head_size)  # (U, K, F'')   d
            mixed = attend(target_terms, keys, self.score, values, index, *slots)  # (B, K, F'')
        return F.elu(mixed).flatten(1)  # (B, K·F'')

    def prior_of(self, neighbourhood: Neighbourhood) -> Tensor:
        """(B, S) what is added to g: ln P, or nothing; -inf in unused slots."""
        log_probability, mask = neighbourhood.log_probability, neighbourhood.mask
        return log_probability if self.prior else torch.where(mask, 0.0, -torch.inf).to(log_probability.dtype)

    def _on_gpu(
        self,
        target_terms: Tensor,
        neighbours: Tensor,
        index: Tensor | None,
        log_probability: Tensor,
        mask: Tensor,
        keep: Tensor | None,
    ) -> Tensor:
        """(B, K, F'') with keys and values made by the operator."""
        return attend_neighbours(
            target_terms,
            neighbours,
            self.hidden_of_neighbour.weight,
            self.score,
            self.value.weight,
            self.value.bias,
            index,
            log_probability,
            mask,
            keep,
            "bfloat16" if torch.is_autocast_enabled("cuda") else self.precision,
            self.storage,
        )

    def _kept_weights(self, targets: Tensor, neighbourhood: Neighbourhood, noise: NoiseSource) -> Tensor:
        """(B, S, K) for each (target, neighbour, head)."""
        node, path = neighbourhood.node, neighbourhood.path
        pair = node ^ (path * 0x9E3779B1)  # one word of two; a clash costs two slots their independence
        return self.weight_dropout.keep(self.num_heads, noise, targets[:, None].expand_as(node), pair)
