"""`attend` on a GPU from n itself: keys and values are made in tiles on the tensor cores, and never written.

B targets, S slots with a pair each, K heads. J neighbour size, F' hidden size of g, F'' head size.
"""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops.attend import attend_torch
from gatas.sampling.models import fold_models

Precision = Literal["ieee", "tf32", "bfloat16"]
"""What the tensor cores are given; they add up in float32."""


def attend_tiles(
    target_terms: Tensor,  # (B, K, F')       u
    neighbours: Tensor,  # (B·S, J)           n, a row for each slot
    key_weight: Tensor,  # (K·F', J)          G = n · key_weightᵀ
    score: Tensor,  # (K, F')                 w
    value_weight: Tensor,  # (K·F'', J)       V = ELU(n · value_weightᵀ + value_bias), dropped by `words`
    value_bias: Tensor,  # (K·F'')
    log_probability: Tensor,  # (B, S)
    mask: Tensor,  # (B, S)
    keep: Tensor | None = None,  # (B, S, K)
    words: Tensor | None = None,  # (B·S, 2)  what names each row of the values for dropout
    dropout: float = 0.0,
    precision: Precision = "tf32",
) -> Tensor:
    """(B, K, F''): `attend` with the keys and values of each slot's n."""
    single = (target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability)
    given = [*(tensor.float() for tensor in single), mask, keep, words]
    batched = [None if tensor is None else tensor[None] for tensor in given]
    out: Tensor = _attend_tiles(*batched, dropout, precision)[0]
    return out[0]


def attend_tiles_torch(
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None = None,
    value_keep: Tensor | None = None,  # (B·S, K·F'') what `words` and `dropout` say
) -> Tensor:
    """The contract, short and obvious."""
    keys = F.linear(neighbours, key_weight).view(-1, *score.shape)  # (B·S, K, F')
    values = F.elu(F.linear(neighbours, value_weight, value_bias))  # (B·S, K·F'')
    values = values if value_keep is None else values * value_keep
    index = torch.arange(mask.numel(), device=mask.device).view_as(mask)
    values = values.view(len(keys), len(score), -1)
    return attend_torch(target_terms, keys, score, values, index, log_probability, mask, keep)


@torch.library.custom_op("gatas::attend_tiles", mutates_args=())
def _attend_tiles(
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    words: Tensor | None,
    dropout: float,
    precision: str,
) -> tuple[Tensor, Tensor]:
    from gatas.nn.ops import gpu

    return gpu.tiles_forward(
        target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep, words,
        dropout, precision,
    )  # fmt: skip


@_attend_tiles.register_fake
def _(target_terms: Tensor, neighbours: Tensor, key_weight: Tensor, score: Tensor, value_weight: Tensor, *_: Any) -> Any:
    models, batch, num_heads, _ = target_terms.shape
    head_size = value_weight.shape[1] // num_heads
    return target_terms.new_empty(models, batch, num_heads, head_size), target_terms.new_empty(models, batch, num_heads)


@torch.library.custom_op("gatas::attend_tiles_backward", mutates_args=())
def _attend_tiles_backward(
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    words: Tensor | None,
    dropout: float,
    precision: str,
    out: Tensor,
    normaliser: Tensor,
    grad_out: Tensor,
) -> list[Tensor]:
    from gatas.nn.ops import gpu

    return gpu.tiles_backward(
        target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep, words,
        dropout, precision, out, normaliser, grad_out,
    )  # fmt: skip


@_attend_tiles_backward.register_fake
def _(*given: Any) -> list[Tensor]:
    return [torch.empty_like(tensor) for tensor in given[:7]]  # those that are differentiable


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.dropout, ctx.precision = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx, grad_out, _grad_normaliser):  # type: ignore[no-untyped-def]
    if grad_out is None:
        return (None,) * 12
    *tensors, out, normaliser = ctx.saved_tensors
    settings = (ctx.dropout, ctx.precision)
    grads = torch.ops.gatas.attend_tiles_backward(*tensors, *settings, out, normaliser, grad_out)
    return (*grads, None, None, None, None, None)


_attend_tiles.register_autograd(_differentiate, setup_context=_setup)
fold_models(_attend_tiles)
