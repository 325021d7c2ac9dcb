"""Attention where keys and values are made in tiles of slots, and never written."""

import triton
import triton.language as tl

from gatas.nn.ops.triton_kernels.rows import elu, load_rows, load_vector, load_weight, product, store_weight
from gatas.nn.ops.triton_kernels.softmax import finish, online


@triton.jit
def tiles_forward(
    target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep,
    out, normaliser,
    B, S, K: tl.constexpr, J: tl.constexpr, F: tl.constexpr, H: tl.constexpr,
    JP: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr, TILE: tl.constexpr,
    KEEP: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
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
        logit = tl.sum(weight[None, :] * elu(term[None, :] + key), 1)
        logit += tl.load(log_probability + row, mask=live, other=-float("inf"))
        top, together, mixed = online(logit, value, top, together, mixed, keep, row * K + head, live, KEEP)
    finish(top, together, mixed, out, normaliser, b * K + head, H, HP)


@triton.jit
def tiles_backward(
    target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep,
    out, normaliser, grad_out,
    grad_terms, grad_neighbours, grad_key_weight, grad_score, grad_value_weight, grad_value_bias, grad_logits, head_stride,
    B, S, SHARE, K: tl.constexpr, J: tl.constexpr, F: tl.constexpr, H: tl.constexpr,
    JP: tl.constexpr, FP: tl.constexpr, HP: tl.constexpr, TILE: tl.constexpr,
    KEEP: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
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
            gain, kept = tl.sum(gradient[None, :] * value, 1), chance
            if KEEP:
                factor = tl.load(keep + row * K + head, mask=live, other=0.0)
                gain, kept = gain * factor, chance * factor
            push = chance * (gain - mean)  # the logits' gradient
            tl.store(grad_logits + row * K + head, push, mask=slot < S)
            grad_weight += tl.sum(push[:, None] * active, 0)
            grad_key = push[:, None] * weight[None, :] * slope
            grad_term += tl.sum(grad_key, 0)
            grad_before = kept[:, None] * gradient[None, :] * steep
            grad_bias += tl.sum(grad_before, 0)
            grad_n = product(grad_key, of_key, HALF, PRECISION) + product(grad_before, of_value, HALF, PRECISION)
            grad_of_key += product(tl.trans(grad_key), n, HALF, PRECISION)
            grad_of_value += product(tl.trans(grad_before), n, HALF, PRECISION)
            place = grad_neighbours + head.to(tl.int64) * head_stride + row[:, None] * J + column_j[None, :]
            tl.atomic_add(place, grad_n, mask=live[:, None] & (column_j < J)[None, :], sem="relaxed")
        tl.store(grad_terms + (b * K + head) * F + column_f, grad_term, mask=column_f < F)
    at = (model * tl.num_programs(1) + part) * K + head
    tl.store(grad_score + at * F + column_f, grad_weight, mask=column_f < F)
    tl.store(grad_value_bias + at * H + column_h, grad_bias, mask=column_h < H)
    store_weight(grad_key_weight + at * F * J, grad_of_key, F, FP, J, JP)
    store_weight(grad_value_weight + at * H * J, grad_of_value, H, HP, J, JP)
