"""Which elements a dropout keeps: noise of (seed, place, step, row, column), the same bits on every device."""

import numpy as np
import torch
from torch import Tensor

from gatas.nn.ops import noise_kernels
from gatas.sampling.models import fold_models
from gatas.sampling.noise import WORD, Noise, stream, threefry
from gatas.sampling.threads import run_rows


def keep(noise: Noise, place: int, first: Tensor, second: Tensor, width: int, probability: float) -> Tensor:
    """(R, width) float32: 0 with the given probability, else 1 / (1 - probability). Row r is named by first[r], second[r]."""
    kept: Tensor = _keep(noise.seed[None], noise.step[None], place, first[None], second[None], width, probability)
    return kept.squeeze(0)


def threshold_of(probability: float) -> int:
    """Elements whose 16 bits are below it are dropped; at least one value is, and one is not, if there is to be dropout."""
    return min(max(round(probability * 2**16), 1), 2**16 - 1) if probability else 0


def keep_torch(noise: Noise, place: int, first: Tensor, second: Tensor, width: int, probability: float) -> Tensor:
    """`keep`, slow and obvious: one call of the generator makes two words, and with their halves four columns."""
    own = threefry(stream(noise.seed, place, noise.step), first & WORD, second & WORD)
    group = torch.arange((width + 3) // 4, device=first.device)
    words = threefry((own[0][:, None], own[1][:, None]), group, torch.zeros_like(group))
    halves = [half for word in words for half in (word & 0xFFFF, word >> 16)]
    bits = torch.stack(halves, dim=-1).flatten(1)[:, :width]
    return (bits >= threshold_of(probability)).float() / (1 - probability)


@torch.library.custom_op("gatas::keep", mutates_args=())
def _keep(
    seed: Tensor, step: Tensor, place: int, first: Tensor, second: Tensor, width: int, probability: float
) -> Tensor:  # (M,), (M,), (M, R), (M, R) → (M, R, width)
    out = torch.empty(*first.shape, width, device=first.device)
    if first.is_cuda:
        from gatas.nn.ops import gpu_layers

        gpu_layers.fill_keep(seed, step, place, first, second, threshold_of(probability), 1 / (1 - probability), out)
        return out
    for model, kept in enumerate(out):
        key = stream(int(seed[model]), place, int(step[model]))
        _fill_numba(key, first[model], second[model], probability, kept)
    return out


@_keep.register_fake
def _(seed: Tensor, step: Tensor, place: int, first: Tensor, second: Tensor, width: int, probability: float) -> Tensor:
    return torch.empty(*first.shape, width, device=first.device)


fold_models(_keep)


def _fill_numba(key: tuple[int, int], first: Tensor, second: Tensor, probability: float, out: Tensor) -> None:
    target, names = out.numpy(), (first.contiguous().numpy(), second.contiguous().numpy())
    threshold, scale = np.uint16(threshold_of(probability)), np.float32(1 / (1 - probability))
    key0, key1 = np.uint32(key[0]), np.uint32(key[1])

    def work(start: int, stop: int) -> None:
        noise_kernels.fill_keep(key0, key1, names[0][start:stop], names[1][start:stop], threshold, scale, target[start:stop])

    run_rows(work, len(first), out.shape[-1])
