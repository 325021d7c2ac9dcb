"""Attention over a sample of (neighbour, path) pairs (eqs. 3, 4 before σ): one contract, several implementations.

B targets, S sampled pairs each, K heads, U distinct pairs. F' neighbour size, F'' head size. A (B, S, K, F') tensor is
written by `attend_torch` only, which is the oracle. Every tensor may have a leading dimension of M independent models.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops import kernels
from gatas.nn.softmax import masked_softmax
from gatas.sampling.models import each_model, fold_models
from gatas.sampling.threads import run_rows

PIECES = 8
"""Pairs are shared out among threads in as many pieces, however many threads there are."""


def attend(
    target_terms: Tensor,  # (B, K, F')   u: what g's hidden layer has of the target, bias included
    keys: Tensor,  # (U, K, F')           G: what it has of the pair
    score: Tensor,  # (K, F')             w: g's output layer
    values: Tensor,  # (U, K, F'')        V: d of the pair
    index: Tensor,  # (B, S)              which pair each slot holds
    log_probability: Tensor,  # (B, S)    ln P
    mask: Tensor,  # (B, S)               slots in use
    keep: Tensor | None = None,  # (B, S, K) attention dropout: 0, or 1 / (1 - p)
) -> Tensor:
    """(B, K, F''): Σ α V with α = softmax(w · ELU(u + G) + ln P) over each target's sample; zeros for an empty one."""
    given = (target_terms, keys, score, values, index, log_probability, mask, keep)
    if target_terms.dim() == 4:
        return _attended(*given)
    batched = (None if tensor is None else tensor[None] for tensor in given)
    return _attended(*batched).squeeze(0)  # type: ignore[arg-type]


def _attended(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
) -> Tensor:
    if target_terms.is_cuda:
        if target_terms.dtype == torch.float64:
            return each_model_torch(target_terms, keys, score, values, index, log_probability, mask, keep)
        target_terms, keys, score, values, log_probability = (
            tensor.float() for tensor in (target_terms, keys, score, values, log_probability)
        )
    out: Tensor = _attend(target_terms, keys, score, values, index, log_probability, mask, keep)[0]
    return out


def attend_torch(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None = None,
) -> Tensor:
    """The contract, short and obvious."""
    hidden = F.elu(target_terms[:, None] + keys[index])  # (B, S, K, F')
    logits = torch.einsum("bskf,kf->bsk", hidden, score) + log_probability[..., None]  # (B, S, K)
    weights = masked_softmax(logits.transpose(1, 2), mask[:, None]).transpose(1, 2)  # (B, S, K)   α
    if keep is not None:
        weights = weights * keep
    return torch.einsum("bsk,bskf->bkf", weights, values[index])  # (B, K, F'')


def each_model_torch(*arguments: Tensor | None) -> Tensor:
    """`attend_torch` for one model after another."""
    out: Tensor = each_model(attend_torch, *arguments)
    return out


