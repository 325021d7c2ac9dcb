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

REORDER = {"reassoc", "contract", "nsz"}


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


def exp_below_zero(x):
    """exp(x) for x ≤ 0. In float32 by Cephes' polynomial, which LLVM vectorises, to 2 units in the last place."""


@overload(exp_below_zero)
def _exp_below_zero(x):
    if x != types.float32:
        return lambda x: np.exp(x)

    def single(x):
        x = max(x, np.float32(-87.0))
        power = np.int32(x * np.float32(1.44269504088896341) - np.float32(0.5))  # rounds to the nearest, as x ≤ 0
        whole = np.float32(power)
        r = x - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
        y = np.float32(1.9875691500e-4)
        y = y * r + np.float32(1.3981999507e-3)
        y = y * r + np.float32(8.3334519073e-3)
        y = y * r + np.float32(4.1665795894e-2)
        y = y * r + np.float32(1.6666665459e-1)
        y = y * r + np.float32(5.0000001201e-1)
        y = y * (r * r) + r + np.float32(1.0)
        return y * as_float(np.int32((power + np.int32(127)) << np.int32(23)))

    return single


@compiled(fastmath=REORDER)
def attend_heads(
    target_terms, keys, score, values, log_probability, mask, keep, indptr, slots, first_head, last_head, out, weights
):
    """Forward for some heads: their part of out (B, K·F'') and of the attention weights (K, B, S) that backward needs.

    Pairs are taken one after another, each with the slots that hold it, so that a key and a value are read once.
    """
    num_heads, _, num_slots = weights.shape
    size, width = score.size // num_heads, out.shape[1] // num_heads
    terms = np.empty(score.size, score.dtype)
    for pair in range(keys.shape[0]):
        for at in range(indptr[pair], indptr[pair + 1]):
            b, s = slots[at] // num_slots, slots[at] % num_slots
            hidden_terms(target_terms[b], keys[pair], score, terms, first_head * size, last_head * size)
            for k in range(first_head, last_head):
                weights[k, b, s] = total(terms, k * size, size) + log_probability[b, s]
    for b in range(out.shape[0]):
        for k in range(first_head, last_head):
            softmax(weights[k, b], mask[b])
        fill(out[b], first_head * width, (last_head - first_head) * width, 0)
    for pair in range(keys.shape[0]):
        for at in range(indptr[pair], indptr[pair + 1]):
            b, s = slots[at] // num_slots, slots[at] % num_slots
            for k in range(first_head, last_head):
                weight = weights[k, b, s] * keep[b, s, k] if keep.size else weights[k, b, s]
                add_scaled(out[b], weight, values[pair], k * width, width)


@compiled(fastmath=REORDER)
def hidden_terms(target_term, key, score, terms, first, last):
    """w · ELU(u + G), term by term."""
    zero, one = score.dtype.type(0), score.dtype.type(1)
    for j in range(last - first):
        place = np.uint64(first) + np.uint64(j)
        x = target_term[place] + key[place]
        terms[place] = score[place] * (max(x, zero) + exp_below_zero(min(x, zero)) - one)


@compiled(fastmath=REORDER)
def softmax(weights, mask):
    """Softmax of one target's logits for one head; zeros where masked."""
    top, zero = weights.dtype.type(-np.inf), weights.dtype.type(0)
    for s in range(weights.size):
        top = max(top, weights[s]) if mask[s] else top
    together = zero
    for s in range(weights.size):
        weights[s] = exp_below_zero(weights[s] - top) if mask[s] else zero
        together += weights[s]
    scale = 1 / together if together > 0 else together
    for s in range(weights.size):
        weights[s] *= scale


@compiled(fastmath=REORDER)
def attend_backward_heads(
    target_terms, keys, score, values, keep, indptr, slots, first_head, last_head, out, weights, grad_out,
    grad_target_terms, grad_keys, grad_score, grad_values, grad_logits,
):  # fmt: skip
    """Gradients for some heads, pair by pair. Everything is added up in the same order for any number of threads."""
    num_heads, _, num_slots = weights.shape
    size, width = score.size // num_heads, out.shape[1] // num_heads
    first, span = first_head * size, (last_head - first_head) * size
    zero, one = score.dtype.type(0), score.dtype.type(1)
    spread = np.empty(score.size, score.dtype)
    mean = np.empty((out.shape[0], num_heads), score.dtype)
    fill(grad_score, first, span, 0)
    for b in range(out.shape[0]):
        fill(grad_target_terms[b], first, span, 0)
        for k in range(first_head, last_head):
            mean[b, k] = dot(grad_out[b], out[b], k * width, width)
    for pair in range(keys.shape[0]):
        key, value, of_key, of_value = keys[pair], values[pair], grad_keys[pair], grad_values[pair]
        fill(of_key, first, span, 0)
        fill(of_value, first_head * width, (last_head - first_head) * width, 0)
        for at in range(indptr[pair], indptr[pair + 1]):
            b, s = slots[at] // num_slots, slots[at] % num_slots
            term, of_term, gradient = target_terms[b], grad_target_terms[b], grad_out[b]
            for k in range(first_head, last_head):
                kept = keep[b, s, k] if keep.size else one
                gain = kept * dot(gradient, value, k * width, width)
                slope = weights[k, b, s] * (gain - mean[b, k])
                grad_logits[k, b, s] = slope
                fill(spread, k * size, size, slope)
                add_scaled(of_value, kept * weights[k, b, s], gradient, k * width, width)
            for j in range(span):
                place = np.uint64(first) + np.uint64(j)
                x = term[place] + key[place]
                slope = exp_below_zero(min(x, zero))  # ELU′ = 1 above zero, as exp(0) is
                step = spread[place] * slope
                of_key[place] += step
                of_term[place] += step
                grad_score[place] += spread[place] * (max(x, zero) + slope - one)
        scale(of_key, score, first, span)
    for b in range(out.shape[0]):
        scale(grad_target_terms[b], score, first, span)


@compiled()
def scale(out, factors, first, size):
    for k in range(size):
        place = np.uint64(first) + np.uint64(k)
        out[place] *= factors[place]


@compiled(fastmath=REORDER)
def total(values, first, size):
    """Σ of a part. Parts are walked with unsigned places: a signed one is checked for being negative, and not vectorised."""
    result = values.dtype.type(0)
    for k in range(size):
        result += values[np.uint64(first) + np.uint64(k)]
    return result


@compiled(fastmath=REORDER)
def dot(left, right, first, size):
    result = left.dtype.type(0)
    for k in range(size):
        place = np.uint64(first) + np.uint64(k)
        result += left[place] * right[place]
    return result


@compiled(fastmath=REORDER)
def add_scaled(out, factor, values, first, size):
    for k in range(size):
        place = np.uint64(first) + np.uint64(k)
        out[place] += factor * values[place]


@compiled()
def fill(out, first, size, value):
    for k in range(size):
        out[np.uint64(first) + np.uint64(k)] = value


@compiled()
def slots_by_pair(index, mask, indptr, slots):
    """The slots in use, grouped by the pair they hold: a counting sort. `indptr` starts at zero everywhere."""
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
                slots[at[index[b, s]]] = b * index.shape[1] + s
                at[index[b, s]] += 1
