"""`sparse_noisy_linear` by numba: some columns at a time for all rows, so that what they need stays in a cache."""

from typing import Any

import numpy as np
from torch import Tensor

from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.dropout.contract import threshold_of
from gatas.ops.dropout.cpu import words_for
from gatas.ops.models import each_model
from gatas.ops.noisy_linear.cpu import PIECES, add_twice, kept_columns
from gatas.ops.numba_rows import FUSE, add_scaled, fill
from gatas.ops.random.cpu import U32, stream_key, threefry
from gatas.ops.sparse_noisy_linear.contract import SparseColumnInputs, SparseNoisyLinearInputs
from gatas.ops.threads import even_cuts, run_rows

BLOCK = 128
"""Columns at a time: a multiple of four, which have their bits from one call of the generator."""
ROWS = 64
"""Rows at a time in the backward pass."""


def forward(given: SparseNoisyLinearInputs) -> tuple[Tensor, Tensor]:
    """(M, V, H), and of each node mean and 1 / deviation, (M, V, 2)."""
    matrix, epsilon = tuple(as_numpy(part) for part in given[:3]), given.epsilon
    scale = matrix[2].dtype.type(1 / (1 - given.probability))

    def one(*own: Tensor) -> tuple[Tensor, Tensor]:
        rows, gamma, beta, w, b = (as_numpy(tensor) for tensor in (*own[:3], own[3].T, own[4]))
        out, spread = given.values.new_empty(len(rows), len(b)), given.values.new_empty(len(rows), 2)
        if rows.size and not 0 <= rows.min() <= rows.max() < len(matrix[0]) - 1:
            raise IndexError(f"node {rows.max()} is wanted, but features have {len(matrix[0]) - 1} rows.")
        noise = _noise(own[5], own[6], given.place, given.probability)

        def work(start: int, stop: int) -> None:
            layers = (gamma, beta, epsilon, w, b)
            sparse_noisy_linear(*noise, scale, *matrix, rows, *layers, start, stop, out.numpy(), spread.numpy())

        run_rows(work, len(rows), gamma.size)
        return out, spread

    results: tuple[Tensor, Tensor] = each_model(one, *given[3:-3])
    return results