@torch.library.custom_op("gatas::attend", mutates_args=())
def _attend(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The result, and what backward needs: attention weights on a CPU, denominators of the softmax on a GPU."""
    given = (target_terms, keys, score, values, index, log_probability, mask, keep)
    if not target_terms.is_cuda:
        results: tuple[Tensor, Tensor] = each_model(_forward_numba, *given)
        return results
    from gatas.nn.ops import gpu

    return gpu.pairs_forward(*given, values.shape[-1])


@_attend.register_fake
def _(target_terms: Tensor, keys: Tensor, score: Tensor, values: Tensor, index: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    models, batch, num_heads = target_terms.shape[:3]
    weights = (models, batch, num_heads) if target_terms.is_cuda else (models, num_heads, batch * index.shape[-1])
    return target_terms.new_empty(models, batch, num_heads, values.shape[-1]), target_terms.new_empty(weights)


@torch.library.custom_op("gatas::attend_backward", mutates_args=())
def _attend_backward(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    out: Tensor,
    state: Tensor,
    grad_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    given = (target_terms, keys, score, values, index, log_probability, mask, keep)
    if not target_terms.is_cuda:
        results: tuple[Tensor, Tensor, Tensor, Tensor, Tensor] = each_model(_backward_numba, *given, out, state, grad_out)
        return results
    from gatas.nn.ops import gpu

    groups = gpu.slots_by_pair(index, mask, keys.shape[1])
    terms, of_score, log, of_keys, of_values = gpu.pairs_backward(*given, out, state, grad_out, *groups)
    return terms, of_keys, of_score, of_values, log


@_attend_backward.register_fake
def _(
    target_terms: Tensor, keys: Tensor, score: Tensor, values: Tensor, _: Tensor, log: Tensor, *__: Any
) -> tuple[Tensor, ...]:
    return tuple(tensor.new_empty(tensor.shape) for tensor in (target_terms, keys, score, values, log))


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs, *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx, grad_out, _grad_state):  # type: ignore[no-untyped-def]
    if grad_out is None:
        return (None,) * 8
    terms, keys, score, values, log = torch.ops.gatas.attend_backward(*ctx.saved_tensors, grad_out)
    return terms, keys, score, values, None, log, None, None


_attend.register_autograd(_differentiate, setup_context=_setup)
fold_models(_attend)
fold_models(_attend_backward)


def _forward_numba(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
) -> tuple[Tensor, Tensor]:
    (batch, num_heads, _), width = target_terms.shape, values.shape[-1]
    weights = target_terms.new_zeros(num_heads, index.numel())  # those of the slots in use first, pair by pair
    parts = target_terms.new_empty(PIECES * batch, num_heads * width)
    g, w, v, o = (_flat(tensor) for tensor in (keys, score.reshape(1, -1), values, parts))
    log, kept, alpha = _numpy(log_probability).reshape(-1), _kept(keep, target_terms), _numpy(weights)
    u, places = _with_exponentials(target_terms), _slots_by_pair(index, mask, len(keys))
    piece_elements = index.numel() * w.size // PIECES

    def fill_logits(first: int, last: int) -> None:
        kernels.attend_logits(*u, g, w, log, *places, first, last, alpha)

    def normalise(first: int, last: int) -> None:
        kernels.softmax_heads(alpha, places[-1], batch, first, last)

    def mix(first: int, last: int) -> None:
        kernels.mix_values(v, kept, alpha, *places, batch, first, last, o)

    run_rows(fill_logits, PIECES, piece_elements)
    run_rows(normalise, num_heads, index.numel())
    run_rows(mix, PIECES, piece_elements)
    return parts.view(PIECES, batch, num_heads, width).sum(0), weights


def _backward_numba(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    _log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    out: Tensor,
    weights: Tensor,
    grad_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch, num_heads, size = target_terms.shape
    of_keys, of_values, of_logits = keys.new_empty(keys.shape), values.new_empty(values.shape), torch.zeros_like(weights)
    of_terms, of_score = target_terms.new_empty(PIECES * batch, num_heads * size), score.new_empty(PIECES, num_heads * size)
    of_log = weights.new_zeros(index.shape)
    mean = (grad_out * out).sum(-1)  # (B, K)
    g, w, v, d = (_flat(tensor) for tensor in (keys, score.reshape(1, -1), values, grad_out))
    kept, alpha, m = _kept(keep, target_terms), _numpy(weights), _numpy(mean)
    u, places = _with_exponentials(target_terms), _slots_by_pair(index, mask, len(keys))
    grads = [_flat(grad) for grad in (of_terms, of_keys, of_score, of_values, of_logits)]

    def work(first: int, last: int) -> None:
        kernels.attend_backward(*u, g, w, v, kept, alpha, m, d, *places, first, last, *grads)

    run_rows(work, PIECES, index.numel() * w.size // PIECES)
    kernels.sum_heads(grads[-1], places[2], _numpy(of_log).reshape(-1))
    together = of_terms.view(PIECES, *target_terms.shape).sum(0) * score
    return together, of_keys, of_score.view(PIECES, *score.shape).sum(0), of_values, of_log


def _with_exponentials(target_terms: Tensor) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """u, exp(u), and for which targets that is of use."""
    u = _flat(target_terms)
    exponentials, tame = np.empty_like(u), np.empty(len(u), np.bool_)
    kernels.exponential_rows(u, exponentials, tame)
    return u, exponentials, tame


def _slots_by_pair(index: Tensor, mask: Tensor, num_pairs: int) -> tuple[NDArray[Any], ...]:
    """Where pieces of about equal work begin, where pairs begin, and the slots in use, pair by pair, with their targets."""
    num_slots = int(mask.sum())
    indptr, slots, targets = np.zeros(num_pairs + 1, np.int64), np.empty(num_slots, np.uint64), np.empty(num_slots, np.uint64)
    kernels.slots_by_pair(_numpy(index), _numpy(mask), indptr, slots, targets)
    work = indptr + np.arange(num_pairs + 1)
    cuts = np.searchsorted(work, work[-1] * np.arange(PIECES + 1) // PIECES)
    return cuts, indptr, slots, targets


def _kept(keep: Tensor | None, like: Tensor) -> NDArray[Any]:
    return _numpy(like.new_empty(0, like.shape[1]) if keep is None else keep).reshape(-1, like.shape[1])


def _flat(tensor: Tensor) -> NDArray[Any]:
    return _numpy(tensor.flatten(1))


def _numpy(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().contiguous().numpy()
