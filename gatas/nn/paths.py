"""A neighbour as seen along the path that leads to it (§3.2).

D relation embedding size, F' neighbour size, C steps, U distinct (neighbour, path) pairs, E distinct paths.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PathAttentionKind = Literal["linear", "mlp"]


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension where `mask` is True; an empty row gives zeros, not NaN."""
    logits = logits.masked_fill(~mask, -torch.inf)
    top = logits.amax(-1, keepdim=True)
    weights = (logits - torch.where(top.isinf(), 0.0, top)).exp()
    return weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(logits.dtype).tiny)


def sinusoids(num_positions: int, size: int) -> Tensor:
    """p: (num_positions, size), one wavelength for each pair of dimensions (§3.2); an odd last dimension is a sine."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    wavelength = 10_000 ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
    table = torch.stack([(position / wavelength).sin(), (position / wavelength).cos()], dim=-1)
    return table.flatten(1)[:, :size].to(torch.get_default_dtype())


class PathSteps(nn.Module):
    """e + p: an embedding for each (position, relation). The first step has position 1, the self-loop position 0."""

    positions: Tensor

    def __init__(self, num_relations: int, num_steps: int, relation_embedding_size: int) -> None:
        super().__init__()
        self.relation_embeddings = nn.Embedding(num_relations, relation_embedding_size)
        nn.init.normal_(self.relation_embeddings.weight, std=1 / math.sqrt(relation_embedding_size))
        self.register_buffer("positions", sinusoids(num_steps + 1, relation_embedding_size), persistent=False)

    def forward(self) -> Tensor:
        return self.positions[:, None] + self.relation_embeddings.weight  # (C + 1, R̃, D)


class PathAttention(nn.Module):
    """Represent a neighbour by the relations that lead to it (eq. 1).

    With a linear f the target's term is the same for every step of a path and cancels in the softmax, so β depends on the
    path alone and n on the (neighbour, path) pair: U distinct pairs are represented once, however many targets drew them.
    """

    def __init__(self, input_size: int, relation_embedding_size: int, neighbour_size: int) -> None:
        super().__init__()
        self.score = nn.Linear(relation_embedding_size, 1, bias=False)  # f, without the term that cancels
        self.value_of_input = nn.Linear(input_size, neighbour_size)  # z, split over its two arguments
        self.value_of_step = nn.Linear(relation_embedding_size, neighbour_size, bias=False)

    def forward(
        self, inputs: Tensor, input_of: Tensor, steps: Tensor, step_of: Tensor, step_mask: Tensor, path_of: Tensor
    ) -> Tensor:
        """n for U pairs: pair p is node `input_of[p]` over path `path_of[p]`, whose steps are rows `step_of` of `steps`."""
        logits = self.score(steps).squeeze(-1)[step_of]  # (E, C)
        path_weights = masked_softmax(logits, step_mask)  # (E, C)      β
        of_input = self.value_of_input(inputs)[input_of]  # (U, F')     each distinct node is projected once
        of_step = self.value_of_step(steps)[step_of]  # (E, C, F')
        neighbours = torch.zeros_like(of_input)
        for position in range(step_of.shape[1]):  # one (U, F') at a time instead of (U, C, F')
            value = F.elu(of_input + of_step[:, position][path_of])  # (U, F')     z
            neighbours = neighbours + path_weights[:, position][path_of, None] * value
        return neighbours  # (U, F')     n
