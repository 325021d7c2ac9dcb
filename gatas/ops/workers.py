"""What a worker process does: calls that come through a pipe, one after another, until the process that started it ends.

It stands here, beside nothing heavy, so that a new process is watched over before it imports what its calls need.
"""

import ctypes
import os
import pickle
import signal
import sys
import threading
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

PR_SET_PDEATHSIG = 1


def work(calls: Connection, gpu: str | None, with_thread: bool) -> None:
    """Answer calls. It sees one GPU, if any was asked for; `with_thread`: it was started by the main thread of its parent."""
    end_with_parent(with_thread)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # before torch looks
    while True:
        try:
            call = calls.recv_bytes()
        except (EOFError, OSError):  # nobody calls any more
            return
        try:
            function, arguments = pickle.loads(call)
            answer: tuple[Any, str | None] = (function(*arguments), None)
        except Exception as error:  # calls catch what they raise; this is of what cannot be imported
            answer = (None, f"{type(error).__name__}: {error}")
        calls.send(answer)


def end_with_parent(with_thread: bool) -> None:
    """End this process when its parent ends, however that ends.

    Linux kills it in that moment, whatever it is at: but when the thread ends that started it, so that must be the main one.
    Elsewhere, and otherwise, a thread waits for the parent's end of a pipe to close.
    """
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()
    if with_thread and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent.pid:  # it ended before
            os._exit(1)


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
