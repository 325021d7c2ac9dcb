"""Probabilities as they are stored, and the likeliest of them."""

import numpy as np

from gatas.ops.compiled import compiled
from gatas.ops.largest import kth_largest


@compiled()
def write_likeliest(level, num_groups, keep, rank, out, out_node, out_path, out_probability):
    """Write the `keep` likeliest states in their order, the first of equals; returns the mass of the others."""
    size = level.stop[num_groups - 1]
    for k in range(size):
        rank[k] = stored(level.mass[k])
    threshold = kth_largest(rank, size, keep)
    ties = keep
    for k in range(size):
        if rank[k] > threshold:
            ties -= 1
    dropped, first = 0.0, 0
    for group in range(num_groups):
        for k in range(first, level.stop[group]):
            probability = stored(level.mass[k])
            if probability < threshold or (probability == threshold and ties == 0):
                dropped += level.mass[k]
                continue
            if probability == threshold:
                ties -= 1
            out_node[out], out_path[out], out_probability[out] = level.node[k], level.path[group], probability
            out += 1
        first = level.stop[group]
    return dropped


@compiled()
def stored(mass):
    """Probabilities are kept in float32; one too small for it becomes the smallest there is, so that ln P is finite."""
    return max(np.float32(mass), np.float32(1.1754944e-38))
