"""Launches of attention's Triton kernels: shapes, tiles and outputs. Every tensor has a leading dimension of M models."""

from typing import Any

import torch
import triton
from torch import Tensor
from torch.nn.functional import pad

from gatas.nn.ops import triton_kernels as kernels
from gatas.nn.ops.attend_neighbours import stored_width

PROGRAMS = 264
"""Programs that sum up gradients on their way: about two for each multiprocessor of a large GPU."""

# Tiles and warps, measured at PPI's shape on an H200.
PAIRS_FORWARD: dict[str, Any] = {"TILE": 32, "num_warps": 1}
PAIRS_BACKWARD: dict[str, Any] = {"TILE": 32, "num_warps": 1}
PAIRS_SUMS: dict[str, Any] = {"num_warps": 4}
PROJECT: dict[str, Any] = {"ROWS": 64, "num_warps": 8}
TILES_FORWARD: dict[str, Any] = {"TILE": 64, "num_warps": 4, "num_stages": 2}
TILES_BACKWARD: dict[str, Any] = {"TILE": 32, "num_warps": 4, "num_stages": 2}


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **settings: Any) -> None:
    """Run a kernel unless there is nothing to do; None stands for a pointer that is never read.

    Inputs are made contiguous; what is filled must be, or a copy of it would be.
    """
    if all(grid):
        given = [argument.contiguous() if isinstance(argument, Tensor) else argument for argument in arguments]
        with torch.cuda.device_of(given[0]):  # type: ignore[no-untyped-call]
            kernel[grid](*given, **settings)


def padded(width: int) -> int:
    """The next power of two that the tensor cores take."""
    return int(max(16, triton.next_power_of_2(width)))


def parts_of(count: int, programs: int) -> tuple[int, int]:
    """(share, parts): how many of `count` each of up to about so many programs takes."""
    share = triton.cdiv(count, max(1, programs))
    return share, triton.cdiv(count, max(1, share))


def pairs_forward(
    target_terms: Tensor,  # (M, B, K, F)
    keys: Tensor,  # (M, U, K, F)
    score: Tensor,  # (M, K, F)
    values: Tensor,  # (M, U, K, H)
    index: Tensor,  # (M, B, S)
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,  # (M, B, S, K)
    head_size: int,
) -> tuple[Tensor, Tensor]:
    """(M, B, K, H) and the logarithm of each softmax's denominator, (M, B, K)."""
    models, batch, num_heads, _ = target_terms.shape
    out = target_terms.new_empty(models, batch, num_heads, head_size)
    normaliser = target_terms.new_empty(models, batch, num_heads)
    launch(
        kernels.pairs_forward, (batch * num_heads, models),
        target_terms, keys, score, values, index, log_probability, mask, keep, out, normaliser,
        **pair_sizes(target_terms, out, keys, values, index), KEEP=keep is not None, **PAIRS_FORWARD,
    )  # fmt: skip
    return out, normaliser


