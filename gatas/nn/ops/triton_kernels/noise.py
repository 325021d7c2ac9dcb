"""Which elements dropout keeps: the noise of `ops.dropout`, made where it is used."""

import triton
import triton.language as tl

from gatas.sampling.triton_kernels import stream, threefry


@triton.jit
def name_word(names, place, live):
    return (tl.load(names + place, mask=live, other=0) & 0xFFFFFFFF).to(tl.uint32)


@triton.jit
def column_bits(own0, own1, group):
    """16 bits for each of the four columns of each group, side by side: the noise of `dropout.keep`."""
    first, second = threefry(own0, own1, group, tl.zeros_like(group))
    words = tl.interleave(first, second)
    return tl.interleave(words & 0xFFFF, words >> 16)


@triton.jit
def kept_values(words, rows, live, head, threshold, scale, H: tl.constexpr, HP: tl.constexpr):
    """0 or `scale` for a tile of one head's values, whose columns need not begin with a group."""
    own0 = tl.load(words + 2 * rows, mask=live, other=0).to(tl.uint32)[:, None]
    own1 = tl.load(words + 2 * rows + 1, mask=live, other=0).to(tl.uint32)[:, None]
    column = (head * H + tl.arange(0, HP)).to(tl.uint32)[None, :] + tl.zeros_like(own0)
    first, second = threefry(own0, own1, column >> 2, tl.zeros_like(column))
    word = tl.where((column & 2) == 0, first, second)
    bits = tl.where((column & 1) == 0, word & 0xFFFF, word >> 16)
    return tl.where(bits >= tl.cast(threshold, tl.uint32), scale, 0.0)


@triton.jit
def kept_row(words, row, threshold, scale, WIDTH: tl.constexpr):
    """`kept_values` for all heads of one row."""
    own0, own1 = tl.load(words + 2 * row).to(tl.uint32), tl.load(words + 2 * row + 1).to(tl.uint32)
    bits = column_bits(own0, own1, tl.arange(0, WIDTH // 4).to(tl.uint32))
    return tl.where(bits >= tl.cast(threshold, tl.uint32), scale, 0.0)


@triton.jit
def kept_features(key0, key1, node, threshold, scale, FP: tl.constexpr):
    """0 or `scale` for rows named by their node."""
    own0, own1 = threefry(key0, key1, (node & 0xFFFFFFFF).to(tl.uint32), tl.zeros_like(node).to(tl.uint32))
    group = tl.arange(0, FP // 4).to(tl.uint32)[None, :] + tl.zeros_like(own0)[:, None]
    bits = column_bits(own0[:, None], own1[:, None], group)
    return tl.where(bits >= tl.cast(threshold, tl.uint32), scale, 0.0)


@triton.jit
def fill_keep(
    seed, step, first, second, out, threshold, scale, R, WIDTH, PLACE: tl.constexpr, ROWS: tl.constexpr, GROUPS: tl.constexpr
):
    """out[r, c] = scale where the noise of element (first[r], second[r], c) reaches the threshold, else 0."""
    model = tl.program_id(2).to(tl.int64)
    key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = row < R
    own0, own1 = threefry(key0, key1, name_word(first, model * R + row, live), name_word(second, model * R + row, live))
    group = (tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)).to(tl.uint32)[None, :] + tl.zeros_like(own0)[:, None]
    bits = column_bits(own0[:, None], own1[:, None], group)
    column = tl.program_id(1) * 4 * GROUPS + tl.arange(0, 4 * GROUPS)
    place = out + (model * R + row)[:, None] * WIDTH + column[None, :]
    kept = tl.where(bits >= tl.cast(threshold, tl.uint32), scale, 0.0)
    tl.store(place, kept, mask=live[:, None] & (column < WIDTH)[None, :])


@triton.jit
def fill_words(seed, step, first, second, out, R, PLACE: tl.constexpr, ROWS: tl.constexpr):
    """The two words that name each row under a stream."""
    model = tl.program_id(1).to(tl.int64)
    key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = row < R
    own0, own1 = threefry(key0, key1, name_word(first, model * R + row, live), name_word(second, model * R + row, live))
    tl.store(out + 2 * (model * R + row), own0.to(tl.int64), mask=live)
    tl.store(out + 2 * (model * R + row) + 1, own1.to(tl.int64), mask=live)
