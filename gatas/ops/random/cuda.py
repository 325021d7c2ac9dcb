"""Random words by Triton: the bits of `contract.threefry`. Imported only where there is a GPU, or Triton's interpreter."""

import triton
import triton.language as tl


@triton.jit
def rotate(word, bits: tl.constexpr):
    return (word << bits) | (word >> (32 - bits))


@triton.jit
def four_rounds(first, second, a: tl.constexpr, b: tl.constexpr, c: tl.constexpr, d: tl.constexpr):
    first = first + second
    second = rotate(second, a) ^ first
    first = first + second
    second = rotate(second, b) ^ first
    first = first + second
    second = rotate(second, c) ^ first
    first = first + second
    second = rotate(second, d) ^ first
    return first, second


@triton.jit
def threefry(key0, key1, first, second):
    """Threefry-2x32 with 20 rounds; all of them uint32."""
    key2 = key0 ^ key1 ^ tl.full((), 0x1BD11BDA, tl.uint32)
    one = tl.full((), 1, tl.uint32)
    first, second = first + key0, second + key1
    first, second = four_rounds(first, second, 13, 15, 26, 6)
    first, second = first + key1, second + key2 + one
    first, second = four_rounds(first, second, 17, 29, 16, 24)
    first, second = first + key2, second + key0 + 2 * one
    first, second = four_rounds(first, second, 13, 15, 26, 6)
    first, second = first + key0, second + key1 + 3 * one
    first, second = four_rounds(first, second, 17, 29, 16, 24)
    first, second = first + key1, second + key2 + 4 * one
    first, second = four_rounds(first, second, 13, 15, 26, 6)
    return first + key2, second + key0 + 5 * one


@triton.jit
def stream(seed, kind: tl.constexpr, number):
    """The key for one use of a seed, with one number folded in; `seed` and `number` are int64."""
    zero = tl.full((), 0, tl.uint32)
    key0, key1 = threefry((seed & 0xFFFFFFFF).to(tl.uint32), ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32), zero + kind, zero)
    return threefry(key0, key1, (number & 0xFFFFFFFF).to(tl.uint32), zero)
