"""Rows are shared out once each, on torch's own threads where these are GNU's, and else on others."""

import sys
import threading

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


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux torch brings GNU's OpenMP")
def test_torch_brings_an_openmp_whose_threads_can_be_given_work():
    """Without `GOMP_parallel`, work goes to threads that compete with torch's, which spin: slower, and otherwise the same."""
    torch.randn(1 << 18).sum()  # which has torch start its threads
    assert threads._openmp().GOMP_parallel is not None


def test_there_is_a_core_to_run_on():
    assert threads.available_threads() >= 1