def backward(given: SparseColumnInputs) -> Tensor:
    """A and B side by side, (M, F, 2·H), but for the scale."""
    matrix = tuple(as_numpy(part) for part in given[:3])

    def one(nodes: Tensor, spread: Tensor, seed: Tensor, step: Tensor, grad_out: Tensor) -> Tensor:
        rows, moments, grad = (as_numpy(tensor) for tensor in (nodes, spread, grad_out))
        parts = given.values.new_empty(PIECES * given.width, 2 * grad.shape[1])
        noise, cuts = _noise(seed, step, given.place, given.probability), np.array(even_cuts(len(rows), PIECES))

        def work(first: int, last: int) -> None:
            sparse_noisy_linear_backward(*noise, *matrix, rows, moments, grad, given.width, cuts, first, last, parts.numpy())

        run_rows(work, PIECES, len(rows) * given.width // PIECES)
        return parts.view(PIECES, given.width, -1).sum(0)

    results: Tensor = each_model(one, *given[3:8])
    return results


def _noise(seed: Tensor, step: Tensor, place: int, probability: float) -> tuple[Any, ...]:
    """The key of the noise, and the bits from which on a column is kept."""
    return (*stream_key(seed, place, step), np.uint16(threshold_of(probability)))


@compiled()
def sparse_noisy_linear(
    key0, key1, threshold, scale, indptr, columns, values, nodes, norm_weight, norm_bias, epsilon, weight, bias, start, stop,
    out, spread,
):  # fmt: skip
    """out[r] = bias + Σ over the columns that are kept of scale · LayerNorm(features[node])[c] · weight[c], for some rows.

    LayerNorm(x) is x / deviation · w + (b − mean / deviation · w): the first part is of numbers that are not zero alone, the
    second of all columns, some at a time, whose weights stay in a cache for all rows.
    """
    width = norm_weight.size
    own, words, kept = row_keys(key0, key1, nodes, start, stop), words_for(BLOCK), np.empty((1, BLOCK), np.int32)
    bits, factors = words.view(np.uint16), np.empty(BLOCK, values.dtype)
    for row in range(start, stop):
        first, last = indptr[nodes[row]], indptr[nodes[row] + 1]
        mean, inverse = sparse_moments(values, first, last, width, epsilon)
        spread[row, 0], spread[row, 1] = mean, inverse
        for h in range(bias.size):
            out[row, h] = bias[h]
        for entry in range(first, last):
            c = np.int64(columns[entry])
            if is_kept(own[row - start, 0], own[row - start, 1], c, threshold):
                add_scaled(scale * (values[entry] * inverse * norm_weight[c]), weight, c, 0, bias.size, out, row)
    for block in range(0, width, BLOCK):
        some = kept[:, : min(BLOCK, width - block)]
        for row in range(start, stop):
            shift = spread[row, 0] * spread[row, 1]
            fill_block(own[row - start, 0], own[row - start, 1], block, words)
            count = kept_columns(bits, threshold, some, 0)
            for at in range(count):
                c = block + kept[0, at]
                factors[at] = scale * (norm_bias[c] - shift * norm_weight[c])
            add_columns(factors, kept, count, weight, block, out, row)


@compiled()
def sparse_noisy_linear_backward(
    key0, key1, threshold, indptr, columns, values, nodes, spread, grad_out, width, cuts, start, stop, out
):
    """Σ of keep · grad_out and, beside it, of keep · normal · grad_out over the rows of some pieces: (pieces · F, 2·H)."""
    kept_rows, counts = np.empty((BLOCK, ROWS), np.int32), np.empty(BLOCK, np.int64)
    shifts, half = -spread[:, 0] * spread[:, 1], grad_out.shape[1]
    for piece in range(start, stop):
        origin, begin, end = piece * width, cuts[piece], cuts[piece + 1]
        own = row_keys(key0, key1, nodes, begin, end)
        for place in range(origin, origin + width):
            fill(out, place, 0)
        for block in range(0, width, BLOCK):
            size = min(BLOCK, width - block)
            for row in range(begin, end, ROWS):
                some = own[row - begin : min(row + ROWS, end) - begin]
                rows_by_column(some, row, block, size, threshold, kept_rows, counts)
                for n in range(size):
                    add_rows(kept_rows, n, counts[n], grad_out, shifts, out, origin + block + n)
        for row in range(begin, end):
            for entry in range(indptr[nodes[row]], indptr[nodes[row] + 1]):
                c = np.int64(columns[entry])
                if is_kept(own[row - begin, 0], own[row - begin, 1], c, threshold):
                    for h in range(half):
                        out[origin + c, half + h] += values[entry] * spread[row, 1] * grad_out[row, h]


@compiled()
def rows_by_column(own, row, block, size, threshold, kept_rows, counts):
    """Of some rows, from `row` on, those in which each column of a block is kept, and how many these are."""
    words, kept = words_for(BLOCK), np.empty((1, BLOCK), np.int32)
    bits = words.view(np.uint16)
    counts[:] = 0
    for n in range(len(own)):
        fill_block(own[n, 0], own[n, 1], block, words)
        for at in range(kept_columns(bits, threshold, kept[:, :size], 0)):
            c = np.uint64(kept[0, at])
            kept_rows[c, np.uint64(counts[c])] = row + n
            counts[c] += 1


@compiled(fastmath=FUSE, forceinline=True)
def add_rows(kept_rows, column, count, values, factors, out, out_row):
    """Add rows to the first half of another, and multiples of them to the second, four at a time."""
    o, c, half, at, four = np.uint64(out_row), np.uint64(column), np.uint64(values.shape[1]), np.uint64(0), np.uint64(4)
    while at + four <= np.uint64(count):
        i0, i1 = np.uint64(kept_rows[c, at]), np.uint64(kept_rows[c, at + np.uint64(1)])
        i2, i3 = np.uint64(kept_rows[c, at + np.uint64(2)]), np.uint64(kept_rows[c, at + np.uint64(3)])
        f0, f1, f2, f3 = factors[i0], factors[i1], factors[i2], factors[i3]
        for n in range(values.shape[1]):
            h = np.uint64(n)
            v0, v1, v2, v3 = values[i0, h], values[i1, h], values[i2, h], values[i3, h]
            out[o, h] += v0 + v1 + v2 + v3
            out[o, half + h] += f0 * v0 + f1 * v1 + f2 * v2 + f3 * v3
        at += four
    while at < np.uint64(count):
        i0 = np.uint64(kept_rows[c, at])
        add_twice(factors[i0], values, i0, out, o)
        at += np.uint64(1)


@compiled()
def row_keys(key0, key1, nodes, start, stop):
    """The keys of some rows, from which their columns' bits are drawn."""
    own = np.empty((stop - start, 2), np.uint32)
    for row in range(start, stop):
        own[row - start, 0], own[row - start, 1] = threefry(key0, key1, U32(nodes[row]), U32(0))
    return own


@compiled(forceinline=True)
def fill_block(own0, own1, block, words):
    """Random words of the columns from `block` on, as `fill_words` makes them for a row."""
    for group in range(words.size // 2):
        place = np.uint64(group)
        words[2 * place], words[2 * place + np.uint64(1)] = threefry(own0, own1, U32(block // 4 + group), U32(0))


@compiled(forceinline=True)
def is_kept(own0, own1, column, threshold):
    """Whether one column of a row is kept."""
    words = threefry(own0, own1, U32(column // 4), U32(0))
    word = words[1] if column % 4 >= 2 else words[0]
    return (word >> U32(16 * (column % 2))) & U32(0xFFFF) >= threshold


@compiled(fastmath=FUSE, forceinline=True)
def add_columns(factors, kept, count, weight, block, out, out_row):
    """Add rows of the weight times their factors, four at a time: the sum is loaded and stored a quarter as often."""
    o, first, at, four = np.uint64(out_row), np.uint64(block), np.uint64(0), np.uint64(4)
    while at + four <= np.uint64(count):
        at1, at2, at3 = at + np.uint64(1), at + np.uint64(2), at + np.uint64(3)
        i0, i1 = first + np.uint64(kept[0, at]), first + np.uint64(kept[0, at1])
        i2, i3 = first + np.uint64(kept[0, at2]), first + np.uint64(kept[0, at3])
        f0, f1, f2, f3 = factors[at], factors[at1], factors[at2], factors[at3]
        for n in range(weight.shape[1]):
            h = np.uint64(n)
            out[o, h] += f0 * weight[i0, h] + f1 * weight[i1, h] + f2 * weight[i2, h] + f3 * weight[i3, h]
        at += four
    while at < np.uint64(count):
        add_scaled(factors[at], weight, first + np.uint64(kept[0, at]), 0, weight.shape[1], out, out_row)
        at += np.uint64(1)


@compiled()
def sparse_moments(values, first, last, width, epsilon):
    """Mean and 1 / deviation of a row, zeros included; in double precision, whose squares do not overflow."""
    total, squares = 0.0, 0.0
    for entry in range(first, last):
        total += values[entry]
    mean = total / width
    for entry in range(first, last):
        squares += (values[entry] - mean) ** 2
    squares += (width - (last - first)) * mean**2
    return values.dtype.type(mean), values.dtype.type(1 / np.sqrt(squares / width + epsilon))
