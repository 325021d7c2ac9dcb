"""Random words by numba: the bits of `contract.threefry`."""

from typing import Any

import numpy as np

from gatas.ops.compiled import compiled
from gatas.ops.random.contract import stream

U32 = np.uint32
PARITY = np.uint32(0x1BD11BDA)


def stream_key(seed: Any, kind: int, number: Any) -> tuple[np.uint32, np.uint32]:
    """The key of a stream as kernels take it; seed and number are integers or tensors of one."""
    first, second = stream(int(seed), kind, int(number))
    return np.uint32(first), np.uint32(second)


@compiled()
def rotate(word, bits):
    return U32(U32(word << U32(bits)) | U32(word >> U32(32 - bits)))


@compiled()
def threefry(key0, key1, first, second):
    """Threefry-2x32 with 20 rounds; all of it in 32-bit words, which numba would widen."""
    key2 = U32(key0 ^ key1 ^ PARITY)
    first, second = U32(first + key0), U32(second + key1)
    first, second = four_rounds(first, second, 13, 15, 26, 6)
    first, second = U32(first + key1), U32(second + key2 + U32(1))
    first, second = four_rounds(first, second, 17, 29, 16, 24)
    first, second = U32(first + key2), U32(second + key0 + U32(2))
    first, second = four_rounds(first, second, 13, 15, 26, 6)
    first, second = U32(first + key0), U32(second + key1 + U32(3))
    first, second = four_rounds(first, second, 17, 29, 16, 24)
    first, second = U32(first + key1), U32(second + key2 + U32(4))
    first, second = four_rounds(first, second, 13, 15, 26, 6)
    return U32(first + key2), U32(second + key0 + U32(5))


@compiled()
def four_rounds(first, second, a, b, c, d):
    first = U32(first + second)
    second = rotate(second, a) ^ first
    first = U32(first + second)
    second = rotate(second, b) ^ first
    first = U32(first + second)
    second = rotate(second, c) ^ first
    first = U32(first + second)
    second = rotate(second, d) ^ first
    return first, second
