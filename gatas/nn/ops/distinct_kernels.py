"""The numba functions of `distinct`: a bit for every number there can be."""

import numpy as np

from gatas.transitions.kernels import compiled
from gatas.transitions.kernels.bits import LOW, ONE, SHIFT, count_bits


@compiled()
def mark(values, marks, before):
    """Mark the values, and count the marks before each word; returns how many there are."""
    for n in range(values.size):
        value = np.uint64(values[n])
        marks[value >> SHIFT] |= ONE << (value & LOW)
    count = np.int64(0)
    for word in range(marks.size):
        before[word] = count
        count += count_bits(marks[word])
    return count


@compiled()
def look_up(values, marks, before, unique, inverse):
    """The place of a value is how many marks come before its own."""
    for n in range(values.size):
        value = np.uint64(values[n])
        word, below = value >> SHIFT, (ONE << (value & LOW)) - ONE
        place = np.uint64(before[word] + count_bits(marks[word] & below))
        inverse[n] = place
        unique[place] = value
