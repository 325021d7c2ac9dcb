"""`draw_samples` by numba."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.ops.compiled import compiled
from gatas.ops.draw.contract import DrawInputs, Drawn
from gatas.ops.largest import kth_largest
from gatas.ops.random import DRAW
from gatas.ops.random.cpu import U32, stream_key, threefry
from gatas.ops.threads import run_rows

TableArrays = list[NDArray[Any]]
ONE = 0x3FF0000000000000
SQRT_HALF = 0x3FE6A09E667F3BCD
"""Bits of these float64."""
LN_2 = float(np.log(2.0))
SMALLEST = np.float32(1.1754944e-38)
SLACK = 8
"""Twice the most that `fill_orders` is off, and some more: 3 float32, of which 2 are the logarithm and 1 is rounding."""


def draw(given: DrawInputs) -> Drawn:
    """Rows of one model after another, on several threads."""
    targets = given.targets
    shape, num_rows = (*targets.shape, given.sample_size), (len(given.indptr) - 1) // given.depth_logits.shape[1]
    out_node, out_path = targets.new_zeros(shape), targets.new_zeros(shape)
    step, chance = torch.zeros(shape, dtype=torch.int8), torch.ones(shape, dtype=torch.float32)
    count = torch.zeros(targets.shape, dtype=torch.int64)
    depth = _depth(given.depth_logits)
    table = [column.numpy() for column in (given.indptr, given.node, given.path, given.probability)]
    row_size = len(given.node) // max(num_rows, 1)
    for model in range(len(targets)):
        rows = [column[model].contiguous().numpy() for column in (given.positions, targets)]
        key = stream_key(given.seed[model], DRAW, given.draw[model])
        outputs = [column[model].numpy() for column in (out_node, out_path, step, chance, count)]
        _draw_rows(table, rows, (depth[model].numpy(), *key, given.noisy, given.uniform), outputs, row_size)
    log_step = torch.zeros_like(chance) if given.uniform else chance.log_()
    return out_node, out_path, step, log_step, torch.arange(given.sample_size) < count[..., None]


def _depth(logits: Tensor) -> Tensor:
    """q in float64 of float32's precision; NaN has no place in an order, and counts as 0."""
    return torch.softmax(logits.double(), dim=-1).float().double().nan_to_num(0.0)


def _draw_rows(table: TableArrays, rows: TableArrays, law: tuple[Any, ...], outputs: TableArrays, row_size: int) -> None:
    def work(first: int, last: int) -> None:
        here = slice(first, last)
        draw_rows(*table, *(column[here] for column in rows), *law, *(column[here] for column in outputs))

    run_rows(work, len(rows[0]), row_size)


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
    order, near, chosen = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint32)
    for b in range(targets.size):
        out_count[b] = 0
        if positions[b] < 0 or positions[b] >= num_rows:
            continue
        levels = indptr[positions[b] * num_levels : (positions[b] + 1) * num_levels + 1]
        size = levels[num_levels] - levels[0]
        if size > order.size:
            order, near, chosen = np.empty(2 * size, np.int32), np.empty(2 * size, np.int32), np.empty(2 * size, np.uint32)
        if size > sample_size:
            own0, own1 = threefry(key0, key1, U32(targets[b]), U32(0))
            fill_orders(levels, node, path, probability, depth, own0, own1, noisy, uniform, order)
            low, high = narrowed(order, size, sample_size)
            threshold, ties = settled(
                levels, node, path, probability, depth, own0, own1, noisy, uniform, low, high, sample_size, order, near
            )
            choose(order, size, threshold, ties, chosen)
        else:
            for k in range(size):
                chosen[k] = k
        out_count[b], step = min(size, sample_size), 0
        for out in range(out_count[b]):
            entry = levels[0] + np.int64(chosen[out])
            while entry >= levels[step + 1]:
                step += 1
            out_node[b, out], out_path[b, out], out_step[b, out] = node[entry], path[entry], step
            out_probability[b, out] = probability[entry]


