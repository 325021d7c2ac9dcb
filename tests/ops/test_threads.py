"""Rows are shared out once each, on torch's own threads where these are GNU's, and else on others."""

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
import torch

from gatas.ops import threads


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["OpenMP", "own"])
def kind(request, monkeypatch):
    if request.param == "own":
        monkeypatch.setattr(threads, "_openmp", lambda: None)
    return request.param


def test_every_row_is_worked_on_once(kind):
    counts, lock = [0] * 1000, threading.Lock()

    def work(start, stop):
        with lock:
            for row in range(start, stop):
                counts[row] += 1

    threads.run_rows(work, 1000, threads.SMALL)
    assert counts == [1] * 1000


def test_a_failure_in_a_thread_reaches_the_caller(kind):
    def work(start, stop):
        raise ValueError(f"rows from {start} on")

    with pytest.raises(ValueError, match="rows from"):
        threads.run_rows(work, 1000, threads.SMALL)


def test_a_ctrl_c_waits_until_the_rows_are_done():
    """Raised in a callback of OpenMP it would be lost, and locks that were held for ever."""
    done, came = [], threading.Event()

    def work(start, stop):
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
            came.set()
        came.wait(20)  # so that the main thread has its share
        done.append((start, stop))

    with pytest.raises(KeyboardInterrupt):
        threads.run_spans(work, range(10))
    assert sorted(done) == [(start, start + 1) for start in range(9)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux torch brings GNU's OpenMP")
def test_torch_brings_an_openmp_whose_threads_can_be_given_work():
    """Without `GOMP_parallel`, work goes to threads that compete with torch's, which spin: slower, and otherwise the same."""
    torch.randn(1 << 18).sum()  # which has torch start its threads
    assert threads._openmp().GOMP_parallel is not None


def test_there_is_a_core_to_run_on():
    assert threads.available_threads() >= 1


@pytest.mark.parametrize(("text", "cores"), [("max 100000", 0), ("150000 100000", 2), ("50000 100000", 1), ("what", 0)])
def test_a_container_may_have_fewer_cores_than_the_machine(tmp_path, text, cores):
    path = tmp_path / "cpu.max"
    assert threads._quota(path) == 0
    path.write_text(text + "\n", encoding="ascii")
    assert threads._quota(path) == cores


def test_threads_are_no_more_than_the_cores_that_a_container_has(tmp_path, monkeypatch):
    (tmp_path / "cpu.max").write_text("100000 100000\n", encoding="ascii")
    monkeypatch.setattr(threads, "CGROUP", tmp_path / "cpu.max")
    assert threads.available_threads() == 1


BETWEEN = """
import time, torch
torch.set_num_threads(2)
if {settle}:
    from gatas.ops.threads import settle_threads
    settle_threads()
values = torch.randn(1 << 18)
values.sum()
time.sleep(0.05)
started = time.process_time()
for _ in range(100):
    values.sum()
    time.sleep(0.01)
print(time.process_time() - started)
"""


@pytest.mark.skipif(sys.platform != "linux" or (os.cpu_count() or 1) < 2, reason="GNU's OpenMP, and a core for it to spin on")
def test_threads_sleep_between_operations_also_where_torch_was_imported_first():
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}

    def taken(settle, **variables):
        code = BETWEEN.format(settle=settle)
        command: Any = {"capture_output": True, "text": True, "check": True, "env": {**environment, **variables}}
        return float(subprocess.run([sys.executable, "-c", code], **command).stdout)

    settled, spinning = taken(True), taken(False)
    assert settled < spinning / 2
    assert taken(True, GOMP_SPINCOUNT="300000") > 2 * settled  # what the user asks for stays
