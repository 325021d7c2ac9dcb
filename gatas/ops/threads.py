"""Rows shared out among as many threads as torch uses. Kernels release the GIL and write their own rows only.

Torch's OpenMP threads spin for some milliseconds after each operation and keep a core from any others. So the work is
given to those very threads, where torch brings GNU's OpenMP (on Linux), and else to threads of our own. `GOMP_parallel` is
private to GNU's OpenMP; nothing else in the package calls it, and `tests/ops/test_threads.py` says what breaks without it.
"""

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

SMALL = 1 << 14
"""Elements below which a second thread costs more than it brings."""
CGROUP = Path("/sys/fs/cgroup/cpu.max")
WAITING = frozenset({"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"})
"""Variables of the environment that say how threads wait for work."""


def run_rows(work: Callable[[int, int], None], num_rows: int, row_elements: int) -> None:
    """Call `work(start, stop)` over all rows; the calling thread takes its share of them."""
    threads = _torch_threads()
    if threads == 1 or num_rows < 2 or num_rows * row_elements < SMALL:
        work(0, num_rows)
        return
    run_spans(work, even_cuts(num_rows, min(num_rows, 4 * threads)))


def even_cuts(count: int, pieces: int) -> list[int]:
    return [count * piece // pieces for piece in range(pieces + 1)]


def run_spans(work: Callable[[int, int], None], cuts: Iterable[int]) -> None:
    """Call `work(start, stop)` from each cut to the next, on as many threads as torch uses."""
    threads, spans = _torch_threads(), iter(list(pairwise(cuts)))
    failures: list[BaseException] = []

    def share(_: Any = None) -> None:
        try:
            for start, stop in spans:  # a list's iterator hands each span out once, whoever asks
                work(start, stop)
        except BaseException as failure:  # OpenMP has no use for it
            failures.append(failure)

    if _openmp():
        with _interrupts_later():
            _openmp().GOMP_parallel(_CALLBACK(share), None, threads, 0)
    else:
        helpers = [_pool(threads).submit(share) for _ in range(threads - 1)]
        share()
        for helper in helpers:
            helper.result()
    if failures:
        raise failures[0]


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Raise a Ctrl-C after this block: in a callback it would be lost, or leave a lock behind that other threads wait for."""
    ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


def available_threads() -> int:
    """The cores that this process may use: those that it may run on, or what a container's share of their time comes to."""
    return max(1, min(_cores(), _quota(CGROUP) or _cores()))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quota(path: Path) -> int:
    """Return how many cores' time a container has, rounded up; 0: nothing says."""
    try:
        share, period = path.read_text(encoding="ascii").split()
        return 0 if share == "max" else ceil(int(share) / int(period))
    except (OSError, ValueError):
        return 0


@lru_cache(maxsize=1)
def settle_threads() -> None:
    """Get torch's threads ready to share a machine: no more than there are cores for, and asleep soon after each operation.

    GNU's OpenMP lets threads spin for milliseconds, unless it has more of them than cores; then for microseconds. Variables of
    the environment that say otherwise count only before torch is imported, so one thread of ours holds a team of others that
    sleep: with them there are more. Beside a second training small steps are then many times as fast; alone they take up to a
    fifth longer, as threads have to be woken (`benchmarks/busy.py`). What the user has set in the environment stays.
    """
    import torch

    if "OMP_NUM_THREADS" not in os.environ and torch.get_num_threads() > available_threads():
        torch.set_num_threads(available_threads())
    threads = torch.get_num_threads()
    if threads == 1 or _openmp() is None or not WAITING.isdisjoint(os.environ):
        return
    held, missing = threading.Event(), max(1, _cores() - threads + 1)  # to be one more than there are cores

    def hold() -> None:
        _openmp().GOMP_parallel(ctypes.CDLL(None).free, None, 1 + missing, 0)  # free(NULL) does nothing
        held.set()
        threading.Event().wait()

    threading.Thread(target=hold, name="gatas-openmp", daemon=True).start()
    held.wait()


def _torch_threads() -> int:
    import torch  # which takes a second, and is there wherever rows are shared out

    return torch.get_num_threads()


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@lru_cache(maxsize=1)
def _openmp() -> Any:
    """The OpenMP that torch has loaded, if it is GNU's."""
    try:
        return ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (AttributeError, OSError):
        return None


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="gatas")
