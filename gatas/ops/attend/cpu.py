"""`attend` by numba. Threads share out pieces of pairs, always the same ones, so results do not depend on how many."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.ops.arrays import as_numpy
from gatas.ops.attend.contract import AttendInputs
from gatas.ops.compiled import compiled
from gatas.ops.models import each_model
from gatas.ops.numba_rows import FUSE, REORDER, add_scaled, dot, exp, fill, fill_part, scale
from gatas.ops.threads import run_rows

PIECES = 8
"""Pairs are shared out among threads in as many pieces, however many threads there are."""


def forward(given: AttendInputs) -> tuple[Tensor, Tensor]:
    """The result, and attention weights: those of the slots in use first, pair by pair."""
    results: tuple[Tensor, Tensor] = each_model(_forward, given)
    return results


def backward(
    given: AttendInputs, out: Tensor, weights: Tensor, grad_out: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of target terms, keys, score, values and ln P."""
    results: tuple[Tensor, Tensor, Tensor, Tensor, Tensor] = each_model(_backward, given, out, weights, grad_out)
    return results


def _forward(given: AttendInputs) -> tuple[Tensor, Tensor]:
    target_terms, keys, score, values, index, log_probability, mask, keep = given
    (batch, num_heads, _), width = target_terms.shape, values.shape[-1]
    weights = target_terms.new_zeros(num_heads, index.numel())
    parts = target_terms.new_empty(PIECES * batch, num_heads * width)
    g, w, v, o = (_flat(tensor) for tensor in (keys, score.reshape(1, -1), values, parts))
    log, kept, alpha = as_numpy(log_probability).reshape(-1), _kept(keep, target_terms), as_numpy(weights)
    u, places = _with_exponentials(target_terms), _slots_by_pair(index, mask, len(keys))
    piece_elements = index.numel() * w.size // PIECES

    def fill_logits(first: int, last: int) -> None:
        attend_logits(*u, g, w, log, *places, first, last, alpha)

    def normalise(first: int, last: int) -> None:
        softmax_heads(alpha, places[-1], batch, first, last)

    def mix(first: int, last: int) -> None:
        mix_values(v, kept, alpha, *places, batch, first, last, o)

    run_rows(fill_logits, PIECES, piece_elements)
    run_rows(normalise, num_heads, index.numel())
    run_rows(mix, PIECES, piece_elements)
    return parts.view(PIECES, batch, num_heads, width).sum(0), weights


