"""`nadam_step` by numba: everything that a step reads and writes goes by once."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.nadam.contract import NAdamInputs, next_mixture
from gatas.ops.numba_rows import FUSE
from gatas.ops.threads import run_rows

CHUNK = 1 << 14
"""Parameters that a thread takes at a time."""


def nadam_step(given: NAdamInputs) -> None:
    """Change values and moments by one step."""
    values, gradient, moments, lr, l2, betas, eps, _, max_norm = given
    if l2 is not None:
        gradient.addcmul_(l2, values)
    clip = values.new_ones(len(values))
    if max_norm is not None:
        clip = (max_norm / (gradient.norm(dim=1) + 1e-6)).clamp_max(1.0)
    of_gradient, of_first = next_mixture(given)
    shares = (1 - betas[0], betas[1], 1 - betas[1], 1 / (1 - betas[1] ** float(moments.steps)), eps, of_gradient, of_first)
    for model in range(len(values)):
        own = torch.stack([clip[model], lr.expand(len(values))[model].to(values)])
        numbers = as_numpy(torch.cat([own, values.new_tensor(shares)]))
        update_model(numbers, *(as_numpy(tensor[model]) for tensor in (gradient, values, moments.first, moments.second)))


def update_model(numbers: NDArray[Any], *vectors: NDArray[Any]) -> None:
    """Change one model's values and moments, on as many threads as torch uses."""
    size = vectors[0].size

    def work(first: int, last: int) -> None:
        update(numbers, *vectors, first * CHUNK, min(last * CHUNK, size))

    run_rows(work, -(-size // CHUNK), CHUNK)


@compiled(fastmath=FUSE, error_model="numpy")
def update(numbers, gradient, values, first, second, start, stop):
    """Clip, move the moments and step, for some parameters."""
    clip, rate, share, keep, square, bias, eps, of_gradient, of_first = numbers
    for n in range(stop - start):
        at = np.uint64(start) + np.uint64(n)
        slope = gradient[at] * clip
        m = first[at] + share * (slope - first[at])
        v = keep * second[at] + square * slope * slope
        first[at], second[at] = m, v
        values[at] -= rate * (of_gradient * slope + of_first * m) / (np.sqrt(v * bias) + eps)
