"""SIGTERM and Ctrl-C end a training in good order: after the step at hand, with its place saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from gatas.training.group import ALONE, Group

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Interrupt:
    """Which signal came, if any."""

    group: Group = ALONE
    number: int | None = None

    def asked(self) -> bool:
        """Return whether a signal came to any process. All of them must ask, to stop at the same step."""
        number = self.group.all_reduce_max(self.number or 0)
        if number:
            self.number = number
        return number > 0

    def leave(self) -> None:
        """End the program as the signal asks to, once all is saved."""
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number is not None:
            raise SystemExit(128 + self.number)


@contextmanager
def interruptible(group: Group = ALONE) -> Iterator[Interrupt]:
    """Note signals instead of dying of them; a second one is obeyed at once. Only the main thread can.

    One that comes too late to stop anything is obeyed at the end. Signals that are ignored stay so. Several
    processes only note a second one too: torchrun passes signals on, and kills after a while what does not end.
    """
    interrupt = Interrupt(group)
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def note(number: int, _frame: FrameType | None) -> None:
        interrupt.number = number
        if group.size == 1:
            put_back()

    def put_back() -> None:
        for known, handler in before.items():
            signal.signal(known, handler)

    before = {known: signal.getsignal(known) or signal.SIG_DFL for known in SIGNALS}
    before = {known: handler for known, handler in before.items() if handler != signal.SIG_IGN}
    for known in before:
        signal.signal(known, note)
    try:
        yield interrupt
    finally:
        put_back()
    interrupt.leave()