def pairs_backward(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
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
    models, batch, num_heads, hidden = target_terms.shape
    sizes, head_size = pair_sizes(target_terms, out, keys, values, index), out.shape[-1]
    terms, scores = (target_terms.new_empty(target_terms.shape) for _ in range(2))
    logits = target_terms.new_empty(*index.shape, num_heads)
    kept = torch.empty_like(logits)
    launch(
        kernels.pairs_backward, (batch * num_heads, models),
        target_terms, keys, score, values, index, log_probability, mask, keep, out, normaliser, grad_out,
        terms, scores, logits, kept, **sizes, KEEP=keep is not None, **PAIRS_BACKWARD,
    )  # fmt: skip
    if projected:
        of_keys = of_values = out.new_empty(models, sizes["U"], num_heads * (hidden + head_size))
    else:
        of_keys, of_values = (out.new_empty(models, sizes["U"], num_heads, width) for width in (hidden, head_size))
    launch(
        kernels.pairs_backward_sums, (sizes["U"], models),
        target_terms, keys, score, values, grad_out, logits, kept, indptr, slots,
        of_keys, of_values,
        **{name: sizes[name] for name in ("B", "S", "U", "K", "F", "H", "FS", "HS")},
        WF=padded(num_heads * hidden), WH=padded(num_heads * head_size),
        PROJECTED=projected, **PAIRS_SUMS,
    )  # fmt: skip
    return terms, scores.sum(1), logits.sum(-1), of_keys, of_values


def pair_sizes(target_terms: Tensor, out: Tensor, keys: Tensor, values: Tensor, index: Tensor) -> dict[str, int]:
    """FS and HS are the widths that keys and values are stored in, which may be padded with zeros."""
    names = ("B", "S", "U", "K", "F", "H", "FS", "HS", "FP", "HP")
    widths = (target_terms.shape[-1], out.shape[-1])
    stored = (keys.shape[-1], values.shape[-1])
    sizes = (*index.shape[1:], *keys.shape[1:3], *widths, *stored, *(padded(width) for width in widths))
    return dict(zip(names, sizes, strict=True))


def slots_by_pair(index: Tensor, mask: Tensor, num_pairs: int) -> tuple[Tensor, Tensor]:
    """Where each pair's slots begin, (M, U + 1), and slots in the order of the pairs they hold."""
    if torch.are_deterministic_algorithms_enabled():
        return sorted_slots(index, mask, num_pairs)
    models, count = len(index), index[0].numel()
    counts = torch.zeros(2, models, num_pairs + 1, dtype=torch.int32, device=index.device)
    slots = torch.empty(models, count, dtype=torch.int64, device=index.device)
    grid, sizes = (triton.cdiv(count, 512), models), {"SLOTS": count, "U": num_pairs, "BLOCK": 512}
    launch(kernels.count_slots, grid, index, mask, counts[0], **sizes)
    indptr = counts[0].cumsum(-1)
    launch(kernels.place_slots, grid, index, mask, indptr, counts[1], slots, **sizes)
    return indptr, slots


def sorted_slots(index: Tensor, mask: Tensor, num_pairs: int) -> tuple[Tensor, Tensor]:
    """The same with the slots of a pair in their own order, so that sums over them are always the same."""
    pair, slots = torch.sort(torch.where(mask, index, num_pairs).flatten(1), stable=True)
    bounds = torch.arange(num_pairs + 1, device=pair.device).expand(len(pair), -1).contiguous()
    return torch.searchsorted(pair, bounds), slots


def tiles_forward(
    target_terms: Tensor,  # (M, B, K, F)
    score: Tensor,  # (M, K, F)
    neighbours: Tensor,  # (M, B·S, J)
    key_weight: Tensor,  # (M, K·F, J)
    value_weight: Tensor,  # (M, K·H, J)
    value_bias: Tensor,  # (M, K·H)
    log_probability: Tensor,  # (M, B, S)
    mask: Tensor,
    keep: Tensor | None,  # (M, B, S, K)
    precision: str,
) -> tuple[Tensor, Tensor]:
    """(M, B, K, H) and the logarithm of each softmax's denominator, (M, B, K)."""
    models, batch, num_heads, _ = target_terms.shape
    out = target_terms.new_empty(models, batch, num_heads, value_bias.shape[1] // num_heads)
    normaliser = target_terms.new_empty(models, batch, num_heads)
    launch(
        kernels.tiles_forward, (batch * num_heads, models),
        target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep,
        out, normaliser,
        B=batch, S=mask.shape[-1], **weight_sizes(key_weight, value_weight, num_heads),
        **tile_settings(keep, precision), **TILES_FORWARD,
    )  # fmt: skip
    return out, normaliser


def tiles_backward(
    target_terms: Tensor,
    score: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    precision: str,
    out: Tensor,
    normaliser: Tensor,
    grad_out: Tensor,
) -> list[Tensor]:
    """Gradients of terms, n, weights as they come in the kernel, and ln P."""
    models, batch, num_heads, _ = target_terms.shape
    share, parts = parts_of(batch, PROGRAMS // (models * num_heads))
    apart = torch.are_deterministic_algorithms_enabled()  # heads add to the same n, in any order unless each has its own
    of_neighbours = neighbours.new_zeros(num_heads if apart else 1, *neighbours.shape)
    terms, logits = (target_terms.new_empty(shape) for shape in (target_terms.shape, (*mask.shape, num_heads)))
    of_key, of_score, of_value, of_bias = (
        tensor.new_empty(models, parts, *tensor.shape[1:]) for tensor in (key_weight, score, value_weight, value_bias)
    )
    launch(
        kernels.tiles_backward, (num_heads, parts, models),
        target_terms, neighbours, key_weight, score, value_weight, value_bias, log_probability, mask, keep,
        out, normaliser, grad_out,
        terms, of_neighbours, of_key, of_score, of_value, of_bias, logits, neighbours.numel() if apart else 0,
        B=batch, S=mask.shape[-1], SHARE=share, **weight_sizes(key_weight, value_weight, num_heads),
        **tile_settings(keep, precision), **TILES_BACKWARD,
    )  # fmt: skip
    sums = (of_neighbours.sum(0), of_key.sum(1), of_score.sum(1), of_value.sum(1), of_bias.sum(1))
    return [terms, *sums, logits.sum(-1)]


def weight_sizes(key_weight: Tensor, value_weight: Tensor, num_heads: int) -> dict[str, int]:
    hidden, head_size, width = key_weight.shape[1] // num_heads, value_weight.shape[1] // num_heads, key_weight.shape[2]
    return {
        "K": num_heads, "J": width, "F": hidden, "H": head_size,
        "JP": padded(width), "FP": padded(hidden), "HP": padded(head_size),
    }  # fmt: skip


def tile_settings(keep: Tensor | None, precision: str) -> dict[str, Any]:
    half = precision == "bfloat16"
    return {"KEEP": keep is not None, "HALF": half, "PRECISION": "ieee" if half else precision}


def project_forward(
    neighbours: Tensor,  # (M, U, J)
    key_weight: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    precision: str,
    indptr: Tensor,  # (M, U + 1)
    num_heads: int,
) -> tuple[Tensor, Tensor]:
    """Keys (M, U, K, FS) and values (M, U, K, HS) of pairs that slots hold, in float16 if products are no more exact."""
    models, pairs, _ = neighbours.shape
    sizes = project_sizes(key_weight, value_weight, num_heads)
    kind = torch.float32 if precision == "ieee" else torch.float16
    keys, values = (neighbours.new_empty(models, pairs, num_heads, sizes[name], dtype=kind) for name in ("FS", "HS"))
    launch(
        kernels.project_forward, (triton.cdiv(pairs, PROJECT["ROWS"]), num_heads, models),
        neighbours, key_weight, value_weight, value_bias, indptr, keys, values, pairs,
        **sizes, **project_settings(precision),
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


def project_sizes(key_weight: Tensor, value_weight: Tensor, num_heads: int) -> dict[str, int]:
    """FS and HS: widths are padded to multiples of eight, so that loads are 16 bytes wide."""
    sizes = weight_sizes(key_weight, value_weight, num_heads)
    return {**sizes, "FS": stored_width(sizes["F"]), "HS": stored_width(sizes["H"])}


def project_settings(precision: str) -> dict[str, Any]:
    settings = tile_settings(None, precision)
    return {**PROJECT, **{name: settings[name] for name in ("HALF", "PRECISION")}}
