"""`attention`: how much of each neighbour, as seen over its path, there is in a node's representation (eq. 3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.inference.exact import ExactEncoder
from gatas.inference.trained import TrainedModel
from gatas.ops.softmax import masked_softmax
from gatas.sampling import Neighbourhood
from gatas.sampling.sampler import Mode


@dataclass(frozen=True, slots=True)
class Attention:
    """α for B targets, S slots and K heads; adds up to 1 over the slots, and is 0 in unused ones."""

    neighbourhood: Neighbourhood
    weights: Tensor  # (B, S, K)

    @property
    def shares(self) -> Tensor:
        """Return (B, S) means over heads."""
        return self.weights.mean(-1)

    @property
    def prior(self) -> Tensor:
        """Return (B, S) shares by the transition probabilities alone, where nothing is learned but depth."""
        return masked_softmax(self.neighbourhood.log_probability, self.neighbourhood.mask)


@torch.no_grad()
def attention(trained: TrainedModel, targets: Tensor, *, mode: Mode = "all", draw: int = -1) -> Attention:
    """Return the model's exact attention for (B,) targets given by index, by default over every candidate they have."""
    with evaluating(trained.model):
        targets = targets.to(trained.device)
        neighbourhood = trained.sampler(targets, draw=draw, mode=mode)
        logits = scores(trained.exact, targets, neighbourhood)[0].transpose(1, 2).float()  # (B, K, S)
    return Attention(neighbourhood, masked_softmax(logits, neighbourhood.mask[:, None]).transpose(1, 2))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Keep a model from training mode as long as this lasts."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def scores(exact: ExactEncoder, targets: Tensor, neighbourhood: Neighbourhood) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return (B, S, K) g + ln P, whose softmax is α; (U, K, F'') d of the distinct pairs; (B, S) which pair each slot holds.

    Beside them (B, R + F) h of the targets, and (B, S, D) what slots put into the means of their paths. In float64, so that
    sums have more digits than the model's own.
    """
    inputs, neighbours, index, means = _seen(exact, targets, neighbourhood)
    layer = exact.model.encoder.neighbours
    of_target = linear(layer.hidden_of_target, inputs).view(len(inputs), 1, layer.num_heads, layer.hidden_size)  # (B, 1, K, F')
    of_pair = linear(layer.hidden_of_neighbour, neighbours).view(len(neighbours), layer.num_heads, layer.hidden_size)
    hidden = F.elu(of_target + of_pair[index])  # (B, S, K, F')
    logits = torch.einsum("bskf,kf->bsk", hidden, layer.score.double()) + layer.prior_of(neighbourhood)[..., None]
    values = F.elu(linear(layer.value, neighbours)).view(len(neighbours), layer.num_heads, layer.head_size)  # (U, K, F'')
    return logits, values, index, inputs, means


def linear(layer: nn.Linear, values: Tensor) -> Tensor:
    """Apply a layer in the precision of its input."""
    return F.linear(values, layer.weight.to(values), None if layer.bias is None else layer.bias.to(values))


def _seen(exact: ExactEncoder, targets: Tensor, neighbourhood: Neighbourhood) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what the encoder gives to its attention: h of the targets, n of pairs, and which pair each slot holds.

    Beside them (B, S, D) what each slot puts into the mean of its path; D is 0 where there are none.
    """
    given: list[Any] = []
    encoder, of_means = exact.model.encoder, list[Any]()
    hooks = [encoder.neighbours.register_forward_pre_hook(lambda _, arguments: given.extend(arguments))]
    if encoder.means is not None:
        hooks.append(encoder.means.register_forward_pre_hook(lambda _, arguments: of_means.extend(arguments)))
    try:
        exact.encode(targets, neighbourhood)
    finally:
        for hook in hooks:
            hook.remove()
    inputs, neighbours, index = given[:3]
    if index is None:
        index = torch.arange(len(neighbours), device=neighbours.device).view_as(neighbourhood.node)
    means = neighbours.new_empty(*neighbourhood.node.shape, 0)
    if encoder.means is not None:
        nodes, place, path, _, known = of_means
        labels = [None] * len(place) if known is None else known
        means = torch.stack([encoder.means.values(nodes, *one) for one in zip(place, path, labels, strict=True)])
    return inputs, neighbours, index, means


def shares_by_path(attention: Attention, others: Tensor) -> dict[int, tuple[float, float]]:
    """Return the attention that each target pays to one `other` node, by path: the share, and the prior's.

    Means over the B targets; the largest share first.
    """
    neighbourhood = attention.neighbourhood
    found = neighbourhood.mask & (neighbourhood.node == others.to(neighbourhood.node.device)[:, None])  # (B, S)
    paths, place = torch.unique(neighbourhood.path[found], return_inverse=True)
    sums = [
        torch.zeros(len(paths), device=place.device).index_add_(0, place, values[found]) / len(others)
        for values in (attention.shares, attention.prior)
    ]
    rows = zip(paths.tolist(), *(column.tolist() for column in sums), strict=True)
    return {path: (share, prior) for path, share, prior in sorted(rows, key=lambda row: -row[1])}
