"""Randomness as a function: Threefry-2x32 with 20 rounds (Salmon et al., 2011), keyed by what the noise is for.

A stream is a key of two 32-bit words, made by folding numbers into a seed; an element of it has two numbers of its own:

    draws without replacement   stream(seed, DRAW, draw), folded with the target;   element (neighbour, path)
    feature noise and dropout   stream(seed, place, step);                         element (row, column)

So noise does not depend on batches, on the order of elements, on threads or on the device. The bits that torch makes here,
numba makes in `cpu.py` and Triton in `cuda.py`.
"""

from typing import Any, NamedTuple, TypeVar

from torch import Tensor

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
WORD = 0xFFFFFFFF
DRAW = 1
"""The stream that neighbours are drawn from; layers number theirs from 2 on."""


Words = TypeVar("Words", int, Tensor)


class NoiseSource(NamedTuple):
    """Where a pass takes its noise from; tensors, so that a captured graph or many models at once can have their own."""

    seed: Tensor  # () int64
    step: Tensor  # () int64


def threefry(key: tuple[Any, Any], first: Words, second: Words) -> tuple[Words, Words]:
    """Two random words for two words under a key; numbers or int64 tensors that hold 32 bits."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    first, second = (first + schedule[0]) & WORD, (second + schedule[1]) & WORD
    for block in range(5):
        for rotation in ROTATIONS[block % 2]:
            first = (first + second) & WORD
            second = ((second << rotation) | (second >> (32 - rotation))) & WORD
            second = second ^ first
        first = (first + schedule[(block + 1) % 3]) & WORD
        second = (second + schedule[(block + 2) % 3] + block + 1) & WORD
    return first, second


def stream(seed: Any, kind: int, *numbers: Any) -> tuple[Any, Any]:
    """The key for one use of a seed: numbers, or tensors of them, are folded in two at a time."""
    key = threefry((seed & WORD, (seed >> 32) & WORD), kind, 0)
    padded = (*numbers, 0) if len(numbers) % 2 else numbers
    for first, second in zip(padded[::2], padded[1::2], strict=True):
        key = threefry(key, first & WORD, second & WORD)
    return key


def uniform(words: tuple[Tensor, Tensor]) -> Tensor:
    """float64 in (0, 1), from 52 of the 64 bits; never 0 or 1."""
    high, low = words
    return ((high << 20 | low >> 12).double() + 0.5) * 2.0**-52
