"""Memory that a training frees stays with it until its end."""

import ctypes
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from gatas.ops import memory
from gatas.ops.memory import memory_kept

glibc = pytest.mark.skipif(memory._glibc() is None, reason="only glibc is told to keep memory")
SIZE = 60 << 20


def pages_taken(times: int) -> int:
    """How many pages the system has given while pieces of many megabytes were taken, written and freed."""
    library: Any = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        piece = ctypes.c_void_p(library.malloc(ctypes.c_size_t(SIZE)))
        ctypes.memset(piece, 1, SIZE)
        library.free(piece)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@glibc
def test_what_is_freed_is_used_again():
    with memory_kept():
        pages_taken(1)
        assert pages_taken(10) < 2 * SIZE / 4096  # ten times SIZE / 4096, were each given back


@glibc
def test_at_the_end_it_is_given_back():
    with memory_kept():
        pages_taken(1)
        kept = psutil.Process().memory_info().rss
    assert psutil.Process().memory_info().rss < kept - SIZE / 2


@glibc
def test_without_glibc_nothing_changes(monkeypatch):
    monkeypatch.setattr(memory, "_glibc", lambda: None)
    with memory_kept():
        assert pages_taken(10) > 5 * SIZE / 4096


HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
TENSORS = """
import resource, sys
if "huge" in sys.argv:
    from gatas.ops.memory import use_huge_pages
    use_huge_pages()
import torch
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.ones(50_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(
    not HUGE.exists() or "[madvise]" not in HUGE.read_text(), reason="this system gives no large pages for the asking"
)
@pytest.mark.parametrize(("asked", "said", "are_huge"), [("huge", None, True), ("", None, False), ("huge", "0", False)])
def test_large_tensors_are_made_of_large_pages_unless_the_environment_says_otherwise(asked, said, are_huge):
    env = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    env |= {} if said is None else {"THP_MEM_ALLOC_ENABLE": said}
    command = [sys.executable, "-c", TENSORS, asked]
    taken = int(subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout)
    assert (taken < 50_000_000 * 4 / 4096 / 10) == are_huge
