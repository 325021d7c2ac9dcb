"""The numba functions that apply noise as they make it: rows by number and unsigned places, as in `kernels`."""

import numpy as np

from gatas.nn.ops.kernels import FUSE, REORDER, add_scaled, exp, fill
from gatas.sampling.kernels import U32, threefry
from gatas.transitions.kernels import compiled


@compiled(forceinline=True)
def fill_words(key0, key1, first, second, words):
    """Random words for the row named (first, second): two from each call, and from each word's halves two columns' bits."""
    own0, own1 = threefry(key0, key1, U32(first), U32(second))
    for group in range(words.size // 2):
        place = np.uint64(group)
        words[2 * place], words[2 * place + np.uint64(1)] = threefry(own0, own1, U32(group), U32(0))


@compiled(forceinline=True)
def words_for(width):
    """Room for a row's words; seen as 16-bit numbers they are its columns' bits, the low half first."""
    return np.empty((width + 3) // 4 * 2, np.uint32)


BLOCK = 128
"""Rows whose noise is made side by side where rows are short."""


@compiled()
def fill_keep(key0, key1, first, second, threshold, scale, out):
    """out[r, c] = scale where the noise of element (first[r], second[r], c) reaches the threshold, else 0."""
    own0, own1 = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    words = np.empty((2, BLOCK), np.uint32)
    for start in range(0, out.shape[0], BLOCK):
        size = min(BLOCK, out.shape[0] - start)
        for n in range(size):
            row, place = np.uint64(start) + np.uint64(n), np.uint64(n)
            own0[place], own1[place] = threefry(key0, key1, U32(first[row]), U32(second[row]))
        for group in range((out.shape[1] + 3) // 4):
            for n in range(size):
                place = np.uint64(n)
                words[0, place], words[1, place] = threefry(own0[place], own1[place], U32(group), U32(0))
            for column in range(4 * group, min(4 * group + 4, out.shape[1])):
                keep_column(words, column % 4, threshold, scale, size, out, start, column)


@compiled(forceinline=True)
def keep_column(words, quarter, threshold, scale, size, out, start, column):
    """One column for a block of rows; each word has the bits of two, the low half first."""
    which, shift, zero = np.uint64(quarter // 2), U32(16 * (quarter % 2)), np.float32(0)
    for n in range(size):
        bits = (words[which, np.uint64(n)] >> shift) & U32(0xFFFF)
        out[np.uint64(start) + np.uint64(n), np.uint64(column)] = scale if bits >= threshold else zero


@compiled(fastmath=FUSE)
def elu_dropout(key0, key1, first, second, threshold, scale, values, start, stop, out):
    """out = keep · ELU(values), for some rows; no noise where the threshold is 0."""
    zero, one = values.dtype.type(0), values.dtype.type(1)
    words = words_for(values.shape[1])
    bits = words.view(np.uint16)
    for row in range(start, stop):
        if threshold > 0:
            fill_words(key0, key1, first[row], second[row], words)
        i = np.uint64(row)
        for n in range(values.shape[1]):
            place = np.uint64(n)
            x = values[i, place]
            out[i, place] = max(x, zero) + exp(min(x, zero)) - one
        if threshold > 0:
            for n in range(values.shape[1]):
                place = np.uint64(n)
                out[i, place] *= scale if bits[place] >= threshold else zero


@compiled(fastmath=FUSE)
def elu_dropout_backward(key0, key1, first, second, threshold, scale, values, start, stop, grad_values, grad):
    """From what came out: ELU′ = 1 above zero, and ELU + 1 below."""
    zero, one, back = values.dtype.type(0), values.dtype.type(1), 1 / scale
    words = words_for(values.shape[1])
    words.fill(U32(0xFFFFFFFF))
    bits = words.view(np.uint16)
    for row in range(start, stop):
        if threshold > 0:
            fill_words(key0, key1, first[row], second[row], words)
        i = np.uint64(row)
        for n in range(values.shape[1]):
            place = np.uint64(n)
            kept = scale if bits[place] >= threshold else zero
            grad[i, place] = kept * grad_values[i, place] * min(values[i, place] * back + one, one)


@compiled()
def noisy_linear(
    key0, key1, threshold, scale, features, nodes, norm_weight, norm_bias, epsilon, weight, bias, start, stop, out,
    columns, counts, spread,
):  # fmt: skip
    """out[r] = bias + Σ over the columns that are kept of scale · LayerNorm(features[node])[c] · weight[c], for some rows.

    Which columns these are, how many, and each row's mean and 1 / deviation are kept for the backward pass.
    """
    words = words_for(features.shape[1])
    bits = words.view(np.uint16)
    for row in range(start, stop):
        node = nodes[row]
        mean, inverse = moments(features, node, epsilon)
        spread[row, 0], spread[row, 1] = mean, inverse
        fill_words(key0, key1, node, 0, words)
        counts[row] = kept_columns(bits, threshold, columns, row)
        for h in range(bias.size):
            out[row, h] = bias[h]
        for at in range(counts[row]):
            c = columns[row, at]
            normal = (features[node, c] - mean) * inverse
            add_scaled(scale * (normal * norm_weight[c] + norm_bias[c]), weight, c, 0, bias.size, out, row)


@compiled()
def noisy_linear_backward(features, nodes, grad_out, columns, counts, spread, cuts, first, last, out):
    """Σ of keep · grad_out and, beside it, of keep · normal · grad_out over the rows of some pieces: (pieces · F, 2·H)."""
    width = features.shape[1]
    for piece in range(first, last):
        for c in range(piece * width, (piece + 1) * width):
            fill(out, c, 0)
        for row in range(cuts[piece], cuts[piece + 1]):
            node = nodes[row]
            mean, inverse = spread[row, 0], spread[row, 1]
            for at in range(counts[row]):
                kept = np.int64(columns[row, at])
                add_twice((features[node, kept] - mean) * inverse, grad_out, row, out, piece * width + kept)


@compiled(fastmath=FUSE, forceinline=True)
def add_twice(factor, values, row, out, out_row):
    """Add a row to the first half of another, and a multiple of it to the second."""
    i, o, half = np.uint64(row), np.uint64(out_row), np.uint64(values.shape[1])
    for n in range(values.shape[1]):
        place = np.uint64(n)
        out[o, place] += values[i, place]
        out[o, half + place] += factor * values[i, place]


@compiled(fastmath=REORDER, forceinline=True)
def moments(values, row, epsilon):
    """Mean and 1 / deviation of a row."""
    i, size = np.uint64(row), values.shape[1]
    together = squares = values.dtype.type(0)
    for n in range(size):
        together += values[i, np.uint64(n)]
    mean = values.dtype.type(together / size)
    for n in range(size):
        squares += (values[i, np.uint64(n)] - mean) ** 2
    return mean, values.dtype.type(1 / np.sqrt(squares / size + epsilon))


@compiled(forceinline=True)
def kept_columns(bits, threshold, columns, row):
    """Fill in which columns of a row are kept; how many there are."""
    i, count = np.uint64(row), np.uint64(0)
    for c in range(columns.shape[1]):
        columns[i, count] = c
        count += np.uint64(bits[np.uint64(c)] >= threshold)
    return count
