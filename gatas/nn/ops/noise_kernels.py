"""The numba functions that apply noise as they make it: rows by number and unsigned places, as in `kernels`."""

import numpy as np

from gatas.nn.ops.kernels import FUSE, exp
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
