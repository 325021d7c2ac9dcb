"""`normalise` by Triton: rows of features are read where they are, and no mask is written."""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from gatas.ops.dropout.cuda import drop, drop_of, kept_features
from gatas.ops.launch import PROGRAMS, launch, parts_of
from gatas.ops.normalise.contract import NormaliseInputs
from gatas.ops.random.cuda import stream


def forward(given: NormaliseInputs) -> Tensor:
    """(M, V, F)."""
    features, nodes, weight, bias, seed, step, place, probability, epsilon, rate = given
    (models, count), width = nodes.shape, features.shape[1]
    out = weight.new_empty(models, count, width)
    sizes = sizes_of(width, place, probability, rate)
    launch(
        normalise_forward, (triton.cdiv(count, sizes["ROWS"]), models), features, nodes, weight, bias, seed, step,
        out, rate, *drop(probability), epsilon, count, width, **sizes,
    )  # fmt: skip
    return out


def backward(given: NormaliseInputs, grad_out: Tensor) -> Tensor:
    """(M, 2, F): gradients of weight and bias."""
    features, nodes, _, _, seed, step, place, probability, epsilon, rate = given
    (models, count), width = nodes.shape, features.shape[1]
    share, parts = parts_of(count, PROGRAMS // models)
    grad = grad_out.new_empty(models, parts, 2, width)
    launch(
        normalise_backward, (parts, models), features, nodes, seed, step, grad_out, grad, rate,
        *drop(probability), epsilon, count, width, SHARE=share, **sizes_of(width, place, probability, rate),
    )  # fmt: skip
    return grad.sum(1)


def sizes_of(width: int, place: int, probability: float, rate: Tensor | None) -> dict[str, Any]:
    columns, own = int(triton.next_power_of_2(max(4, width))), rate is not None
    return {"PLACE": place, "FP": columns, "ROWS": max(1, 2048 // columns), "DROP": probability > 0 or own, "RATE": own}


@triton.jit
def load_features(features, nodes, place, live, column, F, eps):
    """Rows of features, normalised: (x - mean) / deviation."""
    node = tl.load(nodes + place, mask=live, other=0)
    inside = live[:, None] & (column < F)[None, :]
    x = tl.load(features + node[:, None] * F + column[None, :], mask=inside, other=0.0).to(tl.float32)
    x = tl.where(inside, x - (tl.sum(x, 1) / F)[:, None], 0.0)
    return x / tl.sqrt(tl.sum(x * x, 1) / F + eps)[:, None], node, inside


@triton.jit
def normalise_forward(
    features, nodes, weight, bias, seed, step, out, rate, threshold, scale, eps, V, F,
    PLACE: tl.constexpr, FP: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr, RATE: tl.constexpr,
):  # fmt: skip
    """A block of nodes: LayerNorm of their features, and noise."""
    model = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, FP)
    x, node, inside = load_features(features, nodes, model * V + row, row < V, column, F, eps)
    x = x * tl.load(weight + model * F + column, mask=column < F, other=0.0)[None, :]
    x += tl.load(bias + model * F + column, mask=column < F, other=0.0)[None, :]
    if RATE:
        threshold, scale = drop_of(rate, model)
    if DROP:
        key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
        x = x * kept_features(key0, key1, node, threshold, scale, FP)
    tl.store(out + (model * V + row)[:, None] * F + column[None, :], x, mask=inside)


@triton.jit
def normalise_backward(
    features, nodes, seed, step, grad_out, grad, rate, threshold, scale, eps, V, F, SHARE,
    PLACE: tl.constexpr, FP: tl.constexpr, ROWS: tl.constexpr, DROP: tl.constexpr, RATE: tl.constexpr,
):  # fmt: skip
    """SHARE nodes: their part of the gradients of LayerNorm's weight and bias."""
    part, model = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, FP)
    of_weight, of_bias = tl.zeros((FP,), tl.float32), tl.zeros((FP,), tl.float32)
    key0, key1 = stream(tl.load(seed + model), PLACE, tl.load(step + model))
    if RATE:
        threshold, scale = drop_of(rate, model)
    for first in range(part * SHARE, tl.minimum((part + 1) * SHARE, V), ROWS):
        row = first + tl.arange(0, ROWS)
        live = row < tl.minimum((part + 1) * SHARE, V)
        x, node, inside = load_features(features, nodes, model * V + row, live, column, F, eps)
        gradient = tl.load(grad_out + (model * V + row)[:, None] * F + column[None, :], mask=inside, other=0.0)
        if DROP:
            gradient = gradient * kept_features(key0, key1, node, threshold, scale, FP)
        of_weight += tl.sum(gradient * x, 0)
        of_bias += tl.sum(gradient, 0)
    at = (model * tl.num_programs(0) + part) * 2 * F + column
    tl.store(grad + at, of_weight, mask=column < F)
    tl.store(grad + at + F, of_bias, mask=column < F)
