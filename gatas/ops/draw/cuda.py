"""Draws without replacement on a GPU: the rules and the bits of `cpu.draw_rows`, one program for each (model, target).

A rank is at least 0, so its float32 bits, read as an int32, have its order. The S-th largest is found digit by digit, 8 bits
at a time from the top: count the digits of the ranks that share the digits found so far, and see where the S-th of them lies.
The first block of a row stays in registers from the first digit to the last write. What is beyond it, in long rows only, is
made once and kept in a scratch as long as the longest row, for every program; where that would be too large, it is made anew
for every digit.
"""

import torch
import triton
import triton.language as tl

from gatas.ops import random
from gatas.ops.draw.contract import KINDS, DrawInputs, Drawn
from gatas.ops.random.cuda import stream, threefry

DRAW = tl.constexpr(random.DRAW)
SMALLEST_BLOCK, LARGEST_BLOCK = 256, 4096
LANES_PER_WARP = 256
"""Eight entries for each thread."""
LARGEST_SCRATCH = 1 << 28
"""Ranks: a gigabyte."""


def draw(given: DrawInputs) -> Drawn:
    """One program for each (model, target)."""
    targets, longest, sample_size = given.targets, given.longest, given.sample_size
    num_levels, shape = given.depth_logits.shape[1], (*targets.shape, sample_size)
    num_rows = (len(given.indptr) - 1) // num_levels
    allocate = targets.new_empty if num_rows else targets.new_zeros
    out_node, out_path, out_step, out_log, out_mask = (allocate(shape, dtype=kind) for kind in KINDS)
    block = min(max(triton.next_power_of_2(longest), SMALLEST_BLOCK), LARGEST_BLOCK)
    beyond = max(longest - block, 0)
    stored = 0 < targets.numel() * beyond <= LARGEST_SCRATCH
    scratch = targets.new_empty(targets.numel() * beyond if stored else 0, dtype=torch.int32)
    if targets.numel() and num_rows:
        with torch.cuda.device_of(targets):
            draw_row[(targets.numel(),)](
                *(tensor.contiguous() for tensor in given[:5]), *given[5:9],
                out_node, out_path, out_step, out_log, out_mask, scratch,
                targets.shape[1], num_rows, sample_size, beyond,
                LEVELS=num_levels, PADDED_LEVELS=triton.next_power_of_2(num_levels), BLOCK=block, LONG=longest > block,
                STORED=stored, NOISY=given.noisy, UNIFORM=given.uniform, num_warps=block // LANES_PER_WARP,
            )  # fmt: skip
    return out_node, out_path, out_step, out_log, out_mask


