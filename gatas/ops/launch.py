"""What launching a Triton kernel takes. Every tensor has a leading dimension of M models, one for all of them excepted.

In kernels B are targets, S slots, K heads, U pairs; J is the width of n, F that of g's hidden layer, H that of a head's
output; JP, FP and HP are these as powers of two.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from torch import Tensor

from gatas.ops.threads import available_threads

PROGRAMS = 264
"""Programs that sum up gradients on their way: about two for each multiprocessor of a large GPU."""


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **settings: Any) -> None:
    """Run a kernel unless there is nothing to do; None stands for a pointer that is never read.

    Inputs are made contiguous; what is filled must be, or a copy of it would be.
    """
    if not all(grid):
        return
    given = [argument.contiguous() if isinstance(argument, Tensor) else argument for argument in arguments]
    if _compiler.pool is not None:
        _compiler.started.append(_compiler.pool.submit(_compile, kernel, grid, given, settings))
        return
    with torch.cuda.device_of(given[0]):
        kernel[grid](*given, **settings)


@dataclass
class _Compiler:
    """Threads that compile while `compile_ahead` lasts; seen by all threads, as backward passes have threads of their own."""

    pool: ThreadPoolExecutor | None = None
    started: list["Future[None]"] = field(default_factory=list)


_compiler = _Compiler()


@contextmanager
def compile_ahead() -> Iterator[None]:
    """Let `launch` compile kernels, on all cores at once, instead of running them; on leaving, all are compiled.

    What the kernels would have filled is left as it was: results are of no use, and what changes by them must be put back.
    """
    with ThreadPoolExecutor(available_threads(), thread_name_prefix="compile") as pool:
        _compiler.pool, _compiler.started = pool, []
        try:
            yield
        finally:
            _compiler.pool = None
            wait(_compiler.started)  # what fails to compile fails again, and is said, when it is run


def _compile(kernel: Any, grid: tuple[int, ...], given: list[Any], settings: dict[str, Any]) -> None:
    with torch.cuda.device_of(given[0]):
        kernel.warmup(*given, grid=grid, **settings)


def padded(width: int) -> int:
    """The next power of two that the tensor cores take."""
    return int(max(16, triton.next_power_of_2(width)))


def parts_of(count: int, programs: int) -> tuple[int, int]:
    """(share, parts): how many of `count` each of up to about so many programs takes."""
    share = triton.cdiv(count, max(1, programs))
    return share, triton.cdiv(count, max(1, share))
