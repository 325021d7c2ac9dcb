"""Attention where keys and values are made once for each pair."""

import triton
import triton.language as tl

from gatas.nn.ops.triton_kernels.rows import elu, load_rows, load_vector, load_weight, product, store_rows
from gatas.nn.ops.triton_kernels.softmax import finish, online


@triton.jit
def count_slots(index, mask, counts, SLOTS, U, BLOCK: tl.constexpr):
    """How many slots hold each pair."""
    model = tl.program_id(1).to(tl.int64)
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = tl.load(mask + model * SLOTS + slot, mask=slot < SLOTS, other=0) != 0
    pair = tl.load(index + model * SLOTS + slot, mask=live, other=0)
    tl.atomic_add(counts + model * (U + 1) + pair + 1, 1, mask=live, sem="relaxed")


@triton.jit
def place_slots(index, mask, indptr, cursor, slots, SLOTS, U, BLOCK: tl.constexpr):
    """Slots one after another by the pair they hold; those of one pair in any order."""
    model = tl.program_id(1).to(tl.int64)
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = tl.load(mask + model * SLOTS + slot, mask=slot < SLOTS, other=0) != 0
    pair = tl.load(index + model * SLOTS + slot, mask=live, other=0)
    before = tl.atomic_add(cursor + model * (U + 1) + pair, 1, mask=live, sem="relaxed")
    place = tl.load(indptr + model * (U + 1) + pair, mask=live, other=0) + before
    tl.store(slots + model * SLOTS + place, slot.to(tl.int64), mask=live)


@triton.jit
def holds_nothing(indptr, model, first, U, ROWS: tl.constexpr):
    """Whether no slot holds any pair of a block."""
    begin = indptr + model * (U + 1)
    return tl.load(begin + first) == tl.load(begin + tl.minimum(first + ROWS, U))


