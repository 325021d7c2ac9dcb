"""`noisy_linear` by numba: columns that the noise takes away are never read."""

import numpy as np
import torch
from torch import Tensor

from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.dropout.contract import threshold_of
from gatas.ops.dropout.cpu import fill_words, words_for
from gatas.ops.models import each_model
from gatas.ops.noisy_linear.contract import ColumnInputs, NoisyLinearInputs
from gatas.ops.numba_rows import FUSE, REORDER, add_scaled, fill
from gatas.ops.random.cpu import stream_key
from gatas.ops.threads import even_cuts, run_rows

PIECES = 4
"""Rows are shared out among threads in as many pieces in the backward pass, however many threads there are."""


def forward(given: NoisyLinearInputs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(M, V, H), and of each node the columns kept, (M, V, F), how many, (M, V), and mean and 1 / deviation, (M, V, 2)."""
    features, *own, place, probability, epsilon = given
    x = as_numpy(features)
    threshold, scale = np.uint16(threshold_of(probability)), x.dtype.type(1 / (1 - probability))

    def one(*given: Tensor) -> tuple[Tensor, ...]:
        rows, gamma, beta, w, b = (as_numpy(tensor) for tensor in (*given[:3], given[3].T, given[4]))
        out = features.new_empty(len(rows), len(b))
        columns = torch.empty(len(rows), x.shape[1], dtype=torch.int16)
        counts = torch.empty(len(rows), dtype=torch.int32)
        spread = features.new_empty(len(rows), 2)
        filled = (out.numpy(), columns.numpy(), counts.numpy(), spread.numpy())
        if rows.size and not 0 <= rows.min() <= rows.max() < len(x):
            raise IndexError(f"node {rows.max()} is wanted, but features have {len(x)} rows.")
        noise = (*stream_key(given[5], place, given[6]), threshold, scale)

        def work(start: int, stop: int) -> None:
            noisy_linear(*noise, x, rows, gamma, beta, epsilon, w, b, start, stop, *filled)

        run_rows(work, len(rows), x.shape[1])
        return out, columns, counts, spread

    results: tuple[Tensor, Tensor, Tensor, Tensor] = each_model(one, *own)
    return results


def backward(given: ColumnInputs) -> Tensor:
    """A and B side by side, (M, F, 2·H), but for the scale."""
    features, *own = given
    x = as_numpy(features)

    def one(*given: Tensor) -> Tensor:
        rows, kept, numbers, deviations, grad = (as_numpy(tensor) for tensor in given)
        parts = features.new_empty(PIECES * x.shape[1], 2 * grad.shape[1])
        cuts = np.array(even_cuts(len(rows), PIECES))

        def work(first: int, last: int) -> None:
            noisy_linear_backward(x, rows, grad, kept, numbers, deviations, cuts, first, last, parts.numpy())

        run_rows(work, PIECES, x.size // PIECES)
        return parts.view(PIECES, x.shape[1], -1).sum(0)

    results: Tensor = each_model(one, *own)
    return results


@compiled()
def noisy_linear(
    key0, key1, threshold, scale, features, nodes, norm_weight, norm_bias, epsilon, weight, bias, start, stop, out,
    columns, counts, spread,
):  # fmt: skip
    """out[r] = bias + Σ over the columns that are kept of scale · LayerNorm(features[node])[c] · weight[c], for some rows.

    Which columns these are, how many, and each row's mean and 1 / deviation are kept for the backward pass.
    """
    words = words_for(features.shape[1])
    bits = words.view(np.uint16)
    for row in range(start, stop):
        node = nodes[row]
        mean, inverse = moments(features, node, epsilon)
        spread[row, 0], spread[row, 1] = mean, inverse
        fill_words(key0, key1, node, 0, words)
        counts[row] = kept_columns(bits, threshold, columns, row)
        for h in range(bias.size):
            out[row, h] = bias[h]
        for at in range(counts[row]):
            c = columns[row, at]
            normal = (features[node, c] - mean) * inverse
            add_scaled(scale * (normal * norm_weight[c] + norm_bias[c]), weight, c, 0, bias.size, out, row)


@compiled()
def noisy_linear_backward(features, nodes, grad_out, columns, counts, spread, cuts, first, last, out):
    """Σ of keep · grad_out and, beside it, of keep · normal · grad_out over the rows of some pieces: (pieces · F, 2·H)."""
    width = features.shape[1]
    for piece in range(first, last):
        for c in range(piece * width, (piece + 1) * width):
            fill(out, c, 0)
        for row in range(cuts[piece], cuts[piece + 1]):
            node = nodes[row]
            mean, inverse = spread[row, 0], spread[row, 1]
            for at in range(counts[row]):
                kept = np.int64(columns[row, at])
                add_twice((features[node, kept] - mean) * inverse, grad_out, row, out, piece * width + kept)


@compiled(fastmath=FUSE, forceinline=True)
def add_twice(factor, values, row, out, out_row):
    """Add a row to the first half of another, and a multiple of it to the second."""
    i, o, half = np.uint64(row), np.uint64(out_row), np.uint64(values.shape[1])
    for n in range(values.shape[1]):
        place = np.uint64(n)
        out[o, place] += values[i, place]
        out[o, half + place] += factor * values[i, place]


@compiled(fastmath=REORDER, forceinline=True)
def moments(values, row, epsilon):
    """Mean and 1 / deviation of a row."""
    i, size = np.uint64(row), values.shape[1]
    together = squares = values.dtype.type(0)
    for n in range(size):
        together += values[i, np.uint64(n)]
    mean = values.dtype.type(together / size)
    for n in range(size):
        squares += (values[i, np.uint64(n)] - mean) ** 2
    if not squares < np.inf:
        return large_moments(values, row, epsilon)
    return mean, values.dtype.type(1 / np.sqrt(squares / size + epsilon))


@compiled()
def large_moments(values, row, epsilon):
    """Mean and 1 / deviation of a row whose squares are too large for float32."""
    size, together, squares = values.shape[1], 0.0, 0.0
    for n in range(size):
        together += np.float64(values[row, n])
    mean = together / size
    for n in range(size):
        squares += (np.float64(values[row, n]) - mean) ** 2
    return values.dtype.type(mean), values.dtype.type(1 / np.sqrt(squares / size + epsilon))


@compiled(forceinline=True)
def kept_columns(bits, threshold, columns, row):
    """Fill in which columns of a row are kept; how many there are."""
    i, count = np.uint64(row), np.uint64(0)
    for c in range(columns.shape[1]):
        columns[i, count] = c
        count += np.uint64(bits[np.uint64(c)] >= threshold)
    return count
