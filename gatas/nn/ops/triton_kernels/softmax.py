"""A softmax over tiles that come one after another."""

import triton
import triton.language as tl


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
