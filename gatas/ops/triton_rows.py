"""Triton functions over tiles of rows, read and written with padding, and a softmax over tiles that come one after another."""

import triton
import triton.language as tl


@triton.jit
def elu(x):
    return tl.where(x > 0, x, tl.exp(tl.minimum(x, 0.0)) - 1)


@triton.jit
def load_rows(base, rows, live, width: tl.constexpr, padded: tl.constexpr):
    """A tile of rows, zeros where not live and beyond the width."""
    column = tl.arange(0, padded)
    inside = live[:, None] & (column < width)[None, :]
    return tl.load(base + rows[:, None] * width + column[None, :], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def load_weight(base, rows: tl.constexpr, padded_rows: tl.constexpr, width: tl.constexpr, padded: tl.constexpr):
    """One head's matrix, (rows, width), padded with zeros."""
    row = tl.arange(0, padded_rows)
    return load_rows(base, row, row < rows, width, padded)


@triton.jit
def load_vector(base, width: tl.constexpr, padded: tl.constexpr):
    column = tl.arange(0, padded)
    return tl.load(base + column, mask=column < width, other=0.0)


@triton.jit
def store_rows(base, rows, live, values, width: tl.constexpr, padded: tl.constexpr):
    """Rows of a tile; what float16 cannot hold becomes NaN, which reaches the loss: larger numbers are never passed for it."""
    column = tl.arange(0, padded)
    if base.dtype.element_ty == tl.float16:
        values = tl.where(tl.abs(values) <= 65504.0, values, float("nan"))
    place = base + rows[:, None] * width + column[None, :]
    tl.store(place, values.to(base.dtype.element_ty), mask=live[:, None] & (column < width)[None, :])


@triton.jit
def store_weight(base, values, rows: tl.constexpr, padded_rows: tl.constexpr, width: tl.constexpr, padded: tl.constexpr):
    row, column = tl.arange(0, padded_rows)[:, None], tl.arange(0, padded)[None, :]
    tl.store(base + row * width + column, values, mask=(row < rows) & (column < width))


@triton.jit
def product(left, right, HALF: tl.constexpr, PRECISION: tl.constexpr):
    """Matrix product on the tensor cores: bfloat16 or TF32 in, float32 out."""
    if HALF:
        return tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16))
    return tl.dot(left, right, input_precision=PRECISION)


@triton.jit
def online(logit, value, top, together, mixed, keep, place, live, KEEP: tl.constexpr):
    """One tile more in a softmax that has been seen so far: its largest logit, its denominator, its sum of values."""
    new_top = tl.maximum(top, tl.max(logit, 0))
    safe = tl.where(new_top == -float("inf"), 0.0, new_top)
    chance, shrink = tl.exp(logit - safe), tl.exp(top - safe)
    together = together * shrink + tl.sum(chance, 0)
    if KEEP:
        chance = chance * tl.load(keep + place, mask=live, other=0.0)
    return new_top, together, mixed * shrink + tl.sum(chance[:, None] * value, 0)


@triton.jit
def finish(top, together, mixed, out, normaliser, at, H: tl.constexpr, HP: tl.constexpr):
    """Store what the softmax gives; an empty sample gives zeros."""
    some = together > 0
    together = tl.where(some, together, 1.0)
    column = tl.arange(0, HP)
    tl.store(out + at * H + column, mixed / together, mask=column < H)
    tl.store(normaliser + at, tl.where(some, top, 0.0) + tl.log(together))
