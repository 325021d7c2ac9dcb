"""Sets of small integers as bits: adding costs one operation, and members come out in order."""

import numpy as np

from gatas.ops.compiled import compiled

WORD = 64
SHIFT = np.uint64(6)
LOW = np.uint64(WORD - 1)
TWICE = np.uint64(12)
ONE = np.uint64(1)
ALL = np.uint64(2**64 - 1)


DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
LOWEST_BIT = np.zeros(WORD, np.uint64)
for _bit in range(WORD):
    LOWEST_BIT[((int(DE_BRUIJN) << _bit) & (2**64 - 1)) >> 58] = _bit


@compiled()
def add(bits, words, member):
    """Add to a bit set, whose `words` say which of its words are not empty."""
    word = np.uint64(member) >> SHIFT
    bits[word] |= ONE << (np.uint64(member) & LOW)
    words[word >> SHIFT] |= ONE << (word & LOW)


@compiled()
def contains(bits, member):
    return (bits[np.uint64(member) >> SHIFT] >> (np.uint64(member) & LOW)) & ONE != 0


@compiled()
def mark_all(words):
    for part in range(words.size):
        words[part] = ALL


@compiled()
def drain(bits, words, out):
    """Empty a bit set into `out`, ascending; returns how many members it had."""
    count = np.int64(0)
    for part in range(words.size):
        while words[part] != 0:
            word = (np.uint64(part) << SHIFT) + lowest_bit(words[part])
            words[part] &= words[part] - ONE
            left = bits[word]
            bits[word] = 0
            while left != 0:
                out[count] = (word << SHIFT) + lowest_bit(left)
                count += 1
                left &= left - ONE
    return count


@compiled()
def lowest_bit(word):
    """The place of the lowest set bit, by a De Bruijn sequence."""
    return LOWEST_BIT[((word & (~word + ONE)) * DE_BRUIJN) >> np.uint64(58)]


@compiled()
def count_bits(word):
    """How many bits are set, by adding neighbours in parallel."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
