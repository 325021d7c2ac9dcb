"""`attend` from n itself, keys and values included, in plain torch.

B targets, S slots, U pairs, K heads. J neighbour size, F' hidden size of g, F'' head size.
"""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.ops.attend.contract import AttendInputs, attend_torch

Precision = Literal["ieee", "tf32", "bfloat16"]
"""What the tensor cores are given; they add up in float32."""

Storage = Literal["auto", "float32", "bfloat16", "float16"]
"""What keys and values of pairs are stored in. "auto": what is as exact as products are, STORED_AS.

float16 holds ten bits of a number, as TF32 does, up to 65,504; what is beyond is stored as NaN. bfloat16 holds seven, with the
range of float32.
"""

STORED_AS = {"ieee": "float32", "float32": "float32", "tf32": "float16", "bfloat16": "bfloat16"}
"""What "auto" is, by the precision of products, under torch's name for it too."""

TILES_WIDEST = 64
"""J, F' and F'' up to which tiles of slots fit in a GPU's shared memory; wider ones are written once per pair."""

WIDEST = 128
"""J, F' and F'' up to which pairs do; wider ones need their keys and values given (`attend`)."""


class NeighbourInputs(NamedTuple):
    """What is attended to. Where the operator is given them, all tensors have a leading dimension of M models."""

    target_terms: Tensor  # (B, K, F')       u
    neighbours: Tensor  # (U, J)             n
    key_weight: Tensor  # (K·F', J)          G = n · key_weightᵀ
    score: Tensor  # (K, F')                 w
    value_weight: Tensor  # (K·F'', J)       V = ELU(n · value_weightᵀ + value_bias)
    value_bias: Tensor  # (K·F'')
    index: Tensor | None  # type: ignore[assignment]  # (B, S) which pair each slot holds; None: U = B·S, its own
    log_probability: Tensor  # (B, S)        ln P
    mask: Tensor  # (B, S)                   slots in use
    keep: Tensor | None = None  # (B, S, K)  attention dropout: 0, or 1 / (1 - p)
    precision: str = "tf32"  # a Precision
    storage: str = "auto"  # a Storage


def attend_neighbours_torch(given: NeighbourInputs) -> Tensor:
    """(B, K, F''): `attend` with keys and values made for all pairs; `precision` and `storage` play no part."""
    keys = F.linear(given.neighbours, given.key_weight).view(-1, *given.score.shape)  # (U, K, F')
    values = F.elu(F.linear(given.neighbours, given.value_weight, given.value_bias))  # (U, K·F'')
    index = own_pairs(given.mask) if given.index is None else given.index
    values = values.view(len(keys), len(given.score), -1)
    slots = (index, given.log_probability, given.mask, given.keep)
    return attend_torch(AttendInputs(given.target_terms, keys, given.score, values, *slots))


def own_pairs(mask: Tensor) -> Tensor:
    """The index of slots that each hold a pair of their own."""
    return torch.arange(mask.numel(), device=mask.device).view_as(mask)


def stored_type(precision: str, storage: str) -> torch.dtype:
    """The type that keys and values are stored in."""
    kind: torch.dtype = getattr(torch, STORED_AS[precision] if storage == "auto" else storage)
    return kind


def stored_width(width: int) -> int:
    """A head's keys or values are padded to whole 16 bytes."""
    return -(-width // 8) * 8


def shapes(given: NeighbourInputs) -> list[Tensor]:
    """The result, and what backward needs: the softmax's denominators; with an index also keys, values, and slots by pair."""
    models, batch, num_heads, hidden = given.target_terms.shape
    head_size, pairs = given.value_weight.shape[1] // num_heads, given.neighbours.shape[1]
    new, kind = given.target_terms.new_empty, stored_type(given.precision, given.storage)
    results = [new(models, batch, num_heads, head_size), new(models, batch, num_heads)]
    if given.index is None:
        return results
    pairwise = [new(models, pairs, num_heads, stored_width(width), dtype=kind) for width in (hidden, head_size)]
    slots = (given.index.new_empty(models, pairs + 1), given.index.new_empty(models, given.index[0].numel()))
    return [*results, *pairwise, *slots]


def backward_shapes(given: NeighbourInputs, *_: Any) -> list[Tensor]:
    """Gradients of the six terms and weights, and of ln P."""
    return [tensor.new_empty(tensor.shape) for tensor in (*given[:6], given.log_probability)]
