"""`watch_builds`: whoever is to hear how far builds of whole tables are, where models make them for themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gatas.progress import ProgressCallback

_WATCHER: ContextVar[ProgressCallback | None] = ContextVar("watcher", default=None)


@contextmanager
def watch_builds(progress: ProgressCallback) -> Iterator[None]:
    """Have `progress` told, from 0 to 1, how much of each table is built in this thread."""
    before = _WATCHER.set(progress)
    try:
        yield
    finally:
        _WATCHER.reset(before)


def watcher() -> ProgressCallback | None:
    """Return who watches, if anybody does."""
    return _WATCHER.get()
