"""The numba functions that apply noise as they make it: rows by number and unsigned places, as in `kernels`."""

import numpy as np

from gatas.nn.ops.kernels import FUSE, REORDER, add_scaled, exp, fill
from gatas.sampling.kernels import U32, threefry
from gatas.transitions.kernels import compiled


@compiled(forceinline=True)
def fill_words(key0, key1, first, second, words):
    """One random word for each column of the row named (first, second); `words` has an even number of them."""
    own0, own1 = threefry(key0, key1, U32(first), U32(second))
    for pair in range(words.size // 2):
        place = np.uint64(pair)
        words[2 * place], words[2 * place + np.uint64(1)] = threefry(own0, own1, U32(pair), U32(0))


@compiled(fastmath=FUSE)
def elu_dropout(key0, key1, first, second, threshold, scale, values, start, stop, out):
    """out = keep · ELU(values), for some rows; no noise where the threshold is 0."""
    zero, one = values.dtype.type(0), values.dtype.type(1)
    words = np.empty(values.shape[1] + values.shape[1] % 2, np.uint32)
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
                out[i, place] *= scale if words[place] >= threshold else zero


@compiled(fastmath=FUSE)
def elu_dropout_backward(key0, key1, first, second, threshold, scale, values, start, stop, grad_values, grad):
    """From what came out: ELU′ = 1 above zero, and ELU + 1 below."""
    zero, one, back = values.dtype.type(0), values.dtype.type(1), 1 / scale
    words = np.full(values.shape[1] + values.shape[1] % 2, np.uint32(0xFFFFFFFF), np.uint32)
    for row in range(start, stop):
        if threshold > 0:
            fill_words(key0, key1, first[row], second[row], words)
        i = np.uint64(row)
        for n in range(values.shape[1]):
            place = np.uint64(n)
            kept = scale if words[place] >= threshold else zero
            grad[i, place] = kept * grad_values[i, place] * min(values[i, place] * back + one, one)


@compiled()
def noisy_linear(
    key0, key1, threshold, scale, features, nodes, norm_weight, norm_bias, epsilon, weight, bias, start, stop, out
):  # fmt: skip
    """out[r] = bias + Σ over the columns that are kept of scale · LayerNorm(features[node])[c] · weight[c], for some rows."""
    width = features.shape[1]
    words, columns = np.empty(width + width % 2, np.uint32), np.empty(width, np.uint32)
    for row in range(start, stop):
        node = nodes[row]
        mean, inverse = moments(features, node, epsilon)
        fill_words(key0, key1, node, 0, words)
        count = kept_columns(words, threshold, width, columns)
        for h in range(bias.size):
            out[row, h] = bias[h]
        for at in range(count):
            c = columns[at]
            normal = (features[node, c] - mean) * inverse
            add_scaled(scale * (normal * norm_weight[c] + norm_bias[c]), weight, c, 0, bias.size, out, row)


@compiled()
def noisy_linear_backward(key0, key1, threshold, features, nodes, epsilon, grad_out, cuts, first, last, out):
    """Σ of keep · grad_out and, beside it, of keep · normal · grad_out over the rows of some pieces: (pieces · F, 2·H)."""
    width = features.shape[1]
    words, columns = np.empty(width + width % 2, np.uint32), np.empty(width, np.uint32)
    for piece in range(first, last):
        for c in range(piece * width, (piece + 1) * width):
            fill(out, c, 0)
        for row in range(cuts[piece], cuts[piece + 1]):
            node = nodes[row]
            mean, inverse = moments(features, node, epsilon)
            fill_words(key0, key1, node, 0, words)
            for at in range(kept_columns(words, threshold, width, columns)):
                c = columns[at]
                add_twice((features[node, c] - mean) * inverse, grad_out, row, out, piece * width + np.int64(c))


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
def kept_columns(words, threshold, width, columns):
    """Fill in which columns are kept; how many there are."""
    count = np.uint64(0)
    for c in range(width):
        columns[count] = c
        count += np.uint64(words[np.uint64(c)] >= threshold)
    return count
