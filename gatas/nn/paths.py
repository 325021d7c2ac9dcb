"""A neighbour as seen along the path that leads to it (§3.2).

D relation embedding size, F' neighbour size, C steps, U distinct (neighbour, path) pairs, E distinct paths.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.ops.represent import represent
from gatas.ops.softmax import masked_softmax
from gatas.transitions.paths import num_paths

MOST_PATHS = 1 << 16
"""Up to so many path ids are listed; longer lists belong to batches whose slots are fewer."""


def sinusoids(num_positions: int, size: int) -> Tensor:
    """p: (num_positions, size), one wavelength for each pair of dimensions (§3.2); an odd last dimension is a sine."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    wavelength = 10_000 ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
    table = torch.stack([(position / wavelength).sin(), (position / wavelength).cos()], dim=-1)
    return table.flatten(1)[:, :size].to(torch.get_default_dtype())


def possible_paths(num_relations: int, num_steps: int) -> tuple[Tensor, Tensor | None]:
    """Ids of the paths there can be, and where each id is among them; None where a list of all ids would be long.

    The numbering has a place for every sequence of relations, but the self-loop is only ever a path of its own.
    """
    if num_paths(num_relations, num_steps) > MOST_PATHS:
        return torch.empty(0, dtype=torch.int64), None
    ids = torch.arange(num_paths(num_relations, num_steps))
    relation, _, mask = path_steps(ids, num_relations, num_steps)
    possible = (ids == 0) | ~((relation == 0) & mask).any(1)
    return ids[possible], torch.where(possible, possible.cumsum(0) - 1, 0)


def path_steps(paths: Tensor, num_relations: int, num_steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """(E, C) relations and positions of each path's steps, first step first, and which of them there are."""
    relations, left = [], paths
    for _ in range(num_steps):  # from the last step backwards; -1 is the empty path
        relations.append(torch.where(left >= 0, left % num_relations, -1))
        left = torch.where(left >= 0, torch.div(left, num_relations, rounding_mode="floor") - 1, -1)
    backwards = torch.stack(relations, dim=1)
    length = (backwards >= 0).sum(1, keepdim=True)
    position = torch.arange(num_steps, device=paths.device).expand_as(backwards)
    mask = position < length
    relation = backwards.gather(1, torch.where(mask, length - 1 - position, 0))
    return relation.clamp_min(0), torch.where(paths[:, None] == 0, 0, position + 1), mask


class PathSteps(nn.Module):
    """e + p: an embedding for each (position, relation). The first step has position 1, the self-loop position 0."""

    positions: Tensor

    def __init__(self, num_relations: int, num_steps: int, relation_embedding_size: int) -> None:
        super().__init__()
        self.relation_embeddings = nn.Embedding(num_relations, relation_embedding_size)
        nn.init.normal_(self.relation_embeddings.weight, std=1 / math.sqrt(relation_embedding_size))
        self.register_buffer("positions", sinusoids(num_steps + 1, relation_embedding_size), persistent=False)

    def forward(self, position: Tensor, relation: Tensor) -> Tensor:
        table = self.positions[:, None] + self.relation_embeddings.weight  # (C + 1, R̃, D)
        chosen = position * table.shape[1] + relation
        return table.flatten(0, 1).index_select(0, chosen.flatten()).view(*chosen.shape, table.shape[2])


class PathAttention(nn.Module):
    """Represent a neighbour by the relations that lead to it (eq. 1).

    With a linear f the target's term is the same for every step of a path and cancels in the softmax, so β depends on the
    path alone and n on the (neighbour, path) pair: U distinct pairs are represented once, however many targets drew them.
    """

    def __init__(self, input_size: int, relation_embedding_size: int, neighbour_size: int) -> None:
        super().__init__()
        self.score = nn.Linear(relation_embedding_size, 1, bias=False)  # f, without the term that cancels
        self.value_of_input = nn.Linear(input_size, neighbour_size, bias=False)  # z, split over its two arguments
        self.value_of_step = nn.Linear(relation_embedding_size, neighbour_size)  # few rows, so the bias is here

    def forward(
        self, inputs: Tensor, node: Tensor, path: Tensor, steps: Tensor, step_mask: Tensor, keep: Tensor | None = None
    ) -> Tensor:
        """n for U pairs: row `node` of (V, input_size) inputs over row `path` of (E, C, D) steps.

        `keep` is a factor for each score, (E, C), where these are dropped.
        """
        path_weights = self.weights(steps, step_mask, keep)  # (E, C)     β
        of_input = self.value_of_input(inputs)  # (V, F')           each distinct node is projected once
        of_step = self.value_of_step(steps)  # (E, C, F')           and each distinct path
        return represent(of_input, of_step, path_weights, node, path)  # (U, F')     n

    def weights(self, steps: Tensor, step_mask: Tensor, keep: Tensor | None = None) -> Tensor:
        """Every path has a step, so that a plain softmax will do."""
        logits: Tensor = self.score(steps).squeeze(-1)
        logits = logits if keep is None else logits * keep
        return logits.masked_fill(~step_mask, -torch.inf).softmax(-1)


class AdaptivePathAttention(PathAttention):
    """Eq. 1 with a hidden layer in f, so that β depends on the target, as the paper says it does; one n per (target, slot)."""

    def __init__(self, input_size: int, relation_embedding_size: int, neighbour_size: int) -> None:
        super().__init__(input_size, relation_embedding_size, neighbour_size)
        self.hidden_of_target = nn.Linear(input_size, neighbour_size)
        self.hidden_of_step = nn.Linear(relation_embedding_size, neighbour_size, bias=False)
        self.score = nn.Linear(neighbour_size, 1, bias=False)

    def forward_for(
        self, targets: Tensor, inputs: Tensor, node: Tensor, path: Tensor, steps: Tensor, step_mask: Tensor
    ) -> Tensor:
        """n for U slots: row `node` of the inputs over row `path` of the steps, as row `targets` of the inputs sees it."""
        of_target = self.hidden_of_target(inputs)[targets]  # (U, F')
        hidden = F.elu(of_target[:, None] + self.hidden_of_step(steps)[path])  # (U, C, F')
        path_weights = masked_softmax(self.score(hidden).squeeze(-1), step_mask[path])  # (U, C)   β
        values = F.elu(self.value_of_input(inputs)[node][:, None] + self.value_of_step(steps)[path])  # (U, C, F')
        return torch.einsum("uc,ucf->uf", path_weights, values)  # (U, F')     n
