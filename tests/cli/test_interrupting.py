"""Ctrl-C ends a command soon, whatever it is at."""

import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from gatas.cli.interrupting import SECONDS, ending_soon

DEAF = """
import hashlib, signal, sys
from gatas.cli.interrupting import ending_soon
def say():
    print("said", flush=True)
with ending_soon(say):
    try:
        print("begun", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes, in which Python runs no handler
    finally:
        {tidy}
"""


@pytest.mark.parametrize("tidy", ["pass", "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"])
def test_what_cannot_be_interrupted_is_ended(tidy):
    arguments = [sys.executable, "-c", DEAF.format(tidy=tidy)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    own = psutil.Process(process.pid)
    before = own.cpu_times().user
    while own.cpu_times().user < before + 0.1:  # until it is at the call that Python cannot interrupt
        time.sleep(0.01)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "said\n", "") and time.monotonic() - started < SECONDS + 1


def test_what_can_be_interrupted_says_so_once():
    said = []
    with pytest.raises(KeyboardInterrupt), ending_soon(lambda: said.append(1), seconds=1e6):
        signal.raise_signal(signal.SIGINT)
    assert said == [1]


def test_without_a_ctrl_c_nothing_is_left_behind():
    before, threads = signal.set_wakeup_fd(-1), threading.active_count()
    for _ in range(20):
        with ending_soon():
            pass
    until = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == threads and signal.set_wakeup_fd(before) == -1
