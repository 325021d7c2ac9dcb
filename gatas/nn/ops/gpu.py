"""Launches of the Triton kernels: shapes, tiles and outputs. Every tensor has a leading dimension of M models."""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from gatas.nn.ops import triton_kernels as kernels

PROGRAMS = 264
"""Programs that sum up gradients on their way: about two for each multiprocessor of a large GPU."""


@dataclass(frozen=True)
class Problem:
    """What forward and backward of `attend` share: from n and weights, or from keys and values of pairs."""

    target_terms: Tensor  # (M, B, K, F)
    neighbours: Tensor | None  # (M, U, J)
    key_weight: Tensor | None  # (M, K·F, J)
    score: Tensor  # (M, K, F)
    value_weight: Tensor | None  # (M, K·H, J)
    value_bias: Tensor | None  # (M, K·H)
    keys: Tensor | None  # (M, U, K, F)
    values: Tensor | None  # (M, U, K, H)
    index: Tensor | None  # (M, B, S); None: every slot has a pair of its own
    log_probability: Tensor  # (M, B, S)
    mask: Tensor  # (M, B, S)
    keep: Tensor | None  # (M, B, S, K)
    words: Tensor | None  # (M, U, 2)
    dropout: float
    precision: str

    @property
    def tensors(self) -> list[Tensor | None]:
        names = ("target_terms", "neighbours", "key_weight", "score", "value_weight", "value_bias", "keys", "values",
                 "index", "log_probability", "mask", "keep", "words")  # fmt: skip
        tensors = (getattr(self, name) for name in names)
        return [None if tensor is None else tensor.contiguous() for tensor in tensors]

    @property
    def noise(self) -> tuple[int, float]:
        """Threshold and scale of the values' dropout."""
        return round(self.dropout * 2**32), 1 / (1 - self.dropout)

    @property
    def head_size(self) -> int:
        width = self.values.shape[-1] if self.values is not None else self.value_weight.shape[1] // self.target_terms.shape[2]
        return int(width)

    @property
    def sizes(self) -> dict[str, Any]:
        num_heads, hidden = self.target_terms.shape[2:]
        source = self.keys if self.neighbours is None else self.neighbours
        width = hidden if self.neighbours is None else self.neighbours.shape[-1]
        return {
            "B": self.mask.shape[1], "S": self.mask.shape[2], "U": source.shape[1], "K": num_heads,
            "J": width, "F": hidden, "H": self.head_size,
            "JP": padded(width), "FP": padded(hidden), "HP": padded(self.head_size),
            "RECOMPUTE": self.neighbours is not None, "INDEXED": self.index is not None,
            "KEEP": self.keep is not None, "DROP": self.words is not None,
            "HALF": self.precision == "bfloat16", "PRECISION": "ieee" if self.precision == "bfloat16" else self.precision,
        }  # fmt: skip


def from_pairs(
    target_terms: Tensor,
    keys: Tensor,
    score: Tensor,
    values: Tensor,
    index: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
) -> Problem:
    """Keys and values of each pair are given."""
    given = (keys, values, index, log_probability, mask, keep)
    return Problem(target_terms, None, None, score, None, None, *given, None, 0.0, "ieee")


def from_neighbours(
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None,
    words: Tensor | None,
    dropout: float,
    precision: str,
) -> Problem:
    """They are to be made from n, of which each slot has its own."""
    weights = (key_weight, score, value_weight, value_bias)
    slots = (None, log_probability, mask, keep, words)
    return Problem(target_terms, neighbours, *weights, None, None, *slots, dropout, precision)


def attend_forward(problem: Problem) -> tuple[Tensor, Tensor]:
    """(M, B, K, H) and the logarithm of each softmax's denominator, (M, B, K)."""
    models, batch, num_heads, _ = problem.target_terms.shape
    out = problem.target_terms.new_empty(models, batch, num_heads, problem.head_size)
    normaliser = problem.target_terms.new_empty(models, batch, num_heads)
    grid = (batch * num_heads, models)
    launch(kernels.attend_forward, grid, *problem.tensors, out, normaliser, *problem.noise, **problem.sizes, **FORWARD)
    return out, normaliser


