"""Which kernels are being compiled: Numba's for the CPU, Triton's for a GPU; each once, and then kept in a folder.

The two libraries tell of it through `numba.core.event` and `triton.knobs`, which nothing else here uses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from numba.core.event import Listener, install_listener


@dataclass(frozen=True)
class Compilation:
    """A kernel that is not read from the folder where compiled kernels are kept, but compiled."""

    kernel: str
    compiler: Literal["Numba", "Triton"]
    folder: str | None  # where it will be kept; None if it cannot be


@contextmanager
def watch_compilation(report: Callable[[Compilation], None], *, gpu: bool) -> Iterator[None]:
    """Report each of Numba's kernels when its compilation begins, and with `gpu` each of Triton's when it ends.

    Kernels that were kept by an earlier process are not reported.
    """
    with install_listener("numba:compile", _NumbaListener(report)):
        if gpu:
            with _triton_listener(report):
                yield
        else:
            yield


class _NumbaListener(Listener):
    def __init__(self, report: Callable[[Compilation], None]) -> None:
        self.report = report

    def on_start(self, event: Any) -> None:
        dispatcher = event.data["dispatcher"]
        self.report(Compilation(dispatcher.py_func.__name__, "Numba", dispatcher.stats.cache_path))

    def on_end(self, event: Any) -> None:
        """The next one will say when it begins."""


@contextmanager
def _triton_listener(report: Callable[[Compilation], None]) -> Iterator[None]:
    from triton import knobs

    def listen(*, src: Any, cache_hit: bool, **more: Any) -> None:
        if before is not None:
            before(src=src, cache_hit=cache_hit, **more)
        if not cache_hit:
            report(Compilation(src.name, "Triton", str(knobs.cache.dir)))

    before = knobs.compilation.listener
    knobs.compilation.listener = listen
    try:
        yield
    finally:
        knobs.compilation.listener = before
