"""Numba functions over rows, for the operators' CPU kernels.

Arrays come flat: (rows, K·F) instead of (rows, K, F), so that a loop over all heads is one vectorised loop. Sums may be
reordered within a row (fastmath), never across rows.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gatas.ops.compiled import compiled

FUSE = {"contract", "nsz"}
REORDER = FUSE | {"reassoc"}
"""For sums only: elsewhere an element's value would depend on which piece of a row it is computed with."""


@intrinsic
def as_float(typing_context, bits):
    """The float32 that has these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


def exp(x):
    """exp(x) for x ≤ 88. In float32 by Cephes' polynomial, which LLVM vectorises, to 2 units in the last place."""


@overload(exp)
def _exp(x):
    if x != types.float32:
        return lambda x: np.exp(x)

    def single(x):
        x = max(x, np.float32(-87.0))
        power = np.int32(x * np.float32(1.44269504088896341) + np.float32(127.5))  # positive, so cut off means rounded down
        whole = np.float32(power) - np.float32(127.0)
        r = x - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
        y = np.float32(1.9875691500e-4)
        y = y * r + np.float32(1.3981999507e-3)
        y = y * r + np.float32(8.3334519073e-3)
        y = y * r + np.float32(4.1665795894e-2)
        y = y * r + np.float32(1.6666665459e-1)
        y = y * r + np.float32(5.0000001201e-1)
        y = y * (r * r) + r + np.float32(1.0)
        return y * as_float(np.int32(power << np.int32(23)))

    return single


# Rows and parts of them. A matrix comes with the number of its row: a row of its own would be counted in and out at each
# call. Places are unsigned: a signed one is checked for being negative, and the loop not vectorised.


@compiled(forceinline=True)
def scale(factors, out, row):
    i = np.uint64(row)
    for n in range(out.shape[1]):
        out[i, np.uint64(n)] *= factors[np.uint64(0), np.uint64(n)]


@compiled(fastmath=REORDER, forceinline=True)
def dot(left, left_row, right, right_row, first, size):
    i, j, result = np.uint64(left_row), np.uint64(right_row), left.dtype.type(0)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        result += left[i, place] * right[j, place]
    return result


@compiled(fastmath=FUSE, forceinline=True)
def add_scaled(factor, values, row, first, size, out, out_row):
    i, o = np.uint64(row), np.uint64(out_row)
    for n in range(size):
        place = np.uint64(first) + np.uint64(n)
        out[o, place] += factor * values[i, place]


@compiled(forceinline=True)
def fill(out, row, value):
    for n in range(out.shape[1]):
        out[np.uint64(row), np.uint64(n)] = value


@compiled(forceinline=True)
def fill_part(out, value, first, size):
    for n in range(size):
        out[np.uint64(0), np.uint64(first) + np.uint64(n)] = value
