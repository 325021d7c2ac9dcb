"""`attend` on a GPU from n itself, keys and values included: made once per pair, or in tiles of slots and never written.

B targets, S slots, U pairs, K heads. J neighbour size, F' hidden size of g, F'' head size.
"""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops.attend import attend_torch
from gatas.sampling.models import fold_models

Precision = Literal["ieee", "tf32", "bfloat16"]
"""What the tensor cores are given; they add up in float32. Only with "ieee" are keys and values kept in float32."""


TILES_WIDEST = 64
"""J, F' and F'' up to which tiles of slots fit in a GPU's shared memory; wider ones are written once per pair."""

WIDEST = 128
"""And up to which pairs do; wider ones need their keys and values given (`attend`)."""


def stored_width(width: int) -> int:
    """A head's keys or values are padded to whole 16 bytes."""
    return -(-width // 8) * 8


def attend_neighbours(
    target_terms: Tensor,  # (B, K, F')       u
    neighbours: Tensor,  # (U, J)             n
    key_weight: Tensor,  # (K·F', J)          G = n · key_weightᵀ
    score: Tensor,  # (K, F')                 w
    value_weight: Tensor,  # (K·F'', J)       V = ELU(n · value_weightᵀ + value_bias)
    value_bias: Tensor,  # (K·F'')
    index: Tensor | None,  # (B, S)           which pair each slot holds; None: U = B·S, its own
    log_probability: Tensor,  # (B, S)
    mask: Tensor,  # (B, S)
    keep: Tensor | None = None,  # (B, S, K)
    precision: Precision = "tf32",
) -> Tensor:
    """(B, K, F''). With an index, keys and values are made once for each pair; without one, in tiles on the tensor cores."""
    if index is None and max(target_terms.shape[-1], neighbours.shape[-1], len(value_bias) // len(score)) > TILES_WIDEST:
        index = torch.arange(mask.numel(), device=mask.device).view_as(mask)
    single = (tensor.float() for tensor in (target_terms, neighbours, key_weight, score, value_weight, value_bias))
    given = (*single, index, log_probability.float(), mask, keep)
    batched = (None if tensor is None else tensor[None] for tensor in given)
    out: Tensor = _attend_neighbours(*batched, precision)[0]
    return out.squeeze(0)


def attend_neighbours_torch(
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    index: Tensor | None,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None = None,
) -> Tensor:
    """The contract, short and obvious."""
    keys = F.linear(neighbours, key_weight).view(-1, *score.shape)  # (U, K, F')
    values = F.elu(F.linear(neighbours, value_weight, value_bias))  # (U, K·F'')
    if index is None:
        index = torch.arange(mask.numel(), device=mask.device).view_as(mask)
    values = values.view(len(keys), len(score), -1)
    return attend_torch(target_terms, keys, score, values, index, log_probability, mask, keep)


@torch.library.custom_op("gatas::attend_neighbours", mutates_args=())
def _attend_neighbours(
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    index: Tensor | None,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    precision: str,
) -> list[Tensor]:
    """The result, and what backward needs: the softmax's denominators; with an index also keys, values, and slots by pair."""
    from gatas.nn.ops import gpu

    weights = (neighbours, key_weight, value_weight, value_bias)
    slots = (log_probability, mask, keep)
    if index is None:
        return [*gpu.tiles_forward(target_terms, score, *weights, *slots, precision)]
    groups = gpu.slots_by_pair(index, mask, neighbours.shape[1])
    keys, values = gpu.project_forward(*weights, precision, groups[0], score.shape[1])
    head_size = value_weight.shape[1] // score.shape[1]
    return [*gpu.pairs_forward(target_terms, keys, score, values, index, *slots, head_size), keys, values, *groups]


@_attend_neighbours.register_fake
def _(*given: Any) -> list[Tensor]:
    target_terms, neighbours, _, _, value_weight, _, index, *_, precision = given
    models, batch, num_heads, hidden = target_terms.shape
    head_size, pairs = value_weight.shape[1] // num_heads, neighbours.shape[1]
    new, kind = target_terms.new_empty, torch.float32 if precision == "ieee" else torch.float16
    results = [new(models, batch, num_heads, head_size), new(models, batch, num_heads)]
    if index is None:
        return results
    pairwise = [new(models, pairs, num_heads, stored_width(width), dtype=kind) for width in (hidden, head_size)]
    return [*results, *pairwise, index.new_empty(models, pairs + 1), index.new_empty(models, index[0].numel())]


@torch.library.custom_op("gatas::attend_neighbours_backward", mutates_args=())
def _attend_neighbours_backward(
    grad_out: Tensor,
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    index: Tensor | None,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    precision: str,
    results: list[Tensor],
) -> list[Tensor]:
    """Gradients of the six weights and terms, and of ln P."""
    from gatas.nn.ops import gpu

    out, normaliser, *pairwise = results
    slots = (log_probability, mask, keep)
    if index is None:
        weights = (neighbours, key_weight, value_weight, value_bias)
        return gpu.tiles_backward(target_terms, score, *weights, *slots, precision, out, normaliser, grad_out)
    keys, values, indptr, members = pairwise
    of_terms, of_score, of_log, of_pairs, _ = gpu.pairs_backward(
        target_terms,
        keys,
        score,
        values,
        index,
        *slots,
        out,
        normaliser,
        grad_out,
        indptr,
        members,
        projected=True,
    )
    of_neighbours, of_key, of_value, of_bias = gpu.project_backward(neighbours, key_weight, value_weight, of_pairs)
    return [of_terms, of_neighbours, of_key, of_score, of_value, of_bias, of_log]


@_attend_neighbours_backward.register_fake
def _(_: Tensor, *given: Any) -> list[Tensor]:
    return [tensor.new_empty(tensor.shape) for tensor in (*given[:6], given[7])]


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.precision = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx, grads):  # type: ignore[no-untyped-def]
    if grads[0] is None:
        return (None,) * 11
    inputs, results = ctx.saved_tensors[:10], ctx.saved_tensors[10:]
    *weights, log = torch.ops.gatas.attend_neighbours_backward(grads[0], *inputs, ctx.precision, list(results))
    return (*weights, None, log, None, None, None)


_attend_neighbours.register_autograd(_differentiate, setup_context=_setup)
fold_models(_attend_neighbours)
