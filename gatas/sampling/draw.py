"""`gatas::draw`: samples without replacement for several models at once, by numba on a CPU and by Triton on a GPU.

M models, B targets each, S sampled pairs for each target, C + 1 levels. The table is one for all models.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.sampling import kernels
from gatas.sampling.models import fold_models
from gatas.sampling.noise import DRAW, stream
from gatas.sampling.threads import run_rows

Arrays = list[NDArray[Any]]
Drawn = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""(M, B, S): node and path, int64; step, int8; ln T, float32, 0 for a uniform sampler; mask. Unused slots hold zeros."""


@torch.library.custom_op("gatas::draw", mutates_args=(), device_types="cpu")
def draw_samples(
    depth_logits: Tensor,  # (M, C + 1)
    seed: Tensor,  # (M,) int64
    draw: Tensor,  # (M,) int64
    targets: Tensor,  # (M, B) int64
    positions: Tensor,  # (M, B) int64    the row of each target; outside the table: an empty one
    indptr: Tensor,  # these four are the table, as in `Rows`
    node: Tensor,
    path: Tensor,
    probability: Tensor,
    longest: int,  # entries in the longest row
    sample_size: int,
    noisy: bool,
    uniform: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    shape, num_rows = (*targets.shape, sample_size), (len(indptr) - 1) // depth_logits.shape[1]
    out_node, out_path = targets.new_zeros(shape), targets.new_zeros(shape)
    step, chance = torch.zeros(shape, dtype=torch.int8), torch.ones(shape, dtype=torch.float32)
    count = torch.zeros(targets.shape, dtype=torch.int64)
    depth = torch.softmax(depth_logits.double(), dim=-1).float().double().nan_to_num(0.0)  # which has no place in an order
    table = [column.numpy() for column in (indptr, node, path, probability)]
    for model in range(len(targets)):
        rows = [column[model].contiguous().numpy() for column in (positions, targets)]
        key0, key1 = (np.uint32(word) for word in stream(int(seed[model]), DRAW, int(draw[model])))
        outputs = [column[model].numpy() for column in (out_node, out_path, step, chance, count)]
        _draw_rows(table, rows, (depth[model].numpy(), key0, key1, noisy, uniform), outputs, len(node) // max(num_rows, 1))
    log_step = torch.zeros_like(chance) if uniform else chance.log_()
    return out_node, out_path, step, log_step, torch.arange(sample_size) < count[..., None]


def _draw_rows(table: Arrays, rows: Arrays, law: tuple[Any, ...], outputs: Arrays, row_size: int) -> None:
    """The rows of one model, on several threads."""

    def work(first: int, last: int) -> None:
        here = slice(first, last)
        kernels.draw_rows(*table, *(column[here] for column in rows), *law, *(column[here] for column in outputs))

    run_rows(work, len(rows[0]), row_size)


@draw_samples.register_kernel("cuda")
def _(*arguments: Any) -> Drawn:
    from gatas.sampling.triton_draw import draw_triton

    return draw_triton(*arguments)


@draw_samples.register_fake
def _(depth_logits: Tensor, seed: Tensor, draw: Tensor, targets: Tensor, *arguments: Any) -> Drawn:
    sample_size = arguments[-3]
    kinds = (torch.int64, torch.int64, torch.int8, torch.float32, torch.bool)
    node, path, step, log_step, mask = (targets.new_empty((*targets.shape, sample_size), dtype=kind) for kind in kinds)
    return node, path, step, log_step, mask


fold_models(draw_samples, shared=range(5, 9))
