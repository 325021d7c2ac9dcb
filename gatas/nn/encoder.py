"""`Encoder`: from targets, their sampled neighbourhoods and features to representations (§3.2, §3.5)."""

from typing import Literal

import torch
from torch import Tensor, nn

from gatas.errors import GatasError
from gatas.nn.dropout import Dropout
from gatas.nn.inputs import Inputs
from gatas.nn.neighbours import NeighbourAttention
from gatas.nn.paths import AdaptivePathAttention, PathAttention, PathSteps
from gatas.sampling import Neighbourhood
from gatas.sampling.noise import Noise
from gatas.transitions.paths import num_paths

PathAttentionKind = Literal["linear", "mlp", "none"]


class Encoder(nn.Module):
    """Represents a node by attending to a sample of its multi-step neighbours.

    `feature_size` is the width of the features that are given (0: none), `node_embedding_size` that of the learned
    embeddings (0: none). `path_attention`: "linear" is the paper's, "mlp" lets β depend on the target, "none" takes
    neighbours as they are. Every random choice is a function of `seed` and of how many training passes came before.

    >>> encoder = Encoder(feature_size=64, num_relations=3)
    >>> h = encoder(targets, sampler(targets), features)      # (B, K·F'')
    """

    seed: Tensor
    passes: Tensor

    def __init__(
        self,
        feature_size: int,
        num_relations: int,
        *,
        num_steps: int = 3,
        num_nodes: int = 0,
        hidden_size: int = 50,
        node_embedding_size: int = 0,
        relation_embedding_size: int = 10,
        neighbour_size: int = 50,
        head_size: int = 50,
        num_heads: int = 8,
        input_noise: float = 0.0,
        dropout: float = 0.0,
        path_attention: PathAttentionKind = "linear",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if node_embedding_size and not num_nodes:
            raise GatasError("learned embeddings need num_nodes, one embedding for each.")
        self.num_relations, self.num_steps, self.path_attention = num_relations, num_steps, path_attention
        self.output_size = num_heads * head_size
        self.inputs = Inputs(
            feature_size, hidden_size, num_nodes, node_embedding_size, input_noise=input_noise, dropout=dropout
        )
        if path_attention != "none":
            kind = {"linear": PathAttention, "mlp": AdaptivePathAttention}[path_attention]
            self.steps = PathSteps(num_relations, num_steps, relation_embedding_size)
            self.paths = kind(self.inputs.size, relation_embedding_size, neighbour_size)
        else:
            neighbour_size = self.inputs.size
        self.pair_dropout = Dropout(dropout, place=5)
        self.neighbours = NeighbourAttention(self.inputs.size, neighbour_size, head_size, num_heads, dropout=dropout)
        self.register_buffer("seed", torch.tensor(seed))
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))

    def forward(self, targets: Tensor, neighbourhood: Neighbourhood, features: Tensor | None = None) -> Tensor:
        """(B, K·F'') representations of (B,) targets."""
        noise = self._noise()
        fixed = shapes_are_fixed(neighbourhood.node)
        node, path, index = (every_slot if fixed or self.path_attention == "mlp" else distinct_pairs)(neighbourhood)
        nodes, place = self._nodes(torch.cat([targets, node]), features, fixed=fixed)
        inputs = self.inputs(nodes, features, noise)  # (V, R + F)   h, once per node
        target_of, node_of = place[: len(targets)], place[len(targets) :]
        neighbours = self._represented(inputs, target_of, node_of, path, index.shape[1], fixed=fixed)
        neighbours = self.pair_dropout(neighbours, noise, node, path)
        slots = (index, neighbourhood.log_probability, neighbourhood.mask)
        representations: Tensor = self.neighbours(inputs[target_of], neighbours, *slots, targets, node, path, noise)
        return representations

    def _nodes(self, wanted: Tensor, features: Tensor | None, *, fixed: bool) -> tuple[Tensor, Tensor]:
        """The nodes to make inputs for, and where among them each wanted one is."""
        if not fixed:
            return distinct(wanted)
        embeddings = self.inputs.embeddings
        num_nodes = embeddings.num_embeddings if embeddings is not None else 0 if features is None else len(features)
        if num_nodes <= len(wanted):
            return torch.arange(num_nodes, device=wanted.device), wanted
        return wanted, torch.arange(len(wanted), device=wanted.device)

    def _represented(
        self, inputs: Tensor, target_of: Tensor, node_of: Tensor, path: Tensor, sample_size: int, *, fixed: bool
    ) -> Tensor:
        """n: (U, F')."""
        if self.path_attention == "none":
            return inputs[node_of]
        paths, path_of = self._paths(path) if fixed else distinct(path)
        relation, position, mask = path_steps(paths, self.num_relations, self.num_steps)  # (E, C)
        steps = self.steps()[position, relation]  # (E, C, D)
        if isinstance(self.paths, AdaptivePathAttention):
            owners = target_of.repeat_interleave(sample_size)
            return self.paths.forward_for(owners, inputs, node_of, path_of, steps, mask)
        neighbours: Tensor = self.paths(inputs, node_of, path_of, steps, mask)
        return neighbours

    def _paths(self, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """The same for paths: all there are, unless they are more than wanted."""
        count = num_paths(self.num_relations, self.num_steps)
        if count <= len(wanted):
            return torch.arange(count, device=wanted.device), wanted
        return wanted, torch.arange(len(wanted), device=wanted.device)

    def _noise(self) -> Noise:
        """Every training pass has noise of its own."""
        if not self.training:
            return Noise(self.seed, self.passes)
        step = self.passes.clone()
        self.passes += 1
        return Noise(self.seed, step)


def shapes_are_fixed(values: Tensor) -> bool:
    """Whether shapes must not depend on the data: on a GPU to count is to wait, and programs for any data cannot count."""
    return values.is_cuda or torch.compiler.is_compiling() or torch._C._functorch.is_batchedtensor(values)


def distinct_pairs(neighbourhood: Neighbourhood) -> tuple[Tensor, Tensor, Tensor]:
    """The U distinct (node, path) pairs of a batch, and which of them each slot holds."""
    paths, path_of = distinct(neighbourhood.path)
    keys, index = distinct(neighbourhood.node * len(paths) + path_of)
    return keys // len(paths), paths[keys % len(paths)], index


def every_slot(neighbourhood: Neighbourhood) -> tuple[Tensor, Tensor, Tensor]:
    """Every slot as a pair of its own: where n depends on the target, or where shapes are fixed."""
    node, path = neighbourhood.node.flatten(), neighbourhood.path.flatten()
    return node, path, torch.arange(node.numel(), device=node.device).view_as(neighbourhood.node)


def distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct values, and where among them each one is."""
    unique, inverse = torch.unique(values, return_inverse=True)
    return unique, inverse


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
