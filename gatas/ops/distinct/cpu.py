"""`distinct` by numba: a bit for every number there can be."""

import numpy as np
import torch
from torch import Tensor

from gatas.ops.bits import LOW, ONE, SHIFT, count_bits
from gatas.ops.compiled import compiled


def distinct_marked(values: Tensor, num_words: int) -> tuple[Tensor, Tensor]:
    """Distinct values and where each one is, by marks in so many words."""
    flat, inverse = values.detach().contiguous().view(-1), torch.empty(values.shape, dtype=torch.int64)
    marks, before = torch.zeros(num_words, dtype=torch.int64), torch.empty(num_words, dtype=torch.int64)
    count = mark(flat.numpy(), marks.numpy().view("uint64"), before.numpy())
    unique = torch.empty(count, dtype=torch.int64)
    look_up(flat.numpy(), marks.numpy().view("uint64"), before.numpy(), unique.numpy(), inverse.view(-1).numpy())
    return unique, inverse


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
