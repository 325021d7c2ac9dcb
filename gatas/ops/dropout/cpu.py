"""Which elements a dropout keeps, by numba: noise is applied as it is made."""

import numpy as np
from torch import Tensor

from gatas.ops.compiled import compiled
from gatas.ops.dropout.contract import KeepInputs, empty_keep, threshold_of
from gatas.ops.random.cpu import U32, stream_key, threefry
from gatas.ops.threads import run_rows

BLOCK = 128
"""Rows whose noise is made side by side where rows are short."""


def keep(given: KeepInputs) -> Tensor:
    """(M, R, width)."""
    out = empty_keep(given)
    for model, kept in enumerate(out):
        probability = given.probability if given.rate is None else float(given.rate[model])
        threshold, scale = np.uint16(threshold_of(probability)), np.float32(1 / (1 - probability))
        key = stream_key(given.seed[model], given.place, given.step[model])
        names = [names[model].contiguous().numpy() for names in (given.first, given.second)]
        _fill(key, names, threshold, scale, kept)
    return out


def _fill(key, names, threshold, scale, out: Tensor) -> None:
    target = out.numpy()

    def work(start: int, stop: int) -> None:
        fill_keep(*key, *(name[start:stop] for name in names), threshold, scale, target[start:stop])

    run_rows(work, *out.shape)


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
