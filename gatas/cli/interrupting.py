"""Ctrl-C ends a command soon, also one that is in a kernel, a compiler or a lock, where Python cannot interrupt it."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import sleep

SECONDS = 1.0
"""After a Ctrl-C, a command has so long to end by itself."""
EXIT_CODE = 130


@contextmanager
def ending_soon(say: Callable[[], None] = lambda: None, seconds: float = SECONDS) -> Iterator[None]:
    """Have a Ctrl-C in this block end the process within `seconds`, as a kill would where nothing else helps.

    Only for what writes files whole or not at all. `say` is called once, when the block or the process is left.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return
    watch = InterruptWatch(say, seconds)
    try:
        yield
    except KeyboardInterrupt:
        watch.say_once()
        raise
    finally:
        watch.leave()


class InterruptWatch:
    """A thread that is told of signals in the moment they come, whatever the main thread is at."""

    def __init__(self, say: Callable[[], None], seconds: float) -> None:
        self.say, self.seconds, self.said, self.interrupted = say, seconds, threading.Lock(), False
        self.end, self.told = socket.socketpair()
        self.told.setblocking(False)
        self.before = signal.set_wakeup_fd(self.told.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._wait, name="ctrl-c", daemon=True).start()

    def say_once(self) -> None:
        if self.said.acquire(blocking=False):
            self.say()

    def leave(self) -> None:
        """Stop watching; after a Ctrl-C the process still ends in time, whatever it has to tidy up."""
        signal.set_wakeup_fd(self.before)
        if not self.interrupted:
            self.told.close()  # the thread ends

    def _wait(self) -> None:
        while numbers := self.end.recv(64):
            if signal.SIGINT in numbers:
                self.interrupted = True
                sleep(self.seconds)
                self.say_once()
                os._exit(EXIT_CODE)
        self.end.close()
