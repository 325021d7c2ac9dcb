"""The numba functions of `nn.ops`, for CPUs."""

import numpy as np
from numba import njit

from gatas.sampling.kernels import U32, threefry


@njit(cache=True, nogil=True)
def fill_keep(key0, key1, first, second, threshold, scale, out):
    """out[r, c] = scale where the noise of element (first[r], second[r], c) reaches the threshold, else 0."""
    num_rows, width = out.shape
    pairs = (width + 1) // 2
    even, odd = np.empty(pairs, np.uint32), np.empty(pairs, np.uint32)
    for row in range(num_rows):
        own0, own1 = threefry(key0, key1, U32(first[row]), U32(second[row]))
        for pair in range(pairs):
            even[pair], odd[pair] = threefry(own0, own1, U32(pair), U32(0))
        for pair in range(pairs):
            out[row, 2 * pair] = scale if even[pair] >= threshold else np.float32(0)
        for pair in range(width // 2):
            out[row, 2 * pair + 1] = scale if odd[pair] >= threshold else np.float32(0)
