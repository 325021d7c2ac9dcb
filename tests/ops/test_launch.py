"""Kernels are run, or compiled ahead by several threads."""

import threading

import pytest
import torch

from gatas.ops.launch import compile_ahead, launch


class Kernel:
    """Stands for a kernel of Triton's: notes what is asked of it, and by which thread."""

    def __init__(self) -> None:
        self.run: list[tuple[int, ...]] = []
        self.compiled: list[tuple[tuple[int, ...], str]] = []

    def __getitem__(self, grid):
        return lambda *given, **settings: self.run.append(grid)

    def warmup(self, *given, grid, **settings):
        if settings.get("BROKEN"):
            raise RuntimeError("does not compile")
        self.compiled.append((grid, threading.current_thread().name))


def test_kernels_are_compiled_by_other_threads_and_not_run_while_compiling_ahead():
    kernel, values = Kernel(), torch.zeros(3)
    with compile_ahead():
        launch(kernel, (2,), values)
        thread = threading.Thread(target=launch, args=(kernel, (3,), values))  # a backward pass has a thread of its own
        thread.start()
        thread.join()
    assert sorted(grid for grid, _ in kernel.compiled) == [(2,), (3,)] and kernel.run == []
    assert all(name.startswith("compile") for _, name in kernel.compiled)
    launch(kernel, (4,), values)
    assert kernel.run == [(4,)] and len(kernel.compiled) == 2


def test_what_does_not_compile_ahead_is_left_to_be_said_when_it_is_run():
    kernel = Kernel()
    with compile_ahead():
        launch(kernel, (2,), torch.zeros(3), BROKEN=True)
    launch(kernel, (0,), torch.zeros(3))  # nothing to do
    assert kernel.run == [] and kernel.compiled == []


def test_an_error_while_compiling_ahead_ends_it():
    kernel = Kernel()
    with pytest.raises(ZeroDivisionError), compile_ahead():
        launch(kernel, (2,), torch.zeros(3))
        raise ZeroDivisionError
    launch(kernel, (5,), torch.zeros(3))
    assert kernel.run == [(5,)]
