"""`attend` by Triton: keys and values are given for each pair, and read where slots hold them."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gatas.ops.attend.contract import AttendInputs
from gatas.ops.launch import launch, padded
from gatas.ops.triton_rows import elu, finish, load_rows, load_vector, online

# Tiles and warps, measured at PPI's shape on an H200.
PAIRS_FORWARD: dict[str, Any] = {"TILE": 32, "num_warps": 1}
PAIRS_BACKWARD: dict[str, Any] = {"TILE": 32, "num_warps": 1}
PAIRS_SUMS: dict[str, Any] = {"num_warps": 4}


def forward(given: AttendInputs) -> tuple[Tensor, Tensor]:
    """The result, and the logarithm of each softmax's denominator."""
    return launch_pairs(given, given.values.shape[-1])


def backward(
    given: AttendInputs, out: Tensor, normaliser: Tensor, grad_out: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of target terms, keys, score, values and ln P."""
    groups = slots_by_pair(given.index, given.mask, given.keys.shape[1])
    terms, of_score, log, of_keys, of_values = launch_pairs_backward(given, out, normaliser, grad_out, *groups)
    return terms, of_keys, of_score, of_values, log


def launch_pairs(given: AttendInputs, head_size: int) -> tuple[Tensor, Tensor]:
    """(M, B, K, H) and the logarithm of each softmax's denominator, (M, B, K)."""
    models, batch, num_heads, _ = given.target_terms.shape
    out = given.target_terms.new_empty(models, batch, num_heads, head_size)
    normaliser = given.target_terms.new_empty(models, batch, num_heads)
    grid, sizes = (batch * num_heads, models), pair_sizes(given, head_size)
    launch(pairs_forward, grid, *given, out, normaliser, **sizes, KEEP=given.keep is not None, **PAIRS_FORWARD)
    return out, normaliser


def launch_pairs_backward(
    given: AttendInputs,
    out: Tensor,
    normaliser: Tensor,
    grad_out: Tensor,
    indptr: Tensor,
    slots: Tensor,
    *,
    projected: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of terms, score, ln P, keys and values.

    `indptr` and `slots` as `slots_by_pair` gives them. If values were `projected`, the last two are one tensor that holds
    both side by side, (M, U, K·F + K·H), of what they were before ELU.
    """
    target_terms, keys, score, values, index, *_ = given
    models, batch, num_heads, hidden = target_terms.shape
    sizes, head_size = pair_sizes(given, out.shape[-1]), out.shape[-1]
    terms, scores = (target_terms.new_empty(target_terms.shape) for _ in range(2))
    logits = target_terms.new_empty(*index.shape, num_heads)
    kept = torch.empty_like(logits)
    launch(
        pairs_backward, (batch * num_heads, models), *given, out, normaliser, grad_out,
        terms, scores, logits, kept, **sizes, KEEP=given.keep is not None, **PAIRS_BACKWARD,
    )  # fmt: skip
    if projected:
        of_keys = of_values = out.new_empty(models, sizes["U"], num_heads * (hidden + head_size))
    else:
        of_keys, of_values = (out.new_empty(models, sizes["U"], num_heads, width) for width in (hidden, head_size))
    launch(
        pairs_backward_sums, (sizes["U"], models),
        target_terms, keys, score, values, grad_out, logits, kept, indptr, slots,
        of_keys, of_values,
        **{name: sizes[name] for name in ("B", "S", "U", "K", "F", "H", "FS", "HS")},
        WF=padded(num_heads * hidden), WH=padded(num_heads * head_size),
        PROJECTED=projected, **PAIRS_SUMS,
    )  # fmt: skip
    return terms, scores.sum(1), logits.sum(-1), of_keys, of_values


def pair_sizes(given: AttendInputs, head_size: int) -> dict[str, int]:
    """FS and HS are the widths that keys and values are stored in, which may be padded with zeros."""
    names = ("B", "S", "U", "K", "F", "H", "FS", "HS", "FP", "HP")
    widths = (given.target_terms.shape[-1], head_size)
    stored = (given.keys.shape[-1], given.values.shape[-1])
    sizes = (*given.index.shape[1:], *given.keys.shape[1:3], *widths, *stored, *(padded(width) for width in widths))
    return dict(zip(names, sizes, strict=True))


def slots_by_pair(index: Tensor, mask: Tensor, num_pairs: int) -> tuple[Tensor, Tensor]:
    """Where each pair's slots begin, (M, U + 1), and slots in the order of the pairs they hold."""
    if torch.are_deterministic_algorithms_enabled():
        return sorted_slots(index, mask, num_pairs)
    models, count = len(index), index[0].numel()
    counts = torch.zeros(2, models, num_pairs + 1, dtype=torch.int32, device=index.device)
    slots = torch.empty(models, count, dtype=torch.int64, device=index.device)
    grid, sizes = (triton.cdiv(count, 512), models), {"SLOTS": count, "U": num_pairs, "BLOCK": 512}
    launch(count_slots, grid, index, mask, counts[0], **sizes)
    indptr = counts[0].cumsum(-1)
    launch(place_slots, grid, index, mask, indptr, counts[1], slots, **sizes)
    return indptr, slots


def sorted_slots(index: Tensor, mask: Tensor, num_pairs: int) -> tuple[Tensor, Tensor]:
    """Slots by pair, those of a pair in their own order, so that sums over them are always the same."""
    pair, slots = torch.sort(torch.where(mask, index, num_pairs).flatten(1), stable=True)
    bounds = torch.arange(num_pairs + 1, device=pair.device).expand(len(pair), -1).contiguous()
    return torch.searchsorted(pair, bounds), slots


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