@triton.jit(do_not_specialize=["batch_size", "num_rows", "beyond"])  # they change with every batch of rows on demand
def draw_row(
    depth_logits, seed, draw, targets, positions, indptr, node, path, probability,
    out_node, out_path, out_step, out_log, out_mask, scratch, batch_size, num_rows, sample_size, beyond,
    LEVELS: tl.constexpr, PADDED_LEVELS: tl.constexpr, BLOCK: tl.constexpr, LONG: tl.constexpr, STORED: tl.constexpr,
    NOISY: tl.constexpr, UNIFORM: tl.constexpr,
):  # fmt: skip
    """The S entries of one row with the largest P / E, in row order; of equal ones the first. A row that is none is empty."""
    program = tl.program_id(0).to(tl.int64)
    model = program // batch_size
    position = tl.load(positions + program)
    found = (position >= 0) & (position < num_rows)
    levels = indptr + tl.where(found, position, 0) * LEVELS
    first = tl.load(levels, mask=found, other=0)
    size = (tl.load(levels + LEVELS, mask=found, other=0) - first).to(tl.int32)
    node, path, probability = node + first, path + first, probability + first
    end = size if LONG else 0  # where all rows fit in a block, the loops over further ones are not even compiled

    logits = depth_logits + model * LEVELS
    highest, total = softmax_terms(logits, LEVELS, PADDED_LEVELS)
    key0, key1 = stream(tl.load(seed + model), DRAW, tl.load(draw + model))
    target = (tl.load(targets + program) & 0xFFFFFFFF).to(tl.uint32)
    key0, key1 = threefry(key0, key1, target, tl.full((), 0, tl.uint32))

    head = tl.arange(0, BLOCK)
    head_bits = rank_bits(
        head, size, levels, node, path, probability, logits, highest, total, key0, key1, LEVELS, NOISY, UNIFORM
    )
    scratch += program * beyond - BLOCK
    if STORED:
        for start in range(BLOCK, end, BLOCK):
            bits = rank_bits(
                start + head, size, levels, node, path, probability, logits, highest, total, key0, key1,
                LEVELS, NOISY, UNIFORM,
            )  # fmt: skip
            tl.store(scratch + start + head, bits, mask=start + head < size)
        tl.debug_barrier()  # threads may read what others have written
    threshold, ties = -1, 0  # every rank is larger
    if size > sample_size:
        threshold, ties = 0, sample_size  # the digits found so far, and how many to take of those that share them
        for digit in range(4):
            shift = 24 - 8 * digit
            counts = digit_counts(head_bits, threshold, shift)
            for start in range(BLOCK, end, BLOCK):
                bits = later_bits(
                    start + head, scratch, size, levels, node, path, probability, logits, highest, total, key0, key1,
                    LEVELS, STORED, NOISY, UNIFORM,
                )  # fmt: skip
                counts += digit_counts(bits, threshold, shift)
            threshold, ties = next_digit(counts, threshold, ties)

    out = program * sample_size
    out_node, out_path, out_step, out_log, out_mask = (
        out_node + out, out_path + out, out_step + out, out_log + out, out_mask + out
    )  # fmt: skip
    above, equal = write_chosen(
        head, head_bits, threshold, ties, 0, 0, first, levels, node, path, probability,
        out_node, out_path, out_step, out_log, LEVELS, UNIFORM,
    )  # fmt: skip
    for start in range(BLOCK, end, BLOCK):
        bits = later_bits(
            start + head, scratch, size, levels, node, path, probability, logits, highest, total, key0, key1,
            LEVELS, STORED, NOISY, UNIFORM,
        )  # fmt: skip
        above, equal = write_chosen(
            start + head, bits, threshold, ties, above, equal, first, levels, node, path, probability,
            out_node, out_path, out_step, out_log, LEVELS, UNIFORM,
        )  # fmt: skip
    for start in range(0, sample_size, BLOCK):
        slot = start + head
        exists, unused = slot < sample_size, (slot >= size) & (slot < sample_size)
        tl.store(out_mask + slot, slot < size, mask=exists)
        tl.store(out_node + slot, 0, mask=unused)
        tl.store(out_path + slot, 0, mask=unused)
        tl.store(out_step + slot, 0, mask=unused)
        tl.store(out_log + slot, 0.0, mask=unused)


@triton.jit
def softmax_terms(logits, LEVELS: tl.constexpr, PADDED_LEVELS: tl.constexpr):
    """The largest of the depth logits, and the sum of what they are exponentials of, in float64."""
    level = tl.arange(0, PADDED_LEVELS)
    values = tl.load(logits + level, mask=level < LEVELS, other=-float("inf")).to(tl.float64)
    highest = tl.max(values, axis=0)
    return highest, tl.sum(tl.exp(values - highest), axis=0)