@triton.jit
def project_forward(
    neighbours, key_weight, value_weight, value_bias, indptr, keys, values, U,
    K: tl.constexpr, J: tl.constexpr, F: tl.constexpr, H: tl.constexpr, JP: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr,
    FS: tl.constexpr, HS: tl.constexpr, ROWS: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of pairs and one head: keys n · Wᵀ, and values ELU(n · Wᵀ + bias)."""
    model, head = tl.program_id(2).to(tl.int64), tl.program_id(1)
    if holds_nothing(indptr, model, tl.program_id(0) * ROWS, U, ROWS):
        return
    pair = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live, row = pair < U, model * U + pair
    n = load_rows(neighbours, row, live, J, JP)
    of_key = load_weight(key_weight + (model * K + head) * F * J, F, FP, J, JP)
    store_rows(keys, row * K + head, live, product(n, tl.trans(of_key), HALF, PRECISION), FS, FP)
    of_value = load_weight(value_weight + (model * K + head) * H * J, H, HP, J, JP)
    bias = load_vector(value_bias + (model * K + head) * H, H, HP)
    value = elu(product(n, tl.trans(of_value), HALF, PRECISION) + bias[None, :])
    store_rows(values, row * K + head, live, value, HS, HP)


@triton.jit
def slot_rows(index, mask, b, slot, S, offset):
    """Which row each slot of a target holds, and which slots are in use."""
    live = tl.load(mask + b * S + slot, mask=slot < S, other=0) != 0
    return tl.load(index + b * S + slot, mask=live, other=0) + offset, live


@triton.jit
def pairs_forward(
    target_terms, keys, score, values, index, log_probability, mask, keep, out, normaliser,
    B, S, U, K: tl.constexpr, F: tl.constexpr, H: tl.constexpr, FS: tl.constexpr, HS: tl.constexpr,
    FP: tl.constexpr, HP: tl.constexpr, TILE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """One target and head: logits, online softmax and Σ α V over tiles of the sample, the next tile always on its way."""
    model, at = tl.program_id(1).to(tl.int64), tl.program_id(0)
    b, head = model * B + at // K, at % K
    term = load_vector(target_terms + (b * K + head) * F, F, FP)
    weight = load_vector(score + (model * K + head) * F, F, FP)
    top, together = -float("inf"), 0.0
    mixed = tl.zeros((HP,), tl.float32)
    slot = tl.arange(0, TILE)
    row, live = slot_rows(index, mask, b, slot, S, model * U)
    key, value = load_rows(keys, row * K + head, live, FS, FP), load_rows(values, row * K + head, live, HS, HP)
    next_row, next_live = slot_rows(index, mask, b, slot + TILE, S, model * U)
    for first in range(0, S, TILE):
        next_key = load_rows(keys, next_row * K + head, next_live, FS, FP)
        next_value = load_rows(values, next_row * K + head, next_live, HS, HP)
        far_row, far_live = slot_rows(index, mask, b, first + slot + 2 * TILE, S, model * U)
        logit = tl.sum(weight[None, :] * elu(term[None, :] + key), 1)
        logit += tl.load(log_probability + b * S + first + slot, mask=live, other=-float("inf"))
        place = (b * S + first + slot) * K + head
        top, together, mixed = online(logit, value, top, together, mixed, keep, place, live, KEEP)
        key, value, live = next_key, next_value, next_live
        next_row, next_live = far_row, far_live
    finish(top, together, mixed, out, normaliser, b * K + head, H, HP)


@triton.jit
def pairs_backward(
    target_terms, keys, score, values, index, log_probability, mask, keep, out, normaliser, grad_out,
    grad_terms, grad_score, grad_logits, kept_weights,
    B, S, U, K: tl.constexpr, F: tl.constexpr, H: tl.constexpr, FS: tl.constexpr, HS: tl.constexpr,
    FP: tl.constexpr, HP: tl.constexpr, TILE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """One target and head: gradients of its terms, its logits and, its part of them, the score."""
    model, at = tl.program_id(1).to(tl.int64), tl.program_id(0)
    b, head = model * B + at // K, at % K
    term = load_vector(target_terms + (b * K + head) * F, F, FP)
    weight = load_vector(score + (model * K + head) * F, F, FP)
    gradient = load_vector(grad_out + (b * K + head) * H, H, HP)
    mean = tl.sum(gradient * load_vector(out + (b * K + head) * H, H, HP), 0)
    together = tl.load(normaliser + b * K + head)
    grad_term, grad_weight = tl.zeros((FP,), tl.float32), tl.zeros((FP,), tl.float32)
    slot = tl.arange(0, TILE)
    for first in range(0, S, TILE):
        row, live = slot_rows(index, mask, b, first + slot, S, model * U)
        key, value = load_rows(keys, row * K + head, live, FS, FP), load_rows(values, row * K + head, live, HS, HP)
        hidden = term[None, :] + key
        slope = tl.exp(tl.minimum(hidden, 0.0))  # ELU′
        active = tl.where(hidden > 0, hidden, slope - 1)
        log = tl.load(log_probability + b * S + first + slot, mask=live, other=-float("inf"))
        chance = tl.exp(tl.sum(weight[None, :] * active, 1) + log - together)
        gain, kept = tl.sum(gradient[None, :] * value, 1), chance
        place = (b * S + first + slot) * K + head
        if KEEP:
            factor = tl.load(keep + place, mask=live, other=0.0)
            gain, kept = gain * factor, chance * factor
        push = chance * (gain - mean)  # the logits' gradient
        tl.store(grad_logits + place, push, mask=first + slot < S)
        tl.store(kept_weights + place, kept, mask=first + slot < S)
        grad_weight += tl.sum(push[:, None] * active, 0)
        grad_term += tl.sum(push[:, None] * slope, 0)
    column = tl.arange(0, FP)
    tl.store(grad_terms + (b * K + head) * F + column, weight * grad_term, mask=column < F)
    tl.store(grad_score + (b * K + head) * F + column, grad_weight, mask=column < F)


@triton.jit
def pairs_backward_sums(
    target_terms, keys, score, values, grad_out, grad_logits, kept_weights, indptr, slots,
    of_keys, of_values,
    B, S, U, K: tl.constexpr, F: tl.constexpr, H: tl.constexpr, FS: tl.constexpr, HS: tl.constexpr,
    WF: tl.constexpr, WH: tl.constexpr, PROJECTED: tl.constexpr,
):  # fmt: skip
    """One pair, all heads side by side: gradients of its keys and values, over the slots that hold it.

    If values were projected, of what they were before ELU, and both in one tensor, side by side. WF and WH are
    K·F and K·H as powers of two.
    """
    model, pair = tl.program_id(1).to(tl.int64), tl.program_id(0)
    first, last = tl.load(indptr + model * (U + 1) + pair), tl.load(indptr + model * (U + 1) + pair + 1)
    row = model * U + pair
    column_f, column_h = tl.arange(0, WF), tl.arange(0, WH)
    inside_f, inside_h = column_f < K * F, column_h < K * H
    key = load_heads(keys + row * K * FS, column_f, inside_f & (first < last), F, FS)
    of_key, of_value = tl.zeros((WF,), tl.float32), tl.zeros((WH,), tl.float32)
    slots += model * B * S
    slot = tl.load(slots + first, mask=first < last, other=0)
    for at in range(first, last):
        next_slot = tl.load(slots + at + 1, mask=at + 1 < last, other=0)  # on its way while this one is worked on
        b, heads = model * B + slot // S, (model * B * S + slot) * K
        hidden = tl.load(target_terms + b * K * F + column_f, mask=inside_f, other=0.0) + key
        push = tl.load(grad_logits + heads + column_f // F, mask=inside_f, other=0.0)
        kept = tl.load(kept_weights + heads + column_h // H, mask=inside_h, other=0.0)
        of_key += push * tl.exp(tl.minimum(hidden, 0.0))
        of_value += kept * tl.load(grad_out + b * K * H + column_h, mask=inside_h, other=0.0)
        slot = next_slot
    of_key *= tl.load(score + model * K * F + column_f, mask=inside_f, other=0.0)
    if PROJECTED:
        held = inside_h & (first < last)  # what no slot holds was never written
        value = load_heads(values + row * K * HS, column_h, held, H, HS)
        of_value = tl.where(value > 0, of_value, of_value * (value + 1))
    of_keys += row * K * (F + H if PROJECTED else F)
    of_values += row * K * (F + H) + K * F if PROJECTED else row * K * H
    tl.store(of_keys + column_f, of_key, mask=inside_f)
    tl.store(of_values + column_h, of_value, mask=inside_h)


@triton.jit
def load_heads(base, column, inside, width: tl.constexpr, stored: tl.constexpr):
    """One row of all heads side by side, from where each is stored with padding."""
    return tl.load(base + (column // width) * stored + column % width, mask=inside, other=0.0).to(tl.float32)
