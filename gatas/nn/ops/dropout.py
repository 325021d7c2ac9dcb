"""Which elements a dropout keeps: noise of (stream, row, column), the same bits on every device."""

import numpy as np
import torch
from torch import Tensor

from gatas.nn.ops import kernels
from gatas.sampling.noise import WORD, threefry
from gatas.sampling.threads import run_rows


def keep(key: tuple[int, int], first: Tensor, second: Tensor, width: int, probability: float) -> Tensor:
    """(n, width) float32: 0 with the given probability, else 1 / (1 - probability). Row r is named by first[r], second[r]."""
    if first.device.type == "cpu":
        return _keep_numba(key, first, second, width, probability)
    return keep_torch(key, first, second, width, probability)


def keep_torch(key: tuple[int, int], first: Tensor, second: Tensor, width: int, probability: float) -> Tensor:
    """The same, slow and obvious: each pair of columns shares one call of the generator."""
    own = threefry(key, first & WORD, second & WORD)
    pair = torch.arange((width + 1) // 2, device=first.device)
    words = threefry((own[0][:, None], own[1][:, None]), pair, torch.zeros_like(pair))
    both = torch.stack(words, dim=-1).flatten(1)[:, :width]
    return (both >= round(probability * 2**32)).float() / (1 - probability)


def _keep_numba(key: tuple[int, int], first: Tensor, second: Tensor, width: int, probability: float) -> Tensor:
    out = torch.empty(len(first), width)
    target, names = out.numpy(), (first.numpy(), second.numpy())
    threshold, scale = np.uint32(round(probability * 2**32)), np.float32(1 / (1 - probability))
    key0, key1 = np.uint32(key[0]), np.uint32(key[1])

    def work(start: int, stop: int) -> None:
        kernels.fill_keep(key0, key1, names[0][start:stop], names[1][start:stop], threshold, scale, target[start:stop])

    run_rows(work, len(first), width)
    return out
