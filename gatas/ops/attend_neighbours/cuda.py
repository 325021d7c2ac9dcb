"""`attend_neighbours` by Triton: keys and values are made once for each pair, or in tiles of slots and never written."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from gatas.ops.attend.contract import AttendInputs
from gatas.ops.attend.cuda import launch_pairs, launch_pairs_backward, slots_by_pair
from gatas.ops.attend_neighbours.contract import NeighbourInputs, stored_type, stored_width
from gatas.ops.launch import PROGRAMS, launch, padded, parts_of
from gatas.ops.triton_rows import (
    elu,
    finish,
    load_rows,
    load_vector,
    load_weight,
    online,
    product,
    store_rows,
    store_weight,
)

# Tiles and warps, measured at PPI's shape on an H200.
PROJECT: dict[str, Any] = {"ROWS": 64, "num_warps": 8}
TILES_FORWARD: dict[str, Any] = {"TILE": 64, "num_warps": 4, "num_stages": 2}
TILES_BACKWARD: dict[str, Any] = {"TILE": 32, "num_warps": 4, "num_stages": 2}


def forward(given: NeighbourInputs) -> list[Tensor]:
    """The result, and what backward needs: the softmax's denominators; with an index also keys, values, and slots by pair."""
    if given.index is None:
        return [*launch_tiles(given)]
    groups = slots_by_pair(given.index, given.mask, given.neighbours.shape[1])
    keys, values = launch_project(given, groups[0])
    head_size = given.value_weight.shape[1] // given.score.shape[1]
    return [*launch_pairs(with_pairs(given, keys, values), head_size), keys, values, *groups]


def backward(given: NeighbourInputs, results: list[Tensor], grad_out: Tensor) -> list[Tensor]:
    """Gradients of the six terms and weights, and of ln P."""
    out, normaliser, *pairwise = results
    if given.index is None:
        return launch_tiles_backward(given, out, normaliser, grad_out)
    keys, values, indptr, members = pairwise
    pairs = with_pairs(given, keys, values)
    of_terms, of_score, of_log, of_pairs, _ = launch_pairs_backward(
        pairs, out, normaliser, grad_out, indptr, members, projected=True
    )
    of_neighbours, of_key, of_value, of_bias = project_backward(
        given.neighbours, given.key_weight, given.value_weight, of_pairs
    )
    return [of_terms, of_neighbours, of_key, of_score, of_value, of_bias, of_log]


def with_pairs(given: NeighbourInputs, keys: Tensor, values: Tensor) -> AttendInputs:
    assert given.index is not None
    slots = (given.index, given.log_probability, given.mask, given.keep)
    return AttendInputs(given.target_terms, keys, given.score, values, *slots)


