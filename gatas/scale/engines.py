"""Engines run calls somewhere and give futures: `serial` here and now, `pool` in processes of this machine, `ray` anywhere."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Literal, Protocol

from gatas.errors import ConfigError
from gatas.ops.threads import available_threads

EngineName = Literal["serial", "pool", "ray"]


class Engine(Protocol):
    """Runs up to `num_workers` calls at a time. A future that fails says that its worker died; calls catch the rest."""

    num_workers: int
    threads: int

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]: ...


def open_engine(
    name: EngineName,
    num_workers: int | None = None,
    *,
    threads: int | None = None,
    gpus_per_worker: float = 0.0,
    ray_address: str | None = None,
) -> AbstractContextManager[Engine]:
    """Return an engine for a `with` statement: what it started has ended when that is left, whichever way.

    `threads` are those of each worker; if not given they share the cores, but on Ray, where each has one.
    """
    for what, number, least in (("workers", num_workers, 1), ("threads", threads, 1), ("GPUs per worker", gpus_per_worker, 0)):
        if number is not None and number < least:
            raise ConfigError(f"{number} {what} were asked for; expected {least} or more.")
    if name != "ray" and ray_address is not None:
        raise ConfigError(f"--ray-address was given for the engine {name!r}. Leave it out, or take --engine ray.")
    if name == "ray":
        from gatas.scale.ray import Ray

        return Ray(num_workers, threads or 1, gpus_per_worker, ray_address)
    if name == "pool":
        count = num_workers or available_threads()
        return Pool(count, threads or max(1, available_threads() // count), gpus_per_worker)
    if num_workers not in (None, 1):
        raise ConfigError(f"{num_workers} workers were asked for, but the engine 'serial' is one process. Take another.")
    return Serial(threads or available_threads())


class Serial(AbstractContextManager["Serial"]):
    """This process, one call after another."""

    num_workers = 1

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


@dataclass
class WorkerSlot:
    """A slot for one worker: its process, once there is one, and the last call it was given."""

    number: int
    executor: ProcessPoolExecutor | None = None
    future: Future[Any] | None = None

    @property
    def free(self) -> bool:
        return self.future is None or self.future.done()

    @property
    def broken(self) -> bool:
        return self.future is not None and isinstance(self.future.exception(), BrokenProcessPool)


class Pool(AbstractContextManager["Pool"]):
    """Spawned processes, each with an executor of its own.

    An executor with several fails all its calls when one process dies. So it is known which call a process died of, the
    others go on, and the next call finds a new process. All hold the end of a pipe that breaks when this process closes it
    or ends, however it ends: they end with it.
    """

    def __init__(self, num_workers: int, threads: int, gpus_per_worker: float = 0.0) -> None:
        self.num_workers, self.threads = num_workers, threads
        self.gpus = shared_gpus(num_workers, gpus_per_worker)
        self.slots = [WorkerSlot(number) for number in range(num_workers)]

    def __enter__(self) -> "Pool":
        self.far_end, self.lifeline = multiprocessing.Pipe(duplex=False)
        return self

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand a call to a free worker; there must be one."""
        slot = next(slot for slot in self.slots if slot.free)
        if slot.broken and slot.executor is not None:
            slot.executor.shutdown()
            slot.executor = None
        if slot.executor is None:
            slot.executor = ProcessPoolExecutor(
                1,
                multiprocessing.get_context("spawn"),
                initializer=begin_work,
                initargs=(self.far_end, self.gpus[slot.number] if self.gpus else None),
            )
        with interrupts_held():  # workers inherit it: a Ctrl-C on the terminal is for this process alone
            slot.future = slot.executor.submit(function, *arguments)
        return slot.future

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self.lifeline.close()
        for slot in self.slots:
            if slot.executor is not None:
                slot.executor.shutdown(cancel_futures=True)
        self.lifeline.close()
        self.far_end.close()


def begin_work(far_end: Connection, gpu: str | None) -> None:
    """Begin a new process: it sees one GPU, if any was asked for, and ends when the driver does."""
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # before torch looks
    threading.Thread(target=_end_with_driver, args=(far_end,), daemon=True).start()


def _end_with_driver(far_end: Connection) -> None:
    far_end.poll(None)  # nothing is ever sent
    os._exit(1)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold SIGINT back until the end of this block, and for ever in processes that are started in it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def shared_gpus(num_workers: int, gpus_per_worker: float) -> list[str]:
    """Return the GPU that each worker sees; none if none were asked for."""
    if not gpus_per_worker:
        return []
    if gpus_per_worker > 1:
        raise ConfigError(f"{gpus_per_worker:g} GPUs per worker were asked for; a worker uses one, or a share of it.")
    from torch.cuda import device_count

    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number) for number in range(device_count())] if seen is None else [name for name in seen.split(",") if name]
    if len(names) < num_workers * gpus_per_worker:
        raise ConfigError(
            f"{num_workers} workers with {gpus_per_worker:g} GPUs each were asked for, but there are {len(names)} GPUs here. "
            "Ask for fewer workers, or for a smaller share."
        )
    return [names[int(number * gpus_per_worker)] for number in range(num_workers)]
