"""The numba functions of `nn.ops`, for CPUs.

Arrays come flat: (rows, K·F) instead of (rows, K, F), so that a loop over all heads is one vectorised loop. Sums may be
reordered within a row (fastmath), never across rows, so results do not depend on the number of threads.
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
def attend_rows(target_terms, keys, score, values, index, log_probability, mask, keep, out, weights):
    """Forward for some targets: out (B, K·F'') and the attention weights (B, S, K) that backward needs."""
    num_heads = weights.shape[2]
    size, width = score.size // num_heads, out.shape[1] // num_heads
    zero = score.dtype.type(0)
    terms = np.empty(score.size, score.dtype)
    for b in range(index.shape[0]):
        for s in range(index.shape[1]):
            if not mask[b, s]:
                continue
            hidden_terms(target_terms[b], keys[index[b, s]], score, terms)
            for k in range(num_heads):
                weights[b, s, k] = total(terms[k * size : (k + 1) * size]) + log_probability[b, s]
        softmax_rows(weights[b], mask[b])
        fill(out[b], zero)
        for s in range(index.shape[1]):
            if mask[b, s]:
                for k in range(num_heads):
                    weight = weights[b, s, k] * keep[b, s, k] if keep.size else weights[b, s, k]
                    head = slice(k * width, (k + 1) * width)
                    add_scaled(out[b][head], weight, values[index[b, s]][head])


@compiled(fastmath=REORDER)
def total(values):
    result = values.dtype.type(0)
    for k in range(values.size):
        result += values[k]
    return result


@compiled(fastmath=REORDER)
def dot(left, right):
    result = left.dtype.type(0)
    for k in range(left.size):
        result += left[k] * right[k]
    return result


@compiled(fastmath=REORDER)
def add_scaled(out, factor, values):
    for k in range(out.size):
        out[k] += factor * values[k]


@compiled()
def fill(out, value):
    for k in range(out.size):
        out[k] = value


@compiled(fastmath=REORDER)
def hidden_terms(target_term, key, score, terms):
    """w · ELU(u + G), term by term."""
    zero, one = score.dtype.type(0), score.dtype.type(1)
    for j in range(score.size):
        x = target_term[j] + key[j]
        terms[j] = score[j] * (max(x, zero) + exp_below_zero(min(x, zero)) - one)


@compiled(fastmath=REORDER)
def softmax_rows(weights, mask):
    """Softmax over slots for each head; zeros where masked."""
    for k in range(weights.shape[1]):
        top = weights.dtype.type(-np.inf)
        for s in range(weights.shape[0]):
            if mask[s]:
                top = max(top, weights[s, k])
        total = weights.dtype.type(0)
        for s in range(weights.shape[0]):
            weights[s, k] = exp_below_zero(weights[s, k] - top) if mask[s] else weights.dtype.type(0)
            total += weights[s, k]
        for s in range(weights.shape[0]):
            if mask[s]:
                weights[s, k] /= total


@compiled(fastmath=REORDER)
def attend_backward_targets(
    target_terms, keys, score, values, index, mask, keep, weights, out, grad_out,
    grad_target_terms, grad_score, grad_log_probability, grad_logits,
):  # fmt: skip
    """Gradients of what belongs to a target; `grad_score` holds each target's share, to be added up."""
    num_heads = weights.shape[2]
    size, width = score.size // num_heads, out.shape[1] // num_heads
    zero, one = score.dtype.type(0), score.dtype.type(1)
    spread = np.empty(score.size, score.dtype)
    mean = np.empty(num_heads, score.dtype)
    for b in range(index.shape[0]):
        fill(grad_target_terms[b], zero)
        fill(grad_score[b], zero)
        fill(grad_log_probability[b], zero)
        for k in range(num_heads):
            head = slice(k * width, (k + 1) * width)
            mean[k] = dot(grad_out[b][head], out[b][head])
        for s in range(index.shape[1]):
            if not mask[b, s]:
                fill(grad_logits[b, s], zero)
                continue
            value, key = values[index[b, s]], keys[index[b, s]]
            for k in range(num_heads):
                head = slice(k * width, (k + 1) * width)
                gain = dot(grad_out[b][head], value[head])
                if keep.size:
                    gain *= keep[b, s, k]
                grad_logits[b, s, k] = weights[b, s, k] * (gain - mean[k])
                grad_log_probability[b, s] += grad_logits[b, s, k]
                fill(spread[k * size : (k + 1) * size], grad_logits[b, s, k])
            term, of_term, of_score = target_terms[b], grad_target_terms[b], grad_score[b]
            for j in range(score.size):
                x = term[j] + key[j]
                slope = exp_below_zero(min(x, zero))  # ELU′ = 1 above zero, as exp(0) is
                of_term[j] += spread[j] * score[j] * slope
                of_score[j] += spread[j] * (max(x, zero) + slope - one)


@compiled(fastmath=REORDER)
def attend_backward_pairs(
    target_terms, keys, score, indptr, slots, keep, weights, grad_out, grad_logits, first, grad_keys, grad_values
):
    """Gradients of the pairs first, first + 1 …: each adds up the slots that hold it, in order."""
    num_heads, num_slots = weights.shape[2], weights.shape[1]
    size, width = score.size // num_heads, grad_out.shape[1] // num_heads
    zero = score.dtype.type(0)
    spread = np.empty(score.size, score.dtype)
    for row in range(grad_keys.shape[0]):
        of_key, of_value, key = grad_keys[row], grad_values[row], keys[first + row]
        fill(of_key, zero)
        fill(of_value, zero)
        for at in range(indptr[first + row], indptr[first + row + 1]):
            b, s = slots[at] // num_slots, slots[at] % num_slots
            for k in range(num_heads):
                fill(spread[k * size : (k + 1) * size], grad_logits[b, s, k])
                weight = weights[b, s, k] * keep[b, s, k] if keep.size else weights[b, s, k]
                head = slice(k * width, (k + 1) * width)
                add_scaled(of_value[head], weight, grad_out[b][head])
            term = target_terms[b]
            for j in range(score.size):
                of_key[j] += spread[j] * exp_below_zero(min(term[j] + key[j], zero))
        for j in range(score.size):
            of_key[j] *= score[j]


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