def launch_tiles(given: NeighbourInputs) -> tuple[Tensor, Tensor]:
    """(M, B, K, H) and the logarithm of each softmax's denominator, (M, B, K)."""
    *weights, _, log_probability, mask, keep, precision, _ = given
    models, batch, num_heads, _ = given.target_terms.shape
    out = given.target_terms.new_empty(models, batch, num_heads, given.value_bias.shape[1] // num_heads)
    normaliser = given.target_terms.new_empty(models, batch, num_heads)
    launch(
        tiles_forward, (batch * num_heads, models), *weights, log_probability, mask, keep, out, normaliser,
        B=batch, S=mask.shape[-1], **weight_sizes(given), **tile_settings(keep, precision), **TILES_FORWARD,
    )  # fmt: skip
    return out, normaliser


def launch_tiles_backward(given: NeighbourInputs, out: Tensor, normaliser: Tensor, grad_out: Tensor) -> list[Tensor]:
    """Gradients of terms, n, weights as they come in the kernel, and ln P."""
    target_terms, neighbours, *weights, _, log_probability, mask, keep, precision, _ = given
    models, batch, num_heads, _ = target_terms.shape
    share, parts = parts_of(batch, PROGRAMS // (models * num_heads))
    apart = torch.are_deterministic_algorithms_enabled()  # heads add to the same n, in any order unless each has its own
    of_neighbours = neighbours.new_zeros(num_heads if apart else 1, *neighbours.shape)
    terms, logits = (target_terms.new_empty(shape) for shape in (target_terms.shape, (*mask.shape, num_heads)))
    of_weights = [tensor.new_empty(models, parts, *tensor.shape[1:]) for tensor in weights]
    launch(
        tiles_backward, (num_heads, parts, models),
        target_terms, neighbours, *weights, log_probability, mask, keep, out, normaliser, grad_out,
        terms, of_neighbours, *of_weights, logits, neighbours.numel() if apart else 0,
        B=batch, S=mask.shape[-1], SHARE=share, **weight_sizes(given), **tile_settings(keep, precision), **TILES_BACKWARD,
    )  # fmt: skip
    return [terms, of_neighbours.sum(0), *(of_weight.sum(1) for of_weight in of_weights), logits.sum(-1)]


def weight_sizes(given: NeighbourInputs) -> dict[str, int]:
    num_heads, width = given.score.shape[1], given.key_weight.shape[2]
    hidden, head_size = given.key_weight.shape[1] // num_heads, given.value_weight.shape[1] // num_heads
    return {
        "K": num_heads, "J": width, "F": hidden, "H": head_size,
        "JP": padded(width), "FP": padded(hidden), "HP": padded(head_size),
    }  # fmt: skip


def tile_settings(keep: Tensor | None, precision: str) -> dict[str, Any]:
    half = precision == "bfloat16"
    return {"KEEP": keep is not None, "HALF": half, "PRECISION": "ieee" if half else precision}


def launch_project(given: NeighbourInputs, indptr: Tensor) -> tuple[Tensor, Tensor]:
    """Keys (M, U, K, FS) and values (M, U, K, HS) of pairs that slots hold, in the type they are stored in.

    `indptr` is where each pair's slots begin. FS and HS are padded to multiples of eight, so that loads are 16 bytes wide.
    """
    (models, pairs, _), num_heads = given.neighbours.shape, given.score.shape[1]
    sizes = weight_sizes(given)
    sizes |= {"FS": stored_width(sizes["F"]), "HS": stored_width(sizes["H"])}
    kind = stored_type(given.precision, given.storage)
    keys, values = (given.neighbours.new_empty(models, pairs, num_heads, sizes[name], dtype=kind) for name in ("FS", "HS"))
    settings = tile_settings(None, given.precision)
    launch(
        project_forward, (triton.cdiv(pairs, PROJECT["ROWS"]), num_heads, models),
        given.neighbours, given.key_weight, given.value_weight, given.value_bias, indptr, keys, values, pairs,
        **sizes, **PROJECT, HALF=settings["HALF"], PRECISION=settings["PRECISION"],
    )  # fmt: skip
    return keys, values


def project_backward(
    neighbours: Tensor, key_weight: Tensor, value_weight: Tensor, of_pairs: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of n, of both weights and of the values' bias, from those of the products.

    A column of ones beside n makes the bias one more weight; both are padded to what cuBLAS reads 16 bytes at a time.
    """
    split, width = key_weight.shape[1:]
    more = 4 - width % 4
    of_neighbours = of_pairs @ pad(torch.cat([key_weight, value_weight], dim=1), (0, more))
    of_weights = of_pairs.mT @ pad(neighbours, (0, more), value=1.0)
    parts = (
        of_neighbours[..., :width],
        of_weights[:, :split, :width],
        of_weights[:, split:, :width],
        of_weights[:, split:, width],
    )
    of_neighbours, of_key, of_value, of_bias = (part.clone(memory_format=torch.contiguous_format) for part in parts)
    return of_neighbours, of_key, of_value, of_bias


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
