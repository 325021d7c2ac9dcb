"""Memory on CPUs: freed pieces are kept for their next use, and large ones are made of large pages, where the system can."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

LARGEST_KEPT = 128 << 20
"""Pieces of up to so many bytes are taken from memory that was freed before; larger ones come from the system, and go back."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's mallopt."""
MOST = (1 << 31) - 1
ADAPTED = {TRIM_THRESHOLD: 64 << 20, MMAP_THRESHOLD: 32 << 20}
"""Where glibc's own adaption of these ends, which setting them has ended."""


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep what is freed until the end.

    The steps of a training free and take the same tensors again and again. By default glibc gives those of many megabytes
    back to the system each time, which fills every page with zeros when it is taken again: a third of all time on a graph of
    40,000 nodes. With other C libraries nothing changes.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(MMAP_THRESHOLD, LARGEST_KEPT)
    library.mallopt(TRIM_THRESHOLD, MOST)
    try:
        yield
    finally:
        for option, value in ADAPTED.items():
            library.mallopt(option, value)
        library.malloc_trim(0)


def use_huge_pages() -> None:
    """Have torch ask Linux for pages of 2 MiB for its large tensors, unless the environment says otherwise.

    It counts only before torch makes its first tensor. A page is filled with zeros when it is first written to, of 4 KiB at a
    cost of its own each: message passing over the 564,230 edges of Twitter spends more than half of its time there.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


@lru_cache
def _glibc() -> Any:
    """The C library of this process, if it is glibc."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # as on Windows
        return None
    return library if hasattr(library, "gnu_get_libc_version") and hasattr(library, "mallopt") else None
