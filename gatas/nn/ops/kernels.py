"""The numba functions of `nn.ops`, for CPUs.

Arrays come flat: (rows, K·F) instead of (rows, K, F), so that a loop over all heads is one vectorised loop. Sums may be
reordered within a row (fastmath), never across rows, so results do not depend on the number of threads. Threads share out
heads, and what they write lies apart: heads come first in (K, B, S), or a cache line would belong to several of them.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gatas.sampling.kernels import U32, threefry
from gatas.transitions.kernels import compiled

FUSE = {"contract", "nsz"}
REORDER = FUSE | {"reassoc"}
"""For sums only: elsewhere an element's value would depend on which piece of a row it is computed with."""


@compiled()
def fill_keep(key0, key1, first, second, threshold, scale, out):
    """out[r, c] = scale where the noise of element (first[r], second[r], c) reaches the threshold, else 0."""
    num_rows, width = out.shape
    pairs = (width + 1) // 2
    even, odd = np.empty(pairs, np.uint32), np.empty(pairs, np.uint32)
    for row in range(num_rows):
        own0, own1 = threefry(key0, key1, U32(first[row]), U32(second[row]))
        for pair in range(pairs):
            even[pair], odd[pair] = threefry(own0, own1, U32(pair), U32(0))
        for pair in range(pairs):
            out[row, 2 * pair] = scale if even[pair] >= threshold else np.float32(0)
        for pair in range(width // 2):
            out[row, 2 * pair + 1] = scale if odd[pair] >= threshold else np.float32(0)


@intrinsic
def as_float(typing_context, bits):
    """The float32 that has these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


def exp(x):
    """exp(x) for x ≤ 88. In float32 by Cephes' polynomial, which LLVM vectorises, to 2 units in the last place."""


@overload(exp)
def _exp(x):
    if x != types.float32:
        return lambda x: np.exp(x)

    def single(x):
        x = max(x, np.float32(-87.0))
        power = np.int32(x * np.float32(1.44269504088896341) + np.float32(127.5))  # positive, so cut off means rounded down
        whole = np.float32(power) - np.float32(127.0)
        r = x - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
        y = np.float32(1.9875691500e-4)
        y = y * r + np.float32(1.3981999507e-3)
        y = y * r + np.float32(8.3334519073e-3)
        y = y * r + np.float32(4.1665795894e-2)
        y = y * r + np.float32(1.6666665459e-1)
        y = y * r + np.float32(5.0000001201e-1)
        y = y * (r * r) + r + np.float32(1.0)
        return y * as_float(np.int32(power << np.int32(23)))

    return single


@compiled(fastmath=FUSE)
def attend_heads(
    target_terms, keys, score, values, log_probability, keep, indptr, slots, targets, first_head, last_head, out, weights
):
    """Forward for some heads: their part of out (B, K·F'') and of the attention weights (K, B·S) that backward needs.

    Pairs are taken one after another, each with the slots that hold it, so that a key and a value are read once. Weights
    are in that order too: in the order of targets each of them would be a cache miss.
    """
    num_heads, batch = weights.shape[0], out.shape[0]
    size, width = score.shape[1] // num_heads, out.shape[1] // num_heads
    first, span = first_head * size, (last_head - first_head) * size
    exp_terms, tame_terms = np.empty_like(target_terms), np.empty(batch, np.bool_)
    exp_key, slope = np.empty_like(score), np.empty_like(score)
    for b in range(batch):
        tame_terms[b] = exponentials(target_terms, b, first, span, exp_terms, b)
        fill(out, b, first_head * width, (last_head - first_head) * width, 0)
    for pair in range(keys.shape[0]):
        tame_key = exponentials(keys, pair, first, span, exp_key, 0)
        for at in range(indptr[pair], indptr[pair + 1]):
            b, slot = targets[at], slots[at]
            if tame_key and tame_terms[b]:
                multiplied_slopes(exp_terms, b, exp_key, first, span, slope)
            else:
                added_slopes(target_terms, b, keys, pair, first, span, slope)
            for k in range(first_head, last_head):
                logit = hidden_dot(target_terms, b, keys, pair, slope, score, k * size, size)
                weights[k, at] = logit + log_probability[slot]
    for k in range(first_head, last_head):
        softmax(weights, k, targets, batch)
    for pair in range(keys.shape[0]):
        for at in range(indptr[pair], indptr[pair + 1]):
            b, slot = targets[at], slots[at]
            for k in range(first_head, last_head):
                weight = weights[k, at] * keep[slot, k] if keep.size else weights[k, at]
                add_scaled(weight, values, pair, k * width, width, out, b)


@compiled(fastmath=FUSE)
def softmax(weights, k, targets, batch):
    """From logits to weights, for one head and every target."""
    top, together = np.full(batch, -np.inf, weights.dtype), np.zeros(batch, weights.dtype)
    row = np.uint64(k)
    for at in range(targets.size):
        b = targets[at]
        top[b] = max(top[b], weights[row, np.uint64(at)])
    for at in range(targets.size):
        weights[row, np.uint64(at)] -= top[targets[at]]
    for at in range(targets.size):
        weights[row, np.uint64(at)] = exp(weights[row, np.uint64(at)])
    for at in range(targets.size):
        together[targets[at]] += weights[row, np.uint64(at)]
    for b in range(batch):
        together[b] = 1 / together[b] if together[b] > 0 else together[b]
    for at in range(targets.size):
        weights[row, np.uint64(at)] *= together[targets[at]]


@compiled(fastmath=FUSE)
def attend_backward_heads(
    target_terms, keys, score, values, keep, indptr, slots, targets, first_head, last_head, out, weights, grad_out,
    grad_target_terms, grad_keys, grad_score, grad_values, grad_logits,
):  # fmt: skip
    """Gradients for some heads, pair by pair. Everything is added up in the same order for any number of threads."""
    num_heads, batch = weights.shape[0], out.shape[0]
    size, width = score.shape[1] // num_heads, out.shape[1] // num_heads
    first, span = first_head * size, (last_head - first_head) * size
    one = score.dtype.type(1)
    exp_terms, tame_terms = np.empty_like(target_terms), np.empty(batch, np.bool_)
    exp_key, slope, spread = np.empty_like(score), np.empty_like(score), np.empty_like(score)
    mean = np.empty((batch, num_heads), score.dtype)
    fill(grad_score, 0, first, span, 0)
    for b in range(batch):
        tame_terms[b] = exponentials(target_terms, b, first, span, exp_terms, b)
        fill(grad_target_terms, b, first, span, 0)
        for k in range(first_head, last_head):
            mean[b, k] = dot(grad_out, b, out, b, k * width, width)
    for pair in range(keys.shape[0]):
        tame_key = exponentials(keys, pair, first, span, exp_key, 0)
        fill(grad_keys, pair, first, span, 0)
        fill(grad_values, pair, first_head * width, (last_head - first_head) * width, 0)
        for at in range(indptr[pair], indptr[pair + 1]):
            b, slot = targets[at], slots[at]
            for k in range(first_head, last_head):
                kept = keep[slot, k] if keep.size else one
                gain = kept * dot(grad_out, b, values, pair, k * width, width)
                of_logit = weights[k, at] * (gain - mean[b, k])
                grad_logits[k, at] = of_logit
                fill(spread, 0, k * size, size, of_logit)
                add_scaled(kept * weights[k, at], grad_out, b, k * width, width, grad_values, pair)
            if tame_key and tame_terms[b]:
                multiplied_slopes(exp_terms, b, exp_key, first, span, slope)
            else:
                added_slopes(target_terms, b, keys, pair, first, span, slope)
            add_hidden(spread, target_terms, b, keys, pair, slope, first, span, grad_score)
            add_product(spread, slope, first, span, grad_keys, pair, grad_target_terms, b)
        scale(score, first, span, grad_keys, pair)
    for b in range(batch):
        scale(score, first, span, grad_target_terms, b)


# Parts of rows. A matrix comes with the number of its row: a row of its own would be counted in and out at each call.
# Places are unsigned: a signed one is checked for being negative, and the loop not vectorised.


@compiled(fastmath=FUSE, forceinline=True)
def exponentials(values, row, first, size, out, out_row):
    """exp of a part, and whether all of it is tame: so small that exp(a + b) is exp(a)·exp(b)."""
    i, o = np.uint64(row), np.uint64(out_row)
    limit, wild = values.dtype.type(80), np.uint32(0)
    for j in range(size):
        place = np.uint64(first) + np.uint64(j)
        out[o, place] = exp(min(values[i, place], limit))
    for j in range(size):
        wild += np.uint32(abs(values[i, np.uint64(first) + np.uint64(j)]) > limit)
    return wild == 0


@compiled(fastmath=FUSE, forceinline=True)
def multiplied_slopes(exp_terms, b, exp_key, first, size, out):
    """ELU′(u + G) = min(exp(u + G), 1), from exp(u) and exp(G): pairs have many slots, and targets too."""
    i, zero, one = np.uint64(b), np.uint64(0), out.dtype.type(1)
    for j in range(size):
        place = np.uint64(first) + np.uint64(j)
        out[zero, place] = min(exp_terms[i, place] * exp_key[zero, place], one)


@compiled(fastmath=FUSE, forceinline=True)
def added_slopes(terms, b, keys, pair, first, size, out):
    """The same from u + G, whatever they are."""
    i, j, zero = np.uint64(b), np.uint64(pair), out.dtype.type(0)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        out[np.uint64(0), place] = exp(min(terms[i, place] + keys[j, place], zero))


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
def add_hidden(factor, terms, b, keys, pair, slope, first, size, out):
    i, j, o, zero, one = np.uint64(b), np.uint64(pair), np.uint64(0), out.dtype.type(0), out.dtype.type(1)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        out[o, place] += factor[o, place] * (max(terms[i, place] + keys[j, place], zero) + slope[o, place] - one)


@compiled(fastmath=FUSE, forceinline=True)
def add_product(factor, slope, first, size, out, row, other, other_row):
    i, j, o = np.uint64(row), np.uint64(other_row), np.uint64(0)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        product = factor[o, place] * slope[o, place]
        out[i, place] += product
        other[j, place] += product


@compiled(forceinline=True)
def scale(factors, first, size, out, row):
    i = np.uint64(row)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        out[i, place] *= factors[np.uint64(0), place]


@compiled(fastmath=REORDER, forceinline=True)
def dot(left, left_row, right, right_row, first, size):
    i, j, result = np.uint64(left_row), np.uint64(right_row), left.dtype.type(0)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        result += left[i, place] * right[j, place]
    return result


@compiled(fastmath=FUSE, forceinline=True)
def add_scaled(factor, values, row, first, size, out, out_row):
    i, o = np.uint64(row), np.uint64(out_row)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        out[o, place] += factor * values[i, place]


@compiled(forceinline=True)
def fill(out, row, first, size, value):
    for n in range(size):
        out[np.uint64(row), np.uint64(first) + np.uint64(n)] = value


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
