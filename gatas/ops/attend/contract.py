"""Attention over a sample of (neighbour, path) pairs (eqs. 3, 4 before σ), in plain torch.

B targets, S sampled pairs each, K heads, U distinct pairs. F' neighbour size, F'' head size.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.ops.softmax import masked_softmax


class AttendInputs(NamedTuple):
    """What is attended to. Where the operator is given them, all tensors have a leading dimension of M models."""

    target_terms: Tensor  # (B, K, F')   u: what g's hidden layer has of the target, bias included
    keys: Tensor  # (U, K, F')           G: what it has of the pair
    score: Tensor  # (K, F')             w: g's output layer
    values: Tensor  # (U, K, F'')        V: d of the pair
    index: Tensor  # type: ignore[assignment]  # (B, S) which pair each slot holds
    log_probability: Tensor  # (B, S)    ln P
    mask: Tensor  # (B, S)               slots in use
    keep: Tensor | None = None  # (B, S, K) attention dropout: 0, or 1 / (1 - p)


def attend_torch(given: AttendInputs) -> Tensor:
    """(B, K, F''): Σ α V with α = softmax(w · ELU(u + G) + ln P); a (B, S, K, F') tensor is written here only."""
    hidden = F.elu(given.target_terms[:, None] + given.keys[given.index])  # (B, S, K, F')
    logits = torch.einsum("bskf,kf->bsk", hidden, given.score) + given.log_probability[..., None]  # (B, S, K)
    weights = masked_softmax(logits.transpose(1, 2), given.mask[:, None]).transpose(1, 2)  # (B, S, K)   α
    if given.keep is not None:
        weights = weights * given.keep
    return torch.einsum("bsk,bskf->bkf", weights, given.values[given.index])  # (B, K, F'')


def shapes(given: AttendInputs) -> tuple[Tensor, Tensor]:
    """The result, and what backward needs: attention weights on a CPU, denominators of the softmax on a GPU."""
    terms = given.target_terms
    models, batch, num_heads = terms.shape[:3]
    state = (models, batch, num_heads) if terms.is_cuda else (models, num_heads, batch * given.index.shape[-1])
    return terms.new_empty(models, batch, num_heads, given.values.shape[-1]), terms.new_empty(state)


def backward_shapes(given: AttendInputs, *_: Any) -> tuple[Tensor, ...]:
    """Gradients of target terms, keys, score, values and ln P."""
    return tuple(tensor.new_empty(tensor.shape) for tensor in (*given[:4], given.log_probability))
