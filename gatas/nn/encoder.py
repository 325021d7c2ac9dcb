"""`Encoder`: from targets, their sampled neighbourhoods and features to representations (§3.2, §3.5)."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from gatas.errors import GatasError
from gatas.nn.dropout import Dropout
from gatas.nn.inputs import Inputs, refuse_half
from gatas.nn.known_labels import SELF_LOOP, KnownLabels
from gatas.nn.neighbours import NeighbourAttention
from gatas.nn.output import Output
from gatas.nn.path_means import PathMeans
from gatas.nn.paths import AdaptivePathAttention, PathAttention, PathSteps, path_steps, possible_paths
from gatas.ops.distinct import distinct
from gatas.ops.random import NoiseSource
from gatas.ops.torch_private import is_mapped
from gatas.sampling import Neighbourhood
from gatas.transitions.paths import num_paths

PathAttentionKind = Literal["linear", "mlp", "none"]


class Encoder(nn.Module):
    """Represents a node by attending to a sample of its multi-step neighbours (§3.2, §3.5).

    Every random choice is a function of `seed` and of how many training passes came before. Features are float32 or float64;
    half precision is for GPUs. On a CPU features that are NaN, infinite or too large to compute with are refused; large
    ones are no obstacle where `layer_norm` is on. On a GPU, in compiled programs and under vmap they are not looked at.

    Args:
        feature_size: Width of the features that are given; 0: none.
        num_relations: Relations of the graph, the self-loop included (`graph.num_relations`).
        num_steps: C, the longest path; the one that the transitions were built with. Default: 3.
        num_nodes: How many nodes have learned embeddings; only needed for these. Default: 0.
        hidden_size: Width that features are projected to. Default: 50.
        node_embedding_size: Width of the learned embedding of each node; 0, the default: none.
        node_embedding_scale: Standard deviation that embeddings start with. The larger, the better one node can be told
            from another; the smaller, the less they disturb features. Default: None, Glorot's.
        hide_own_embedding: Whether a target does not see its own learned embedding, only those of others. In training nothing
            but its own label would teach it, so that it is learned by heart. Default: False.
        layer_norm: Whether each node's features are normalised to mean 0 and deviation 1. Default: True.
        relation_embedding_size: D, width of the embeddings of relations along a path. Default: 10.
        neighbour_size: F', width of a neighbour as seen along its path. Default: 50.
        head_size: F'', width of one head's output. Default: 50.
        num_heads: K, attention heads. Default: 8.
        input_noise: Probability with which a feature is dropped in training. Default: 0.
        dropout: Probability with which elements of hidden layers, and attention weights, are dropped in training. Default: 0.
        path_attention: How the steps of a path are weighed. "linear", the default, is the paper's; "mlp" lets the weights
            depend on the target; "none" takes neighbours as they are, whatever the path.
        prior: Whether ln P is added to the scores of neighbours, so that attention starts at P. Default: True.
        positions_from_neighbour: Whether steps count from the far end of a path, as in the authors' code. Default: False.
        path_score_dropout: Whether `dropout` applies to the scores of steps too, as in the authors' code. Default: False.
        skip_connection: Whether a target's own inputs stand beside what it attends to, after a layer of their own, so that it
            keeps what it knows by itself. Default: False.
        output_norm: Whether both are normalised to mean 0 and deviation 1. Default: False.
        output_dropout: Probability with which elements of representations are dropped in training. Default: 0.
        path_mean_size: Width of a layer for each typed path, over the mean of the neighbours it leads to; 0, the default: none.
        num_labels: How many labels there are, of which those that are known are inputs too; 0, the default: none.
        label_dropout: Probability with which a node's known labels are hidden in training. Default: 0.
        seed: What noise and dropout are a function of. Default: 0.

    Shapes: (B,) targets, the (B, S) neighbourhood that a `NeighbourSampler` drew for them, and (N, feature_size) features of
    all nodes, dense or sparse, give (B, output_size) representations: num_heads · head_size + path_mean_size numbers, twice as
    many with `skip_connection`.

    >>> encoder = Encoder(feature_size=64, num_relations=3)
    >>> h = encoder(targets, sampler(targets), features)      # (B, K·F'')
    """

    known_paths: Tensor
    known_relation: Tensor
    known_position: Tensor
    known_mask: Tensor
    path_order: Tensor | None
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
        node_embedding_scale: float | None = None,
        hide_own_embedding: bool = False,
        layer_norm: bool = True,
        relation_embedding_size: int = 10,
        neighbour_size: int = 50,
        head_size: int = 50,
        num_heads: int = 8,
        input_noise: float = 0.0,
        dropout: float = 0.0,
        path_attention: PathAttentionKind = "linear",
        prior: bool = True,
        positions_from_neighbour: bool = False,
        path_score_dropout: bool = False,
        skip_connection: bool = False,
        output_norm: bool = False,
        output_dropout: float = 0.0,
        path_mean_size: int = 0,
        num_labels: int = 0,
        label_dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if node_embedding_size and not num_nodes:
            raise GatasError("learned embeddings need num_nodes, one embedding for each.")
        self.num_relations, self.num_steps, self.path_attention = num_relations, num_steps, path_attention
        self.inputs = Inputs(
            feature_size,
            hidden_size,
            num_nodes,
            node_embedding_size,
            node_embedding_scale=node_embedding_scale,
            layer_norm=layer_norm,
            input_noise=input_noise,
            dropout=dropout,
        )
        if path_attention != "none":
            kind = {"linear": PathAttention, "mlp": AdaptivePathAttention}[path_attention]
            self.steps = PathSteps(num_relations, num_steps, relation_embedding_size)
            self.paths = kind(self.inputs.size, relation_embedding_size, neighbour_size)
        else:
            neighbour_size = self.inputs.size
        self.hide_own_embedding = hide_own_embedding and bool(node_embedding_size)
        self.positions_from_neighbour = positions_from_neighbour
        self.score_dropout = Dropout(dropout if path_score_dropout else 0.0, place=7)
        self.pair_dropout = Dropout(dropout, place=5)
        self.neighbours = NeighbourAttention(
            self.inputs.size, neighbour_size, head_size, num_heads, dropout=dropout, prior=prior
        )
        self.labels = KnownLabels(num_labels, neighbour_size, dropout=label_dropout) if num_labels else None
        found_size = num_heads * head_size + path_mean_size
        self.output = Output(self.inputs.size, found_size, skip=skip_connection, norm=output_norm)
        self.output_dropout = Dropout(output_dropout, place=9)
        self.output_size = self.output.size
        paths, order = possible_paths(num_relations, num_steps)
        self.register_buffer("known_paths", paths, persistent=False)
        self.register_buffer("path_order", order, persistent=False)
        self.means = PathMeans(len(paths), self.inputs.size, path_mean_size, num_labels) if path_mean_size else None
        for name, steps in zip(("relation", "position", "mask"), path_steps(paths, num_relations, num_steps), strict=True):
            self.register_buffer(f"known_{name}", steps, persistent=False)
        self.register_buffer("seed", torch.tensor(seed))
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))

    def forward(
        self,
        targets: Tensor,
        neighbourhood: Neighbourhood,
        features: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        window: tuple[Tensor, int] | None = None,
    ) -> Tensor:
        """(B, output_size) representations of (B,) targets.

        `labels` are those known of all nodes, where they are inputs: (N,) numbers, -1 for unknown ones, or (N, num_labels) of 0
        and 1. A target's own are not looked at.

        `window` = (first, size) promises that all nodes of the batch are among `size` from `first` on, such as those of one
        graph. A GPU, which cannot count distinct nodes without waiting, then makes inputs for these only.
        """
        refuse_half(self.neighbours.score, "the encoder's weights are")
        noise = self._noise()
        if shapes_are_fixed(neighbourhood.node):
            batch = self._every_one(targets, neighbourhood, self._num_nodes(features), window)
        else:
            batch = distinct_ones(targets, neighbourhood, share=self.path_attention != "mlp")
            self._check_paths(batch.paths)
        inputs = self.inputs(batch.nodes, features, noise)  # (V, R + F)   h, once per node
        return self._encoded(inputs, batch, targets, neighbourhood, labels, noise)

    def encode_rows(
        self,
        targets: Tensor,
        neighbourhood: Neighbourhood,
        nodes: Tensor | None = None,
        features: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """(B, output_size) representations, in evaluation, of targets that are given with their neighbours as rows of a table.

        `targets` and the neighbourhood's nodes are rows of `nodes`, (V,) indices, which learned embeddings need, of `features`,
        (V, feature_size), and of known `labels`. V may be any number: a program that is exported asks for nothing but shapes.
        """
        given = next(table for table in (nodes, features) if table is not None)
        noise, rows = self._noise(), torch.arange(given.shape[0], device=targets.device)
        paths, path_of = self._listed_paths(neighbourhood.path.flatten())
        batch = BatchParts(rows, targets, neighbourhood.node.flatten(), paths, path_of, None)
        inputs = self.inputs(rows if nodes is None else nodes, features, noise, rows)  # (V, R + F)
        return self._encoded(inputs, batch, targets, neighbourhood, labels, noise)

    def _encoded(
        self,
        inputs: Tensor,
        batch: "BatchParts",
        targets: Tensor,
        neighbourhood: Neighbourhood,
        labels: Tensor | None,
        noise: NoiseSource,
    ) -> Tensor:
        """(B, output_size) from (V, R + F) inputs of the batch's nodes."""
        if self.hide_own_embedding:
            inputs, batch = self._without_own_embeddings(inputs, batch)
        neighbours = self._represented(inputs, batch, noise)  # (U, F')   n
        if self.labels is not None:
            neighbours = neighbours + self.labels(*batch.names(), labels, noise)
        if self.pair_dropout.active:
            neighbours = self.pair_dropout(neighbours, noise, *batch.names())
        of_targets = inputs.index_select(0, batch.target_of)
        found = self.neighbours(of_targets, neighbours, batch.index, neighbourhood, targets, noise)
        if self.means is not None and self.path_order is not None:
            place = batch.node_of[torch.arange(len(batch.node_of), device=found.device) if batch.index is None else batch.index]
            path = self.path_order[neighbourhood.path]
            known = self._known(neighbourhood, labels, noise)
            found = torch.cat([found, self.means(inputs, place.view_as(path), path, neighbourhood, known)], dim=-1)
        representations: Tensor = self.output_dropout(self.output(found, of_targets), noise, targets)
        return representations

    def _without_own_embeddings(self, inputs: Tensor, batch: "BatchParts") -> tuple[Tensor, "BatchParts"]:
        """Add a row for each target that has no embedding, which the target and the path to itself take; others do not."""
        assert self.inputs.embeddings is not None
        count, targets = inputs.shape[0], torch.arange(len(batch.target_of), device=inputs.device)
        own = inputs.index_select(0, batch.target_of)
        seen = torch.arange(inputs.shape[-1], device=inputs.device) >= self.inputs.embeddings.embedding_dim
        place = torch.zeros_like(batch.nodes).scatter(0, batch.target_of, targets)  # of each node among the targets
        to_itself = batch.paths[batch.path_of] == SELF_LOOP
        return torch.cat([inputs, own * seen]), replace(
            batch,
            nodes=torch.cat([batch.nodes, batch.nodes[batch.target_of]]),
            target_of=count + targets,
            node_of=torch.where(to_itself, count + place[batch.node_of], batch.node_of),
        )

    def _known(self, neighbourhood: Neighbourhood, labels: Tensor | None, noise: NoiseSource) -> Tensor | None:
        """(B, S, num_labels) known labels of all slots, where they are inputs."""
        if self.labels is None:
            return None
        known: Tensor = self.labels.known(neighbourhood.node.flatten(), neighbourhood.path.flatten(), labels, noise)
        return known.view(*neighbourhood.node.shape, -1)

    def _check_paths(self, paths: Tensor) -> None:
        """They come in order, and the last has the most steps."""
        count = num_paths(self.num_relations, self.num_steps)
        if len(paths) and int(paths[-1]) >= count:
            raise GatasError(
                f"path {int(paths[-1])} came; {self.num_relations} relations and {self.num_steps} steps make {count} paths. "
                "Build the encoder with the num_relations of the graph and the num_steps of its transitions."
            )

    def _num_nodes(self, features: Tensor | None) -> int:
        embeddings = self.inputs.embeddings
        return len(embeddings.weight) if embeddings is not None else 0 if features is None else len(features)

    def _every_one(
        self, targets: Tensor, neighbourhood: Neighbourhood, num_nodes: int, window: tuple[Tensor, int] | None
    ) -> "BatchParts":
        """All nodes, paths and pairs that there can be; or, where these are more than the slots, one for each slot."""
        node, path = neighbourhood.node.flatten(), neighbourhood.path.flatten()
        wanted = torch.cat([targets, node])
        size = num_nodes if window is None else window[1]
        if size > len(wanted):
            nodes, place = wanted, torch.arange(len(wanted), device=node.device)
        elif window is None:
            nodes, place = torch.arange(num_nodes, device=node.device), wanted
        else:  # which may reach beyond the last node; unused slots hold node 0
            nodes = (window[0] + torch.arange(size, device=node.device)).clamp_max(num_nodes - 1)
            place = (wanted - window[0]).clamp(0, size - 1)
        target_of, node_of = place[: len(targets)], place[len(targets) :]
        paths, path_of = self._listed_paths(path)
        if paths is path or len(nodes) * len(paths) > len(path) or self.path_attention == "mlp":
            return BatchParts(nodes, target_of, node_of, paths, path_of, None)
        index = (path_of * len(nodes) + node_of).view_as(neighbourhood.node)
        node_of = torch.arange(len(nodes), device=path.device).repeat(len(paths))  # by path: some are rare, and come together
        path_of = torch.arange(len(paths), device=path.device).repeat_interleave(len(nodes))
        return BatchParts(nodes, target_of, node_of, paths, path_of, index)

    def _listed_paths(self, path: Tensor) -> tuple[Tensor, Tensor]:
        """All paths that there can be, or, where these are more than the slots, one for each slot; and which each slot has."""
        if self.path_order is None or len(self.known_paths) > len(path):
            return path, torch.arange(len(path), device=path.device)
        return self.known_paths, self.path_order[path]

    def _represented(self, inputs: Tensor, batch: "BatchParts", noise: NoiseSource) -> Tensor:
        """n: (U, F')."""
        if self.path_attention == "none":
            return inputs.index_select(0, batch.node_of)
        relation, position, mask = self._steps_of(batch.paths)  # (E, C)
        if self.positions_from_neighbour:
            position = torch.where(mask & (position > 0), mask.sum(1, keepdim=True) + 1 - position, 0)  # p₀ where unused
        steps = self.steps(position, relation)  # (E, C, D)
        if isinstance(self.paths, AdaptivePathAttention):
            owners = batch.target_of.repeat_interleave(len(batch.node_of) // max(1, len(batch.target_of)))
            return self.paths.forward_for(owners, inputs, batch.node_of, batch.path_of, steps, mask)
        keep = self.score_dropout.keep(mask.shape[1], noise, batch.paths) if self.score_dropout.active else None
        neighbours: Tensor = self.paths(inputs, batch.node_of, batch.path_of, steps, mask, keep)
        return neighbours

    def _steps_of(self, paths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if paths is self.known_paths:
            return self.known_relation, self.known_position, self.known_mask
        return path_steps(paths, self.num_relations, self.num_steps)

    def _noise(self) -> NoiseSource:
        """Every training pass has noise of its own."""
        if not self.training:
            return NoiseSource(self.seed, self.passes)
        step = self.passes.clone()
        self.passes += 1
        return NoiseSource(self.seed, step)


def shapes_are_fixed(values: Tensor) -> bool:
    """Whether shapes must not depend on the data: on a GPU to count is to wait, and programs for any data cannot count."""
    return values.is_cuda or torch.compiler.is_compiling() or is_mapped(values)


@dataclass(frozen=True, slots=True)
class BatchParts:
    """What a batch needs representations of: V nodes, E paths, and U pairs of these, each once if they can be counted."""

    nodes: Tensor  # (V,)
    target_of: Tensor  # (B,) which of the nodes each target is
    node_of: Tensor  # (U,) which of the nodes each pair has
    paths: Tensor  # (E,)
    path_of: Tensor  # (U,) which of the paths
    index: Tensor | None  # (B, S) which pair each slot holds; None: U = B·S, its own

    def names(self) -> tuple[Tensor, Tensor]:
        """The node and the path of each pair, which dropout is keyed by."""
        return self.nodes[self.node_of], self.paths[self.path_of]


def distinct_ones(targets: Tensor, neighbourhood: Neighbourhood, *, share: bool) -> BatchParts:
    """Each distinct node, path and pair once; pairs only if targets `share` them."""
    paths, path_of = distinct(neighbourhood.path)
    if share:
        pairs, index = distinct(neighbourhood.node * len(paths) + path_of)
        node, path_of = pairs // len(paths), pairs % len(paths)
    else:
        node, path_of, index = neighbourhood.node.flatten(), path_of.flatten(), None
    nodes, place = distinct(torch.cat([targets, node]))
    return BatchParts(nodes, place[: len(targets)], place[len(targets) :], paths, path_of, index)
