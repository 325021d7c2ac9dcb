"""Draws without replacement on a CPU: every numba function of this package. `noise.py` says what the bits are."""

import numpy as np

from gatas.transitions.kernels import compiled, kth_largest

U32 = np.uint32
PARITY = np.uint32(0x1BD11BDA)


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


@compiled()
def draw_rows(
    indptr, node, path, probability, positions, targets, depth, key0, key1, noisy, uniform,
    out_node, out_path, out_step, out_probability, out_count,
):  # fmt: skip
    """For each target the S entries with the largest P / E, E ~ Exp(1), in row order: draws without replacement ∝ P.

    ln P - ln E is the Gumbel-top-S key; its order is that of P / E, which needs one logarithm less. Equals: the first.
    A position outside the table is an empty row.
    """
    num_levels, sample_size = depth.size, out_node.shape[1]
    num_rows = (indptr.size - 1) // num_levels
    rank = np.empty(64, np.float32)
    ordered = np.empty(64, np.float32)
    for b in range(targets.size):
        if positions[b] < 0 or positions[b] >= num_rows:
            out_count[b] = 0
            continue
        first, last = indptr[positions[b] * num_levels], indptr[(positions[b] + 1) * num_levels]
        size = last - first
        out_count[b] = min(size, sample_size)
        threshold, ties = np.float32(0.0), size
        if size > sample_size:
            if size > rank.size:
                rank, ordered = np.empty(2 * size, np.float32), np.empty(2 * size, np.float32)
            fill_ranks(
                indptr, node, path, probability, positions[b], targets[b], depth, key0, key1, noisy, uniform, rank, ordered
            )
            threshold = kth_largest(ordered, size, sample_size)
            ties = sample_size
            for k in range(size):
                if rank[k] > threshold:
                    ties -= 1
        out = 0
        for step in range(num_levels):
            level = positions[b] * num_levels + step
            for entry in range(indptr[level], indptr[level + 1]):
                if size > sample_size:
                    if rank[entry - first] < threshold or (rank[entry - first] == threshold and ties == 0):
                        continue
                    if rank[entry - first] == threshold:
                        ties -= 1
                out_node[b, out], out_path[b, out], out_step[b, out] = node[entry], path[entry], step
                out_probability[b, out] = probability[entry]
                out += 1


@compiled()
def fill_ranks(indptr, node, path, probability, position, target, depth, key0, key1, noisy, uniform, rank, ordered):
    """P / E for every entry of a row; without noise P."""
    own0, own1 = threefry(key0, key1, U32(target), U32(0))
    first = indptr[position * depth.size]
    for step in range(depth.size):
        level = position * depth.size + step
        for entry in range(indptr[level], indptr[level + 1]):
            time = 1.0
            if noisy:
                words = threefry(own0, own1, U32(node[entry]), path_word(path[entry]))
                bits = np.int64(words[0]) << 20 | np.int64(words[1]) >> 12
                time = -np.log((np.float64(bits) + 0.5) * 2.0**-52)
            chance = 1.0 if uniform else depth[step] * np.float64(probability[entry])
            value = np.float32(chance / time)
            rank[entry - first] = ordered[entry - first] = value


@compiled()
def path_word(path):
    """32 bits of a path id: the id itself, as long as it fits."""
    return U32(U32(path & 0xFFFFFFFF) ^ U32((path >> 32) * 0x9E3779B9 & 0xFFFFFFFF))


@compiled()
def sum_by_step(values, step, mask, out):
    """For each model, the sum of each step's values over the slots in use."""
    for model in range(out.shape[0]):
        for b in range(step.shape[1]):
            for s in range(step.shape[2]):
                if mask[model, b, s]:
                    out[model, step[model, b, s]] += values[model, b, s]
