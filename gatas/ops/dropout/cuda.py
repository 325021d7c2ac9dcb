"""Which elements a dropout keeps, by Triton: noise is applied as it is made."""

import triton
import triton.language as tl
from torch import Tensor

from gatas.ops.dropout.contract import KeepInputs, empty_keep, threshold_of
from gatas.ops.launch import launch
from gatas.ops.random.cuda import stream, threefry


def keep(given: KeepInputs) -> Tensor:
    """(M, R, width)."""
    out = empty_keep(given)
    models, rows, width = out.shape
    groups = min(64, triton.next_power_of_2((width + 3) // 4))
    block = max(1, 256 // groups)
    grid = (triton.cdiv(rows, block), triton.cdiv(width, 4 * groups), models)
    launch(
        fill_keep, grid, given.seed, given.step, given.first, given.second, out, given.rate, *drop(given.probability), rows,
        width, PLACE=given.place, ROWS=block, GROUPS=groups, RATE=given.rate is not None,
    )  # fmt: skip
    return out


def drop(probability: float) -> tuple[int, float]:
    """Threshold and scale."""
    return threshold_of(probability), 1 / (1 - probability)


@triton.jit
def drop_of(rate, model):
    """Threshold and scale of one model's own rate, computed in double precision as the host does."""
    own = tl.load(rate + model)
    threshold = tl.minimum(tl.maximum(tl.floor(own * 65536.0 + 0.5), 1.0), 65535.0)
    return tl.where(own > 0.0, threshold, 0.0).to(tl.int32), (1.0 / (1.0 - own)).to(tl.float32)


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
def kept_features(key0, key1, node, threshold, scale, FP: tl.constexpr):
    """0 or `scale` for rows named by their node."""
    own0, own1 = threefry(key0, key1, (node & 0xFFFFFFFF).to(tl.uint32), tl.zeros_like(node).to(tl.uint32))
    group = tl.arange(0, FP // 4).to(tl.uint32)[None, :] + tl.zeros_like(own0)[:, None]
    bits = column_bits(own0[:, None], own1[:, None], group)
    return tl.where(bits >= tl.cast(threshold, tl.uint32), scale, 0.0)


@triton.jit
def fill_keep(
    seed, step, first, second, out, rate, threshold, scale, R, WIDTH, PLACE: tl.constexpr, ROWS: tl.constexpr,
    GROUPS: tl.constexpr, RATE: tl.constexpr,
):  # fmt: skip
    """out[r, c] = scale where the noise of element (first[r], second[r], c) reaches the threshold, else 0."""
    model = tl.program_id(2).to(tl.int64)
    key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
    if RATE:
        threshold, scale = drop_of(rate, model)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = row < R
    own0, own1 = threefry(key0, key1, name_word(first, model * R + row, live), name_word(second, model * R + row, live))
    group = (tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)).to(tl.uint32)[None, :] + tl.zeros_like(own0)[:, None]
    bits = column_bits(own0[:, None], own1[:, None], group)
    column = tl.program_id(1) * 4 * GROUPS + tl.arange(0, 4 * GROUPS)
    place = out + (model * R + row)[:, None] * WIDTH + column[None, :]
    kept = tl.where(bits >= tl.cast(threshold, tl.uint32), scale, 0.0)
    tl.store(place, kept, mask=live[:, None] & (column < WIDTH)[None, :])