@compiled(fastmath={"contract"}, error_model="numpy")
def fill_orders(levels, node, path, probability, depth, key0, key1, noisy, uniform, order):
    """P / E for every entry of a row, about, in a loop that LLVM vectorises; without noise P.

    A float32 above zero is ordered as its bits are. Those too small to be accurate count as one.
    """
    for step in range(depth.size):
        first, at, weight = np.uint64(levels[step]), np.uint64(levels[step] - levels[0]), depth[step]
        for n in range(levels[step + 1] - levels[step]):
            entry = first + np.uint64(n)
            rank = 1.0 if uniform else weight * np.float64(probability[entry])
            if noisy:
                rank /= negative_log(uniform_of(key0, key1, node[entry], path[entry]))
            order[at + np.uint64(n)] = np.float32(max(np.float32(rank), SMALLEST)).view(np.int32)


@compiled(forceinline=True)
def uniform_of(key0, key1, node, path):
    """(bits + ½) · 2⁻⁵² for 52 random bits: as the fraction of a float64 from 1 to 2."""
    high, low = threefry(key0, key1, U32(node), path_word(path))
    bits = np.int64(high) << 20 | np.int64(low) >> 12
    return (np.int64(bits | ONE).view(np.float64) - 1.0) + 2.0**-53


@compiled(fastmath={"contract"}, error_model="numpy", forceinline=True)
def negative_log(u):
    """-ln u to a relative error of 10⁻⁷, however close u is to 0 or 1.

    u = m · 2ᵉ with m from √½ to √2; ln m = 2 artanh(s), s² ≤ 0.0295, a series cut off before s⁸ / 9.
    """
    bits = np.float64(u).view(np.int64)
    power = (bits - SQRT_HALF) >> 52
    m = np.int64(bits - (power << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    return -(np.float64(np.int32(power)) * LN_2 + 2.0 * s * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7)))))


@compiled()
def narrowed(order, size, k):
    """low ≤ the k-th largest < high, with few entries or none but equals from one to the other."""
    low, high, from_low, from_high = np.int32(0), np.int32(0x7FFFFFFF), size, np.int64(0)
    while from_low - from_high > 8 and high - low > 1:
        middle, count = np.int32(low + (high - low) // 2), U32(0)
        for entry in range(size):
            count = U32(count + U32(order[np.uint64(entry)] >= middle))
        if count >= k:
            low, from_low = middle, np.int64(count)
        else:
            high, from_high = middle, np.int64(count)
    return low, high


@compiled()
def settled(levels, node, path, probability, depth, key0, key1, noisy, uniform, low, high, k, order, near):
    """Correct the `order` of entries near the k-th largest; returns its value, and how many entries that have it are drawn.

    All orders are off by at most SLACK / 2, and so is the k-th largest of them. So entries from high + SLACK on are truly
    larger than the k-th largest, those below low - SLACK are truly smaller, and what is wrong about them does not matter.
    """
    ties, close, step = k, 0, 0
    for entry in range(levels[0], levels[depth.size]):
        about = order[entry - levels[0]]
        if about >= high + SLACK:
            ties -= 1
        elif about >= low - SLACK:
            while entry >= levels[step + 1]:
                step += 1
            rank = 1.0 if uniform else depth[step] * np.float64(probability[entry])
            if noisy:
                rank /= -np.log(uniform_of(key0, key1, node[entry], path[entry]))
            order[entry - levels[0]] = near[close] = np.float32(rank).view(np.int32)
            close += 1
    threshold = kth_largest(near, close, ties)
    for n in range(close):
        if near[n] > threshold:
            ties -= 1
    return threshold, ties


@compiled()
def choose(order, size, threshold, ties, chosen):
    """List the entries above the threshold and the first of those at it. Without branches, which would not be foreseen."""
    count = np.uint64(0)
    for k in range(size):
        value = order[np.uint64(k)]
        chosen[count] = k
        count += np.uint64((value > threshold) | ((value == threshold) & (ties > 0)))
        ties -= np.int64(value == threshold)


@compiled()
def path_word(path):
    """32 bits of a path id: the id itself, as long as it fits."""
    return U32(U32(path & 0xFFFFFFFF) ^ U32((path >> 32) * 0x9E3779B9 & 0xFFFFFFFF))
