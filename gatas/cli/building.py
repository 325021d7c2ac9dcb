"""Lines on standard error about transitions that are being built."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from gatas.cli.output import stderr

FIRST_AFTER, NEXT_AFTER = 3.0, 10.0
"""Seconds before the first line, and between lines."""


@contextmanager
def builds_said(clock: Callable[[], float] = monotonic) -> Iterator[None]:
    """Say how far transitions are, where building them takes more than a moment."""
    from gatas.transitions.cost import readable_seconds
    from gatas.transitions.watching import watch_builds

    started, due = clock(), clock() + FIRST_AFTER

    def tell(share: float) -> None:
        nonlocal started, due
        now = clock()
        if now >= due and share < 1:
            stderr.print(f"building transitions, {share:.0%}  {readable_seconds(now - started)}", style="dim", soft_wrap=True)
            due = now + NEXT_AFTER
        if share >= 1:
            started, due = now, now + FIRST_AFTER

    with watch_builds(tell):
        yield
