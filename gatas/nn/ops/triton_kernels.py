"""The Triton functions of `nn.ops`, for GPUs; imported only where there is one, or Triton's interpreter.

Every array has a leading dimension of M independent models and is contiguous. B targets, S slots, K heads, U pairs;
J is the width of n, F that of g's hidden layer, H that of a head's output; JP, FP and HP are these as powers of two.
"""

import triton
import triton.language as tl

from gatas.sampling.triton_kernels import stream, threefry


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
def product(left, right, HALF: tl.constexpr, PRECISION: tl.constexpr):
    """Matrix product on the tensor cores: bfloat16 or TF32 in, float32 out."""
    if HALF:
        return tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16))
    return tl.dot(left, right, input_precision=PRECISION)


@triton.jit
def kept_values(words, rows, live, head, threshold, scale, H: tl.constexpr, HP: tl.constexpr):
    """0 or `scale` for a tile of values: the noise of `dropout.keep`, whose columns share a call in pairs."""
    own0 = tl.load(words + 2 * rows, mask=live, other=0).to(tl.uint32)
    own1 = tl.load(words + 2 * rows + 1, mask=live, other=0).to(tl.uint32)
    zero = tl.zeros_like(own0)[:, None]
    if H % 2 == 0:
        pair = (head * (H // 2) + tl.arange(0, HP // 2)).to(tl.uint32)
        even, odd = threefry(own0[:, None], own1[:, None], pair[None, :] + zero, zero)
        noise = tl.interleave(even, odd)
    else:
        column = head * H + tl.arange(0, HP)
        even, odd = threefry(own0[:, None], own1[:, None], (column // 2).to(tl.uint32)[None, :] + zero, zero)
        noise = tl.where((column % 2 == 0)[None, :], even, odd)
    return tl.where(noise >= tl.cast(threshold, tl.uint32), scale, 0.0)


@triton.jit
def slot_rows(index, mask, b, slot, S, offset):
    """Which row each slot of a target holds, and which slots are in use."""
    live = tl.load(mask + b * S + slot, mask=slot < S, other=0) != 0
    return tl.load(index + b * S + slot, mask=live, other=0) + offset, live


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
    target_terms, keys, score, values, words, grad_out, grad_logits, kept_weights, indptr, slots, grad, threshold, scale,
    B, S, U, K: tl.constexpr, F: tl.constexpr, H: tl.constexpr, FS: tl.constexpr, HS: tl.constexpr,
    WF: tl.constexpr, WH: tl.constexpr, PROJECTED: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """One pair, all heads side by side: gradients of its keys and values, over the slots that hold it.

    `grad` has them in rows of K·F and K·H numbers; if values were projected, of what they were before dropout and ELU.
    WF and WH are K·F and K·H as powers of two.
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
        if DROP:
            value = value / scale
            of_value = of_value * kept_row(words, row, threshold, scale, WH)
        of_value = tl.where(value > 0, of_value, of_value * (value + 1))
    tl.store(grad + row * K * (F + H) + column_f, of_key, mask=inside_f)
    tl.store(grad + row * K * (F + H) + K * F + column_h, of_value, mask=inside_h)


@triton.jit
def load_heads(base, column, inside, width: tl.constexpr, stored: tl.constexpr):
    """One row of all heads side by side, from where each is stored with padding."""
    return tl.load(base + (column // width) * stored + column % width, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def kept_row(words, row, threshold, scale, WIDTH: tl.constexpr):
    """`kept_values` for all heads of one row."""
    own0, own1 = tl.load(words + 2 * row).to(tl.uint32), tl.load(words + 2 * row + 1).to(tl.uint32)
    pair = tl.arange(0, WIDTH // 2).to(tl.uint32)
    even, odd = threefry(own0, own1, pair, tl.zeros_like(pair))
    return tl.where(tl.interleave(even, odd) >= tl.cast(threshold, tl.uint32), scale, 0.0)


@triton.jit
def tiles_forward(
    target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep, words,
    out, normaliser, threshold, scale,
    B, S, K: tl.constexpr, J: tl.constexpr, F: tl.constexpr, H: tl.constexpr,
    JP: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr, TILE: tl.constexpr,
    KEEP: tl.constexpr, DROP: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One target and head: keys and values of a tile are made from n on the tensor cores."""
    model, at = tl.program_id(1).to(tl.int64), tl.program_id(0)
    b, head = model * B + at // K, at % K
    term = load_vector(target_terms + (b * K + head) * F, F, FP)
    weight = load_vector(score + (model * K + head) * F, F, FP)
    of_key = tl.trans(load_weight(key_weight + (model * K + head) * F * J, F, FP, J, JP))
    of_value = tl.trans(load_weight(value_weight + (model * K + head) * H * J, H, HP, J, JP))
    bias = load_vector(value_bias + (model * K + head) * H, H, HP)
    top, together = -float("inf"), 0.0
    mixed = tl.zeros((HP,), tl.float32)
    for first in range(0, S, TILE):
        slot = first + tl.arange(0, TILE)
        row = b * S + slot
        live = tl.load(mask + row, mask=slot < S, other=0) != 0
        n = load_rows(neighbours, row, live, J, JP)
        key = product(n, of_key, HALF, PRECISION)
        value = elu(product(n, of_value, HALF, PRECISION) + bias[None, :])
        if DROP:
            value = value * kept_values(words, row, live, head, threshold, scale, H, HP)
        logit = tl.sum(weight[None, :] * elu(term[None, :] + key), 1)
        logit += tl.load(log_probability + row, mask=live, other=-float("inf"))
        top, together, mixed = online(logit, value, top, together, mixed, keep, row * K + head, live, KEEP)
    finish(top, together, mixed, out, normaliser, b * K + head, H, HP)


@triton.jit
def tiles_backward(
    target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep, words,
    out, normaliser, grad_out, threshold, scale,
    grad_terms, grad_neighbours, grad_key_weight, grad_score, grad_value_weight, grad_value_bias, grad_logits, head_stride,
    B, S, SHARE, K: tl.constexpr, J: tl.constexpr, F: tl.constexpr, H: tl.constexpr,
    JP: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr, TILE: tl.constexpr,
    KEEP: tl.constexpr, DROP: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One head and SHARE targets: everything is made again tile by tile; weights' gradients are added up on the way."""
    model, head, part = tl.program_id(2).to(tl.int64), tl.program_id(0), tl.program_id(1)
    weight = load_vector(score + (model * K + head) * F, F, FP)
    of_key = load_weight(key_weight + (model * K + head) * F * J, F, FP, J, JP)
    of_value = load_weight(value_weight + (model * K + head) * H * J, H, HP, J, JP)
    bias = load_vector(value_bias + (model * K + head) * H, H, HP)
    grad_weight, grad_bias = tl.zeros((FP,), tl.float32), tl.zeros((HP,), tl.float32)
    grad_of_key, grad_of_value = tl.zeros((FP, JP), tl.float32), tl.zeros((HP, JP), tl.float32)
    column_f, column_h, column_j = tl.arange(0, FP), tl.arange(0, HP), tl.arange(0, JP)
    for target in range(part * SHARE, tl.minimum((part + 1) * SHARE, B)):
        b = model * B + target
        term = load_vector(target_terms + (b * K + head) * F, F, FP)
        gradient = load_vector(grad_out + (b * K + head) * H, H, HP)
        mean = tl.sum(gradient * load_vector(out + (b * K + head) * H, H, HP), 0)
        together = tl.load(normaliser + b * K + head)
        grad_term = tl.zeros((FP,), tl.float32)
        for first in range(0, S, TILE):
            slot = first + tl.arange(0, TILE)
            row = b * S + slot
            live = tl.load(mask + row, mask=slot < S, other=0) != 0
            n = load_rows(neighbours, row, live, J, JP)
            before = product(n, tl.trans(of_value), HALF, PRECISION) + bias[None, :]
            steep = tl.exp(tl.minimum(before, 0.0))  # ELU′
            value = tl.where(before > 0, before, steep - 1)
            hidden = term[None, :] + product(n, tl.trans(of_key), HALF, PRECISION)
            slope = tl.exp(tl.minimum(hidden, 0.0))
            active = tl.where(hidden > 0, hidden, slope - 1)
            log = tl.load(log_probability + row, mask=live, other=-float("inf"))
            chance = tl.exp(tl.sum(weight[None, :] * active, 1) + log - together)
            given = gradient[None, :]
            if DROP:
                given = given * kept_values(words, row, live, head, threshold, scale, H, HP)
            gain, kept = tl.sum(given * value, 1), chance
            if KEEP:
                factor = tl.load(keep + row * K + head, mask=live, other=0.0)
                gain, kept = gain * factor, chance * factor
            push = chance * (gain - mean)  # the logits' gradient
            tl.store(grad_logits + row * K + head, push, mask=slot < S)
            grad_weight += tl.sum(push[:, None] * active, 0)
            grad_key = push[:, None] * weight[None, :] * slope
            grad_term += tl.sum(grad_key, 0)
            grad_before = kept[:, None] * given * steep
            grad_bias += tl.sum(grad_before, 0)
            grad_n = product(grad_key, of_key, HALF, PRECISION) + product(grad_before, of_value, HALF, PRECISION)
            grad_of_key += product(tl.trans(grad_key), n, HALF, PRECISION)
            grad_of_value += product(tl.trans(grad_before), n, HALF, PRECISION)
            place = grad_neighbours + head * head_stride + row[:, None] * J + column_j[None, :]
            tl.atomic_add(place, grad_n, mask=live[:, None] & (column_j < J)[None, :], sem="relaxed")
        tl.store(grad_terms + (b * K + head) * F + column_f, grad_term, mask=column_f < F)
    at = (model * tl.num_programs(1) + part) * K + head
    tl.store(grad_score + at * F + column_f, grad_weight, mask=column_f < F)
    tl.store(grad_value_bias + at * H + column_h, grad_bias, mask=column_h < H)
    store_weight(grad_key_weight + at * F * J, grad_of_key, F, FP, J, JP)
    store_weight(grad_value_weight + at * H * J, grad_of_value, H, HP, J, JP)


@triton.jit
def store_weight(base, values, rows: tl.constexpr, padded_rows: tl.constexpr, width: tl.constexpr, padded: tl.constexpr):
    row, column = tl.arange(0, padded_rows)[:, None], tl.arange(0, padded)[None, :]
    tl.store(base + row * width + column, values, mask=(row < rows) & (column < width))


@triton.jit
def holds_nothing(indptr, model, first, U, ROWS: tl.constexpr):
    """Whether no slot holds any pair of a block."""
    begin = indptr + model * (U + 1)
    return tl.load(begin + first) == tl.load(begin + tl.minimum(first + ROWS, U))


@triton.jit
def project_forward(
    neighbours, key_weight, value_weight, value_bias, words, indptr, keys, values, threshold, scale, U,
    K: tl.constexpr, J: tl.constexpr, F: tl.constexpr, H: tl.constexpr, JP: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr,
    FS: tl.constexpr, HS: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of pairs and one head: keys n · Wᵀ, and values ELU(n · Wᵀ + bias) with dropout."""
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
    if DROP:
        value = value * kept_values(words, row, live, head, threshold, scale, H, HP)
    store_rows(values, row * K + head, live, value, HS, HP)


@triton.jit
def store_rows(base, rows, live, values, width: tl.constexpr, padded: tl.constexpr):
    """Rows of a tile; what float16 cannot hold becomes the largest that it can."""
    column = tl.arange(0, padded)
    if base.dtype.element_ty == tl.float16:
        values = tl.minimum(tl.maximum(values, -65504.0), 65504.0)
    place = base + rows[:, None] * width + column[None, :]
    tl.store(place, values.to(base.dtype.element_ty), mask=live[:, None] & (column < width)[None, :])


@triton.jit
def fill_keep(
    seed, step, first, second, out, threshold, scale, R, WIDTH, PLACE: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr
):
    """out[r, c] = scale where the noise of element (first[r], second[r], c) reaches the threshold, else 0."""
    model = tl.program_id(2).to(tl.int64)
    key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    pair = tl.program_id(1) * PAIRS + tl.arange(0, PAIRS)
    live = row < R
    own0, own1 = threefry(key0, key1, name_word(first, model * R + row, live), name_word(second, model * R + row, live))
    zero = tl.zeros_like(own0)[:, None]
    even, odd = threefry(own0[:, None], own1[:, None], pair.to(tl.uint32)[None, :] + zero, zero)
    noise = tl.interleave(even, odd)
    column = tl.program_id(1) * 2 * PAIRS + tl.arange(0, 2 * PAIRS)
    place = out + (model * R + row)[:, None] * WIDTH + column[None, :]
    tl.store(
        place, tl.where(noise >= tl.cast(threshold, tl.uint32), scale, 0.0), mask=live[:, None] & (column < WIDTH)[None, :]
    )


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


@triton.jit
def name_word(names, place, live):
    return (tl.load(names + place, mask=live, other=0) & 0xFFFFFFFF).to(tl.uint32)


@triton.jit
def represent_forward(
    of_input, of_step, path_weights, node, path, out, V, E, U, C: tl.constexpr, F: tl.constexpr, FP: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """n = Σ_c β ELU(z) for a block of pairs (eq. 1)."""
    model = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = pair < U
    source = tl.load(node + model * U + pair, mask=live, other=0) + model * V
    way = tl.load(path + model * U + pair, mask=live, other=0) + model * E
    given = load_rows(of_input, source, live, F, FP)
    total = tl.zeros((ROWS, FP), tl.float32)
    for c in tl.static_range(C):
        value = elu(given + load_rows(of_step, way * C + c, live, F, FP))
        total += tl.load(path_weights + way * C + c, mask=live, other=0.0)[:, None] * value
    column = tl.arange(0, FP)
    place = out + (model * U + pair)[:, None] * F + column[None, :]
    tl.store(place, total, mask=live[:, None] & (column < F)[None, :])


@triton.jit
def represent_backward_input(
    of_input, of_step, path_weights, node, path, grad_out, grad_input, V, E, U, C: tl.constexpr, F: tl.constexpr,
    FP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Gradients of the nodes' projections, added up over the pairs that hold each node."""
    model = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = pair < U
    source = tl.load(node + model * U + pair, mask=live, other=0) + model * V
    way = tl.load(path + model * U + pair, mask=live, other=0) + model * E
    given = load_rows(of_input, source, live, F, FP)
    slope = tl.zeros((ROWS, FP), tl.float32)
    for c in tl.static_range(C):
        before = given + load_rows(of_step, way * C + c, live, F, FP)
        slope += tl.load(path_weights + way * C + c, mask=live, other=0.0)[:, None] * tl.exp(tl.minimum(before, 0.0))
    gradient = load_rows(grad_out, model * U + pair, live, F, FP) * slope
    column = tl.arange(0, FP)
    place = grad_input + source[:, None] * F + column[None, :]
    tl.atomic_add(place, gradient, mask=live[:, None] & (column < F)[None, :], sem="relaxed")


@triton.jit
def represent_backward_steps(
    of_input, of_step, path_weights, node, path, grad_out, grad_step, grad_weights, V, E, U, SHARE, C: tl.constexpr,
    F: tl.constexpr, FP: tl.constexpr, EP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Gradients of the paths' steps and weights at one position: few paths, many pairs, so sums by a one-hot product."""
    part, c, model = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    of_values = tl.zeros((EP, FP), tl.float32)
    of_weights = tl.zeros((EP,), tl.float32)
    kind = tl.arange(0, EP)
    for first in range(part * SHARE, tl.minimum((part + 1) * SHARE, U), ROWS):
        pair = first + tl.arange(0, ROWS)
        live = pair < tl.minimum((part + 1) * SHARE, U)
        way = tl.load(path + model * U + pair, mask=live, other=0)
        source = tl.load(node + model * U + pair, mask=live, other=0) + model * V
        step = (way + model * E) * C + c
        before = load_rows(of_input, source, live, F, FP) + load_rows(of_step, step, live, F, FP)
        slope = tl.exp(tl.minimum(before, 0.0))
        gradient = load_rows(grad_out, model * U + pair, live, F, FP)
        gain = tl.sum(gradient * tl.where(before > 0, before, slope - 1), 1)
        chosen = (kind[:, None] == way[None, :]) & live[None, :]
        share = tl.load(path_weights + step, mask=live, other=0.0)
        of_values += tl.dot(tl.where(chosen, share[None, :], 0.0), gradient * slope, input_precision="ieee")
        of_weights += tl.sum(tl.where(chosen, gain[None, :], 0.0), 1)
    at = (model * tl.num_programs(0) + part) * E
    column = tl.arange(0, FP)
    place = grad_step + ((at + kind) * C + c)[:, None] * F + column[None, :]
    tl.store(place, of_values, mask=(kind < E)[:, None] & (column < F)[None, :])
    tl.store(grad_weights + (at + kind) * C + c, of_weights, mask=kind < E)


@triton.jit
def nadam_norm(values, gradient, l2, partial, product, steps, P, beta1, momentum_decay, L2: tl.constexpr, BLOCK: tl.constexpr):
    """Partial sums of the gradient's square, L2 included; the first program counts the step."""
    part = tl.program_id(0)
    place = part.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < P
    slope = tl.load(gradient + place, mask=inside, other=0.0)
    if L2:
        slope += tl.load(l2 + place, mask=inside, other=0.0) * tl.load(values + place, mask=inside, other=0.0)
        tl.store(gradient + place, slope, mask=inside)
    tl.store(partial + part, tl.sum(slope * slope, 0))
    if part == 0:
        count = tl.load(steps) + 1
        tl.store(steps, count)
        tl.store(product, tl.load(product) * momentum(count, beta1, momentum_decay))


@triton.jit
def momentum(step, beta1, momentum_decay):
    return beta1 * (1 - 0.5 * tl.exp2(step * momentum_decay * -0.058893689053568565))  # 0.96 to the power


@triton.jit
def nadam_update(
    values, gradient, first, second, product, steps, lr, partial, P, PARTS, beta1, beta2, eps, momentum_decay, max_norm,
    BLOCK: tl.constexpr, PARTIAL: tl.constexpr,
):  # fmt: skip
    """A block of parameters: clip, move the moments, and step."""
    part = tl.arange(0, PARTIAL)
    norm = tl.sqrt(tl.sum(tl.load(partial + part, mask=part < PARTS, other=0.0), 0))
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < P
    slope = tl.load(gradient + place, mask=inside, other=0.0) * tl.minimum(max_norm / (norm + 1e-6), 1.0)
    m = tl.load(first + place, mask=inside, other=0.0)
    m += (slope - m) * (1 - beta1)
    v = tl.load(second + place, mask=inside, other=0.0) * beta2 + slope * slope * (1 - beta2)
    count, together = tl.load(steps), tl.load(product)
    now, later = momentum(count, beta1, momentum_decay), momentum(count + 1, beta1, momentum_decay)
    direction = slope * ((1 - now) / (1 - together)) + m * (later / (1 - together * later))
    scale = tl.sqrt(v / (1 - tl.exp2(count * tl.log2(beta2)))) + eps
    value = tl.load(values + place, mask=inside, other=0.0)
    tl.store(values + place, value - tl.load(lr) * direction / scale, mask=inside)
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)


@triton.jit
def load_features(features, nodes, place, live, column, F, eps):
    """Rows of features, normalised: (x - mean) / deviation."""
    node = tl.load(nodes + place, mask=live, other=0)
    inside = live[:, None] & (column < F)[None, :]
    x = tl.load(features + node[:, None] * F + column[None, :], mask=inside, other=0.0).to(tl.float32)
    x = tl.where(inside, x - (tl.sum(x, 1) / F)[:, None], 0.0)
    return x / tl.sqrt(tl.sum(x * x, 1) / F + eps)[:, None], node, inside


@triton.jit
def kept_features(key0, key1, node, threshold, scale, FP: tl.constexpr):
    """0 or `scale` for rows named by their node."""
    own0, own1 = threefry(key0, key1, (node & 0xFFFFFFFF).to(tl.uint32), tl.zeros_like(node).to(tl.uint32))
    zero = tl.zeros_like(own0)[:, None]
    even, odd = threefry(own0[:, None], own1[:, None], tl.arange(0, FP // 2).to(tl.uint32)[None, :] + zero, zero)
    return tl.where(tl.interleave(even, odd) >= tl.cast(threshold, tl.uint32), scale, 0.0)


@triton.jit
def normalise_forward(
    features, nodes, weight, bias, seed, step, out, threshold, scale, eps, V, F,
    PLACE: tl.constexpr, FP: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """A block of nodes: LayerNorm of their features, and noise."""
    model = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, FP)
    x, node, inside = load_features(features, nodes, model * V + row, row < V, column, F, eps)
    x = x * tl.load(weight + model * F + column, mask=column < F, other=0.0)[None, :]
    x += tl.load(bias + model * F + column, mask=column < F, other=0.0)[None, :]
    if DROP:
        key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
        x = x * kept_features(key0, key1, node, threshold, scale, FP)
    tl.store(out + (model * V + row)[:, None] * F + column[None, :], x, mask=inside)


@triton.jit
def normalise_backward(
    features, nodes, seed, step, grad_out, grad_weight, grad_bias, threshold, scale, eps, V, F, SHARE,
    PLACE: tl.constexpr, FP: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """SHARE nodes: their part of the gradients of LayerNorm's weight and bias."""
    part, model = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, FP)
    of_weight, of_bias = tl.zeros((FP,), tl.float32), tl.zeros((FP,), tl.float32)
    key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
    for first in range(part * SHARE, tl.minimum((part + 1) * SHARE, V), ROWS):
        row = first + tl.arange(0, ROWS)
        live = row < tl.minimum((part + 1) * SHARE, V)
        x, node, inside = load_features(features, nodes, model * V + row, live, column, F, eps)
        gradient = tl.load(grad_out + (model * V + row)[:, None] * F + column[None, :], mask=inside, other=0.0)
        if DROP:
            gradient = gradient * kept_features(key0, key1, node, threshold, scale, FP)
        of_weight += tl.sum(gradient * x, 0)
        of_bias += tl.sum(gradient, 0)
    at = (model * tl.num_programs(0) + part) * F + column
    tl.store(grad_weight + at, of_weight, mask=column < F)
    tl.store(grad_bias + at, of_bias, mask=column < F)