def attend_backward(problem: Problem, out: Tensor, normaliser: Tensor, grad_out: Tensor) -> dict[str, Tensor]:
    """Gradients by the names of what they are of."""
    models, batch, num_heads, hidden = problem.target_terms.shape
    sizes = problem.sizes
    share = triton.cdiv(batch, max(1, PROGRAMS // (models * num_heads)))
    parts = triton.cdiv(batch, share)
    empty, zeros = problem.target_terms.new_empty, problem.target_terms.new_zeros
    terms, logits = torch.empty_like(problem.target_terms), empty(models, batch, num_heads, sizes["S"])
    score = empty(models, parts, num_heads, hidden)
    recompute = problem.neighbours is not None
    apart = num_heads if torch.are_deterministic_algorithms_enabled() else 1  # heads add to the same n in any order
    neighbours = zeros(apart, *problem.neighbours.shape) if recompute else None
    key_weight = empty(models, parts, num_heads * hidden, sizes["J"]) if recompute else None
    value_weight = empty(models, parts, num_heads * sizes["H"], sizes["J"]) if recompute else None
    value_bias = empty(models, parts, num_heads * sizes["H"]) if recompute else None
    keys, values = (None, None) if recompute else (torch.zeros_like(problem.keys), torch.zeros_like(problem.values))
    head_stride = 0 if apart == 1 else problem.neighbours.numel() if recompute else 0
    launch(
        kernels.attend_backward, (num_heads, parts, models), *problem.tensors, out, normaliser, grad_out.contiguous(),
        *problem.noise, terms, neighbours, key_weight, score, value_weight, value_bias, keys, values, logits, head_stride,
        SHARE=share, **sizes, **BACKWARD,
    )  # fmt: skip
    common = {"target_terms": terms, "score": score.sum(1), "log_probability": logits.sum(2)}
    if not recompute:
        return {**common, "keys": keys, "values": values}
    return {
        **common,
        "neighbours": neighbours[0] if apart == 1 else neighbours.sum(0),
        "key_weight": key_weight.sum(1),
        "value_weight": value_weight.sum(1),
        "value_bias": value_bias.sum(1),
    }


FORWARD: dict[str, Any] = {"TILE": 64, "num_warps": 4, "num_stages": 2}
BACKWARD: dict[str, Any] = {"TILE": 64, "num_warps": 8, "num_stages": 1}


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **settings: Any) -> None:
    """Run a kernel unless there is nothing to do; None stands for a pointer that is never read."""
    if all(grid):
        kernel[grid](*arguments, **settings)


def padded(width: int) -> int:
    """The next power of two that the tensor cores take."""
    return max(16, triton.next_power_of_2(width))


def fill_keep(
    seed: Tensor, step: Tensor, place: int, first: Tensor, second: Tensor, threshold: int, scale: float, out: Tensor
) -> None:
    """Fill (M, R, width) with 0 or `scale`."""
    models, rows, width = out.shape
    pairs = min(64, triton.next_power_of_2((width + 1) // 2))
    block = max(1, 512 // pairs)
    grid = (triton.cdiv(rows, block), triton.cdiv((width + 1) // 2, pairs), models)
    launch(
        kernels.fill_keep, grid, seed.contiguous(), step.contiguous(), first.contiguous(), second.contiguous(), out,
        threshold, scale, rows, width, PLACE=place, ROWS=block, PAIRS=pairs,
    )  # fmt: skip


def row_words(seed: Tensor, step: Tensor, place: int, first: Tensor, second: Tensor) -> Tensor:
    models, rows = first.shape
    out = first.new_empty(models, rows, 2)
    launch(
        kernels.fill_words, (triton.cdiv(rows, 256), models), seed.contiguous(), step.contiguous(),
        first.contiguous(), second.contiguous(), out, rows, PLACE=place, ROWS=256,
    )  # fmt: skip
    return out


def represent_forward(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    """n, (M, U, F): of (M, V, F) projected nodes over (M, E, C, F) projected steps."""
    models, pairs = node.shape
    width = of_input.shape[-1]
    out = of_input.new_empty(models, pairs, width)
    sizes = {"V": of_input.shape[1], "E": of_step.shape[1], "U": pairs, "C": of_step.shape[2], "F": width, "FP": padded(width)}
    launch(
        kernels.represent_forward, (triton.cdiv(pairs, 32), models),
        of_input, of_step, path_weights, node, path, out, **sizes, ROWS=32,
    )  # fmt: skip
    return out


def represent_backward(
    grad_out: Tensor, of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the first three."""
    models, pairs = node.shape
    _, num_paths, num_steps, width = of_step.shape
    grad_input = torch.zeros_like(of_input)
    sizes = {"V": of_input.shape[1], "E": num_paths, "U": pairs, "C": num_steps, "F": width, "FP": padded(width)}
    given = (of_input, of_step, path_weights, node, path, grad_out)
    launch(kernels.represent_backward_input, (triton.cdiv(pairs, 32), models), *given, grad_input, **sizes, ROWS=32)
    share = triton.cdiv(triton.cdiv(pairs, max(1, PROGRAMS // (models * num_steps))), 64) * 64
    parts = triton.cdiv(pairs, share)
    grad_step = of_step.new_empty(models, parts, num_paths, num_steps, width)
    grad_weights = of_step.new_empty(models, parts, num_paths, num_steps)
    launch(
        kernels.represent_backward_steps, (parts, num_steps, models), *given, grad_step, grad_weights,
        **sizes, SHARE=share, EP=padded(num_paths), ROWS=64,
    )  # fmt: skip
    return grad_input, grad_step.sum(1), grad_weights.sum(1)