@triton.jit
def rank_bits(
    offset, size, levels, node, path, probability, logits, highest, total, key0, key1,
    LEVELS: tl.constexpr, NOISY: tl.constexpr, UNIFORM: tl.constexpr,
):  # fmt: skip
    """P / E of a block of entries, as int32 with the same order; without noise P; -1 beyond the row's end."""
    inside = offset < size
    chance = tl.full(offset.shape, 1.0, tl.float64)
    if not UNIFORM:
        first = tl.load(levels)
        for step in tl.static_range(LEVELS):
            depth = (tl.exp(tl.load(logits + step).to(tl.float64) - highest) / total).to(tl.float32).to(tl.float64)
            chance = tl.where(offset >= (tl.load(levels + step) - first).to(tl.int32), depth, chance)
        chance *= tl.load(probability + offset, mask=inside, other=0.0).to(tl.float64)
    if NOISY:
        neighbour = tl.load(node + offset, mask=inside, other=0).to(tl.uint32)
        high, low = threefry(key0, key1, neighbour, path_word(tl.load(path + offset, mask=inside, other=0).to(tl.int64)))
        number = (high.to(tl.int64) << 20) | (low.to(tl.int64) >> 12)
        chance /= -tl.log((number.to(tl.float64) + 0.5) * 2.220446049250313e-16)  # 2⁻⁵²
    return tl.where(inside, chance.to(tl.float32).to(tl.int32, bitcast=True), -1)


@triton.jit
def later_bits(
    offset, scratch, size, levels, node, path, probability, logits, highest, total, key0, key1,
    LEVELS: tl.constexpr, STORED: tl.constexpr, NOISY: tl.constexpr, UNIFORM: tl.constexpr,
):  # fmt: skip
    """Ranks of a block beyond the first, from the scratch if it is there."""
    if STORED:
        return tl.load(scratch + offset, mask=offset < size, other=-1)
    else:
        return rank_bits(
            offset, size, levels, node, path, probability, logits, highest, total, key0, key1, LEVELS, NOISY, UNIFORM
        )


@triton.jit
def path_word(path):
    """32 bits of a path id: the id itself, as long as it fits."""
    return (path & 0xFFFFFFFF).to(tl.uint32) ^ ((path >> 32) * 0x9E3779B9 & 0xFFFFFFFF).to(tl.uint32)


@triton.jit
def digit_counts(bits, digits, shift):
    """(256,) how often each next digit occurs among the ranks that begin with `digits`."""
    upper = bits >> shift
    return tl.histogram(upper & 255, 256, mask=(upper >> 8) == digits)


@triton.jit
def next_digit(counts, digits, wanted):
    """`digits` with the next digit of the `wanted`-th largest, and how many are wanted of those that share it."""
    digit = tl.arange(0, 256)
    from_here = tl.sum(counts, axis=0) - tl.cumsum(counts, axis=0) + counts  # how many have this digit or a larger one
    found = tl.sum((from_here >= wanted).to(tl.int32), axis=0) - 1
    return digits * 256 + found, wanted - tl.sum(tl.where(digit > found, counts, 0), axis=0)


@triton.jit
def write_chosen(
    offset, bits, threshold, ties, above_before, equal_before, first, levels, node, path, probability,
    out_node, out_path, out_step, out_log, LEVELS: tl.constexpr, UNIFORM: tl.constexpr,
):  # fmt: skip
    """Write those of a block that are above the threshold, and equal ones while `ties` last; how many there were so far."""
    is_above, is_equal = bits > threshold, bits == threshold
    above = above_before + tl.cumsum(is_above.to(tl.int32), axis=0)
    equal = equal_before + tl.cumsum(is_equal.to(tl.int32), axis=0)
    chosen = is_above | (is_equal & (equal <= ties))
    slot = above + tl.minimum(equal, ties) - 1
    step = tl.zeros(offset.shape, tl.int32)
    for later in tl.static_range(1, LEVELS):
        step += (offset >= (tl.load(levels + later) - first).to(tl.int32)).to(tl.int32)
    tl.store(out_node + slot, tl.load(node + offset, mask=chosen).to(tl.int64), mask=chosen)
    tl.store(out_path + slot, tl.load(path + offset, mask=chosen).to(tl.int64), mask=chosen)
    tl.store(out_step + slot, step.to(tl.int8), mask=chosen)
    log = tl.zeros(offset.shape, tl.float32) if UNIFORM else tl.log(tl.load(probability + offset, mask=chosen, other=1.0))
    tl.store(out_log + slot, log, mask=chosen)
    return (
        above_before + tl.sum(is_above.to(tl.int32), axis=0),
        equal_before + tl.sum(is_equal.to(tl.int32), axis=0),
    )