def _backward(
    given: AttendInputs, out: Tensor, weights: Tensor, grad_out: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    target_terms, keys, score, values, index, _, mask, keep = given
    batch, num_heads, size = target_terms.shape
    of_keys, of_values, of_logits = keys.new_empty(keys.shape), values.new_empty(values.shape), torch.zeros_like(weights)
    of_terms, of_score = target_terms.new_empty(PIECES * batch, num_heads * size), score.new_empty(PIECES, num_heads * size)
    of_log = weights.new_zeros(index.shape)
    mean = (grad_out * out).sum(-1)  # (B, K)
    g, w, v, d = (_flat(tensor) for tensor in (keys, score.reshape(1, -1), values, grad_out))
    kept, alpha, m = _kept(keep, target_terms), as_numpy(weights), as_numpy(mean)
    u, places = _with_exponentials(target_terms), _slots_by_pair(index, mask, len(keys))
    grads = [_flat(grad) for grad in (of_terms, of_keys, of_score, of_values, of_logits)]

    def work(first: int, last: int) -> None:
        attend_backward(*u, g, w, v, kept, alpha, m, d, *places, first, last, *grads)

    run_rows(work, PIECES, index.numel() * w.size // PIECES)
    sum_heads(grads[-1], places[2], as_numpy(of_log).reshape(-1))
    together = of_terms.view(PIECES, *target_terms.shape).sum(0) * score
    return together, of_keys, of_score.view(PIECES, *score.shape).sum(0), of_values, of_log


def _with_exponentials(target_terms: Tensor) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """u, exp(u), and for which targets that is of use."""
    u = _flat(target_terms)
    exponentials, factorisable = np.empty_like(u), np.empty(len(u), np.bool_)
    exponential_rows(u, exponentials, factorisable)
    return u, exponentials, factorisable


def _slots_by_pair(index: Tensor, mask: Tensor, num_pairs: int) -> tuple[NDArray[Any], ...]:
    """Where pieces of about equal work begin, where pairs begin, and the slots in use, pair by pair, with their targets."""
    num_slots = int(mask.sum())
    indptr, slots, targets = np.zeros(num_pairs + 1, np.int64), np.empty(num_slots, np.uint64), np.empty(num_slots, np.uint64)
    slots_by_pair(as_numpy(index), as_numpy(mask), indptr, slots, targets)
    work = indptr + np.arange(num_pairs + 1)
    cuts = np.searchsorted(work, work[-1] * np.arange(PIECES + 1) // PIECES)
    return cuts, indptr, slots, targets


def _kept(keep: Tensor | None, like: Tensor) -> NDArray[Any]:
    return as_numpy(like.new_empty(0, like.shape[1]) if keep is None else keep).reshape(-1, like.shape[1])


def _flat(tensor: Tensor) -> NDArray[Any]:
    return as_numpy(tensor.flatten(1))


@compiled(fastmath=FUSE)
def attend_logits(
    terms, exp_terms, factorisable_terms, keys, score, log_probability, cuts, indptr, slots, targets, first, last, out
):
    """w · ELU(u + G) + ln P into out (K, B·S), for some pieces.

    Pairs are taken one after another, each with the slots that hold it, so that a key and a value are read once. What is
    written for a slot is in that order too: in the order of targets each number would be a cache miss.
    """
    num_heads, size = out.shape[0], score.shape[1] // out.shape[0]
    exp_key, slope = np.empty_like(score), np.empty_like(score)
    for pair in range(cuts[first], cuts[last]):
        factorisable_key = exponentials(keys, pair, exp_key, 0)
        for at in range(indptr[pair], indptr[pair + 1]):
            b = targets[at]
            if factorisable_key and factorisable_terms[b]:
                multiplied_slopes(exp_terms, b, exp_key, slope)
            else:
                added_slopes(terms, b, keys, pair, slope)
            for k in range(num_heads):
                out[k, at] = hidden_dot(terms, b, keys, pair, slope, score, k * size, size) + log_probability[slots[at]]


@compiled(fastmath=FUSE)
def softmax_heads(weights, targets, batch, first, last):
    """From logits to weights, in place, for some heads."""
    for k in range(first, last):
        top, together = np.full(batch, -np.inf, weights.dtype), np.zeros(batch, weights.dtype)
        row = np.uint64(k)
        for at in range(targets.size):
            b = targets[at]
            top[b] = max(top[b], weights[row, np.uint64(at)])
        for b in range(batch):
            top[b] = top[b] if top[b] > -np.inf else 0
        for at in range(targets.size):
            weights[row, np.uint64(at)] -= top[targets[at]]
        for at in range(targets.size):
            below = weights[row, np.uint64(at)]
            weights[row, np.uint64(at)] = exp(below) if below > -np.inf else 0
        for at in range(targets.size):
            together[targets[at]] += weights[row, np.uint64(at)]
        for b in range(batch):
            together[b] = 1 / together[b] if together[b] > 0 else together[b]
        for at in range(targets.size):
            weights[row, np.uint64(at)] *= together[targets[at]]


@compiled(fastmath=FUSE)
def mix_values(values, keep, weights, cuts, indptr, slots, targets, batch, first, last, out):
    """Σ α V of some pieces, each into rows of its own: out is (pieces · B, K·F'')."""
    num_heads, width = weights.shape[0], values.shape[1] // weights.shape[0]
    for piece in range(first, last):
        for b in range(batch):
            fill(out, piece * batch + b, 0)
        for pair in range(cuts[piece], cuts[piece + 1]):
            for at in range(indptr[pair], indptr[pair + 1]):
                b = piece * batch + np.int64(targets[at])
                for k in range(num_heads):
                    weight = weights[k, at] * keep[slots[at], k] if keep.size else weights[k, at]
                    add_scaled(weight, values, pair, k * width, width, out, b)


@compiled(fastmath=FUSE)
def attend_backward(
    terms, exp_terms, factorisable_terms, keys, score, values, keep, weights, mean, grad_out,
    cuts, indptr, slots, targets, first, last, grad_terms, grad_keys, grad_score, grad_values, grad_logits,
):  # fmt: skip
    """Gradients from some pieces. What targets share is added up for each piece: grad_terms (pieces · B, K·F'), grad_score
    (pieces, K·F'), both still to be multiplied by w (grad_terms) and added up over pieces."""
    num_heads, batch = weights.shape[0], terms.shape[0]
    size, width, one = score.shape[1] // num_heads, values.shape[1] // num_heads, score.dtype.type(1)
    exp_key, slope, spread = np.empty_like(score), np.empty_like(score), np.empty_like(score)
    for piece in range(first, last):
        fill(grad_score, piece, 0)
        for b in range(batch):
            fill(grad_terms, piece * batch + b, 0)
        for pair in range(cuts[piece], cuts[piece + 1]):
            factorisable_key = exponentials(keys, pair, exp_key, 0)
            fill(grad_keys, pair, 0)
            fill(grad_values, pair, 0)
            for at in range(indptr[pair], indptr[pair + 1]):
                b = targets[at]
                for k in range(num_heads):
                    kept = keep[slots[at], k] if keep.size else one
                    gain = kept * dot(grad_out, b, values, pair, k * width, width)
                    of_logit = weights[k, at] * (gain - mean[b, k])
                    grad_logits[k, at] = of_logit
                    fill_part(spread, of_logit, k * size, size)
                    add_scaled(kept * weights[k, at], grad_out, b, k * width, width, grad_values, pair)
                if factorisable_key and factorisable_terms[b]:
                    multiplied_slopes(exp_terms, b, exp_key, slope)
                else:
                    added_slopes(terms, b, keys, pair, slope)
                add_hidden(spread, terms, b, keys, pair, slope, grad_score, piece)
                add_product(spread, slope, grad_keys, pair, grad_terms, piece * batch + np.int64(b))
            scale(score, grad_keys, pair)


@compiled()
def exponential_rows(values, out, factorisable):
    for row in range(values.shape[0]):
        factorisable[row] = exponentials(values, row, out, row)


@compiled(fastmath=FUSE, forceinline=True)
def exponentials(values, row, out, out_row):
    """exp of a row, and whether all of it is factorisable: so small that exp(a + b) is exp(a)·exp(b)."""
    i, o = np.uint64(row), np.uint64(out_row)
    limit, too_large = values.dtype.type(80), np.uint32(0)
    for n in range(values.shape[1]):
        out[o, np.uint64(n)] = exp(min(values[i, np.uint64(n)], limit))
    for n in range(values.shape[1]):
        too_large += np.uint32(abs(values[i, np.uint64(n)]) > limit)
    return too_large == 0


@compiled(fastmath=FUSE, forceinline=True)
def multiplied_slopes(exp_terms, b, exp_key, out):
    """ELU′(u + G) = min(exp(u + G), 1), from exp(u) and exp(G): pairs have many slots, and targets too."""
    i, o, one = np.uint64(b), np.uint64(0), out.dtype.type(1)
    for n in range(out.shape[1]):
        place = np.uint64(n)
        out[o, place] = min(exp_terms[i, place] * exp_key[o, place], one)


@compiled(fastmath=FUSE, forceinline=True)
def added_slopes(terms, b, keys, pair, out):
    """ELU′(u + G) = min(exp(u + G), 1), from the sum, whatever its terms are."""
    i, j, o, zero = np.uint64(b), np.uint64(pair), np.uint64(0), out.dtype.type(0)
    for n in range(out.shape[1]):
        place = np.uint64(n)
        out[o, place] = exp(min(terms[i, place] + keys[j, place], zero))


@compiled(fastmath=REORDER, forceinline=True)
def hidden_dot(terms, b, keys, pair, slope, score, first, size):
    """w · ELU(u + G) of one head. Below zero ELU is ELU′ - 1."""
    i, j, o, zero, one = np.uint64(b), np.uint64(pair), np.uint64(0), score.dtype.type(0), score.dtype.type(1)
    result = zero
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        result += score[o, place] * (max(terms[i, place] + keys[j, place], zero) + slope[o, place] - one)
    return result


@compiled(fastmath=FUSE, forceinline=True)
def add_hidden(factor, terms, b, keys, pair, slope, out, row):
    i, j, o, r = np.uint64(b), np.uint64(pair), np.uint64(0), np.uint64(row)
    zero, one = out.dtype.type(0), out.dtype.type(1)
    for n in range(out.shape[1]):
        place = np.uint64(n)
        out[r, place] += factor[o, place] * (max(terms[i, place] + keys[j, place], zero) + slope[o, place] - one)


@compiled(fastmath=FUSE, forceinline=True)
def add_product(factor, slope, out, row, other, other_row):
    i, j, o = np.uint64(row), np.uint64(other_row), np.uint64(0)
    for n in range(out.shape[1]):
        place = np.uint64(n)
        product = factor[o, place] * slope[o, place]
        out[i, place] += product
        other[j, place] += product


@compiled()
def slots_by_pair(index, mask, indptr, slots, targets):
    """The slots in use, grouped by the pair they hold, and their targets: a counting sort. `indptr` is zero everywhere."""
    for b in range(index.shape[0]):
        for s in range(index.shape[1]):
            if mask[b, s]:
                indptr[index[b, s] + 1] += 1
    for pair in range(indptr.size - 1):
        indptr[pair + 1] += indptr[pair]
    at = indptr.copy()
    for b in range(index.shape[0]):
        for s in range(index.shape[1]):
            if mask[b, s]:
                place = at[index[b, s]]
                slots[place], targets[place] = b * index.shape[1] + s, b
                at[index[b, s]] = place + 1


@compiled()
def sum_heads(grad_logits, slots, out):
    """out[slot] = Σ over heads, for the slots in use."""
    together = np.zeros(slots.size, out.dtype)
    for k in range(grad_logits.shape[0]):
        for at in range(slots.size):
            together[np.uint64(at)] += grad_logits[np.uint64(k), np.uint64(at)]
    for at in range(slots.size):
        out[slots[at]] = together[at]
