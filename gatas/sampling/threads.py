"""Rows shared out among as many threads as torch uses. Kernels release the GIL and write their own rows only."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import torch

SMALL = 1 << 14
"""Elements below which a second thread costs more than it brings."""


def run_rows(work: Callable[[int, int], None], num_rows: int, row_elements: int) -> None:
    """Call `work(start, stop)` over all rows; the calling thread takes its share of them."""
    threads = torch.get_num_threads()
    if threads == 1 or num_rows < 2 or num_rows * row_elements < SMALL:
        work(0, num_rows)
        return
    _share_out(work, num_rows, min(num_rows, 4 * threads), threads)


def run_heads(work: Callable[[int, int], None], num_heads: int, head_elements: int) -> None:
    """Call `work(first, last)` over all heads, in as few pieces as there are threads: long rows vectorise better."""
    threads = min(torch.get_num_threads(), num_heads)
    if threads == 1 or num_heads * head_elements < SMALL:
        work(0, num_heads)
        return
    _share_out(work, num_heads, threads, threads)


def _share_out(work: Callable[[int, int], None], count: int, pieces: int, threads: int) -> None:
    spans = iter(list(pairwise(count * piece // pieces for piece in range(pieces + 1))))

    def share() -> None:
        for start, stop in spans:  # a list's iterator hands each span out once, whoever asks
            work(start, stop)

    helpers = [_pool(threads).submit(share) for _ in range(threads - 1)]
    share()
    for helper in helpers:
        helper.result()


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="gatas")
