"""What launching a Triton kernel takes. Every tensor has a leading dimension of M models, one for all of them excepted.

In kernels B are targets, S slots, K heads, U pairs; J is the width of n, F that of g's hidden layer, H that of a head's
output; JP, FP and HP are these as powers of two.
"""

from typing import Any

import torch
import triton
from torch import Tensor

PROGRAMS = 264
"""Programs that sum up gradients on their way: about two for each multiprocessor of a large GPU."""


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **settings: Any) -> None:
    """Run a kernel unless there is nothing to do; None stands for a pointer that is never read.

    Inputs are made contiguous; what is filled must be, or a copy of it would be.
    """
    if all(grid):
        given = [argument.contiguous() if isinstance(argument, Tensor) else argument for argument in arguments]
        with torch.cuda.device_of(given[0]):
            kernel[grid](*given, **settings)


def padded(width: int) -> int:
    """The next power of two that the tensor cores take."""
    return int(max(16, triton.next_power_of_2(width)))


def parts_of(count: int, programs: int) -> tuple[int, int]:
    """(share, parts): how many of `count` each of up to about so many programs takes."""
    share = triton.cdiv(count, max(1, programs))
    return share, triton.cdiv(count, max(1, share))
