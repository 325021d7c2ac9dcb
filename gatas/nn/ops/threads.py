"""Rows shared out among as many threads as torch uses. Kernels release the GIL and write their own rows only."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import torch

SMALL = 1 << 14
"""Elements below which a second thread costs more than it brings."""


def run_rows(work: Callable[[int, int], None], num_rows: int, row_elements: int) -> None:
    """Call `work(start, stop)` over all rows."""
    threads = torch.get_num_threads()
    if threads == 1 or num_rows < 2 or num_rows * row_elements < SMALL:
        work(0, num_rows)
        return
    chunks = min(num_rows, 4 * threads)
    cuts = [num_rows * chunk // chunks for chunk in range(chunks + 1)]
    for done in [_pool(threads).submit(work, *span) for span in pairwise(cuts)]:
        done.result()


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="gatas")
