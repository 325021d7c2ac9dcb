"""The numba functions of `nn.ops`, for CPUs.

Arrays come flat: (rows, K·F) instead of (rows, K, F), so that a loop over all heads is one vectorised loop. Sums may be
reordered within a row (fastmath), never across rows. Threads share out pieces of pairs, always the same ones, so results
do not depend on the number of threads.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gatas.transitions.kernels import compiled

FUSE = {"contract", "nsz"}
REORDER = FUSE | {"reassoc"}
"""For sums only: elsewhere an element's value would depend on which piece of a row it is computed with."""


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
def attend_logits(terms, exp_terms, tame_terms, keys, score, log_probability, cuts, indptr, slots, targets, first, last, out):
    """w · ELU(u + G) + ln P into out (K, B·S), for some pieces.

    Pairs are taken one after another, each with the slots that hold it, so that a key and a value are read once. What is
    written for a slot is in that order too: in the order of targets each number would be a cache miss.
    """
    num_heads, size = out.shape[0], score.shape[1] // out.shape[0]
    exp_key, slope = np.empty_like(score), np.empty_like(score)
    for pair in range(cuts[first], cuts[last]):
        tame_key = exponentials(keys, pair, exp_key, 0)
        for at in range(indptr[pair], indptr[pair + 1]):
            b = targets[at]
            if tame_key and tame_terms[b]:
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
    terms, exp_terms, tame_terms, keys, score, values, keep, weights, mean, grad_out, cuts, indptr, slots, targets, first, last,
    grad_terms, grad_keys, grad_score, grad_values, grad_logits,
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
            tame_key = exponentials(keys, pair, exp_key, 0)
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
                if tame_key and tame_terms[b]:
                    multiplied_slopes(exp_terms, b, exp_key, slope)
                else:
                    added_slopes(terms, b, keys, pair, slope)
                add_hidden(spread, terms, b, keys, pair, slope, grad_score, piece)
                add_product(spread, slope, grad_keys, pair, grad_terms, piece * batch + np.int64(b))
            scale(score, grad_keys, pair)


@compiled()
def exponential_rows(values, out, tame):
    for row in range(values.shape[0]):
        tame[row] = exponentials(values, row, out, row)


# Rows and parts of them. A matrix comes with the number of its row: a row of its own would be counted in and out at each
# call. Places are unsigned: a signed one is checked for being negative, and the loop not vectorised.


@compiled(fastmath=FUSE, forceinline=True)
def exponentials(values, row, out, out_row):
    """exp of a row, and whether all of it is tame: so small that exp(a + b) is exp(a)·exp(b)."""
    i, o = np.uint64(row), np.uint64(out_row)
    limit, wild = values.dtype.type(80), np.uint32(0)
    for n in range(values.shape[1]):
        out[o, np.uint64(n)] = exp(min(values[i, np.uint64(n)], limit))
    for n in range(values.shape[1]):
        wild += np.uint32(abs(values[i, np.uint64(n)]) > limit)
    return wild == 0


@compiled(fastmath=FUSE, forceinline=True)
def multiplied_slopes(exp_terms, b, exp_key, out):
    """ELU′(u + G) = min(exp(u + G), 1), from exp(u) and exp(G): pairs have many slots, and targets too."""
    i, o, one = np.uint64(b), np.uint64(0), out.dtype.type(1)
    for n in range(out.shape[1]):
        place = np.uint64(n)
        out[o, place] = min(exp_terms[i, place] * exp_key[o, place], one)


@compiled(fastmath=FUSE, forceinline=True)
def added_slopes(terms, b, keys, pair, out):
    """The same from u + G, whatever they are."""
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


@compiled(forceinline=True)
def scale(factors, out, row):
    i = np.uint64(row)
    for n in range(out.shape[1]):
        out[i, np.uint64(n)] *= factors[np.uint64(0), np.uint64(n)]


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
def fill(out, row, value):
    for n in range(out.shape[1]):
        out[np.uint64(row), np.uint64(n)] = value


@compiled(forceinline=True)
def fill_part(out, value, first, size):
    for n in range(size):
        out[np.uint64(0), np.uint64(first) + np.uint64(n)] = value


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
