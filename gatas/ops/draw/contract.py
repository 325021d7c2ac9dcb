"""Samples without replacement ∝ P, in plain torch.

M models, B targets each, S sampled pairs for each target, C + 1 levels. The table is one for all models.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gatas.ops.random import DRAW, WORD, stream, threefry, uniform

Drawn = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""(M, B, S): node and path, int64; step, int8; ln T, float32, 0 for a uniform sampler; mask. Unused slots hold zeros."""

KINDS = (torch.int64, torch.int64, torch.int8, torch.float32, torch.bool)


class DrawInputs(NamedTuple):
    """What a sample is a function of."""

    depth_logits: Tensor  # (M, C + 1)
    seed: Tensor  # (M,) int64
    draw: Tensor  # (M,) int64
    targets: Tensor  # (M, B) int64
    positions: Tensor  # (M, B) int64    the row of each target; outside the table: an empty one
    indptr: Tensor  # these four are the table: where the levels of rows begin, and their entries
    node: Tensor
    path: Tensor
    probability: Tensor
    longest: int  # entries in the longest row
    sample_size: int
    noisy: bool  # False: the likeliest
    uniform: bool  # every candidate alike likely


def draw_torch(given: DrawInputs) -> Drawn:
    """Take from each target's row the S entries with the largest P / E, E ~ Exp(1), in row order; of equals the first."""
    shape = (*given.targets.shape, given.sample_size)
    node, path, step, log_step, mask = (given.targets.new_zeros(shape, dtype=kind) for kind in KINDS)
    num_levels = given.depth_logits.shape[1]
    num_rows = (len(given.indptr) - 1) // num_levels
    for model, depth in enumerate(torch.softmax(given.depth_logits.double(), dim=-1).float().double()):
        for b, row in enumerate(given.positions[model].tolist()):
            if not 0 <= row < num_rows:
                continue
            levels = given.indptr[row * num_levels : (row + 1) * num_levels + 1]
            entries = torch.arange(int(levels[0]), int(levels[-1]))
            steps = torch.searchsorted(levels, entries, right=True) - 1
            chosen = torch.argsort(_ranks(given, model, b, entries, depth[steps]), descending=True, stable=True)
            chosen = chosen[: given.sample_size].sort().values
            size, kept = len(chosen), entries[chosen]
            node[model, b, :size], path[model, b, :size] = given.node[kept].long(), given.path[kept].long()
            step[model, b, :size], mask[model, b, :size] = steps[chosen].to(torch.int8), True
            log_step[model, b, :size] = 0.0 if given.uniform else given.probability[kept].log()
    return node, path, step, log_step, mask


def _ranks(given: DrawInputs, model: int, b: int, entries: Tensor, depth: Tensor) -> Tensor:
    """P / E of each entry in float32; without noise P."""
    chance = torch.ones_like(depth) if given.uniform else depth * given.probability[entries].double()
    if given.noisy:
        key = threefry(stream(int(given.seed[model]), DRAW, int(given.draw[model])), int(given.targets[model, b]) & WORD, 0)
        words = threefry(key, given.node[entries].long() & WORD, path_words(given.path[entries].long()))
        chance = chance / -uniform(words).log()
    return chance.float()


def path_words(path: Tensor) -> Tensor:
    """32 bits of path ids: the id itself, as long as it fits."""
    return (path & WORD) ^ ((path >> 32) * 0x9E3779B9 & WORD)


def shapes(given: DrawInputs) -> Drawn:
    shape = (*given.targets.shape, given.sample_size)
    node, path, step, log_step, mask = (given.targets.new_empty(shape, dtype=kind) for kind in KINDS)
    return node, path, step, log_step, mask
