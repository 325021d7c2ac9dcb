"""Engines run calls somewhere and give futures: `serial` here and now, `pool` in processes of this machine, `ray` anywhere."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.resource_tracker import ensure_running
from types import TracebackType
from typing import Any, Literal, Protocol

from gatas.errors import ConfigError
from gatas.ops.threads import available_threads
from gatas.ops.workers import work

EngineName = Literal["serial", "pool", "ray"]


class WorkerLostError(Exception):
    """A worker died, or could not even begin a call."""


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


class Pool(AbstractContextManager["Pool"]):
    """Spawned processes, each with a pipe of its own.

    So it is known which call a process died of, the others go on, and the next call finds a new process. There are no
    semaphores between them, which a killed driver would leave behind, and workers end with the driver, however that ends.
    """

    def __init__(self, num_workers: int, threads: int, gpus_per_worker: float = 0.0) -> None:
        self.num_workers, self.threads = num_workers, threads
        self.gpus = shared_gpus(num_workers, gpus_per_worker)
        self.workers: list[Worker | None] = [None] * num_workers

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Hand a call to a free worker; there must be one."""
        number = next(number for number, worker in enumerate(self.workers) if worker is None or worker.free)
        worker = self.workers[number]
        if worker is None or worker.lost:
            worker = self.workers[number] = Worker(self.gpus[number] if self.gpus else None)
        return worker.call(function, arguments)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in self.workers:
            if worker is not None:
                worker.end()


class Worker:
    """A process that answers one call at a time."""

    def __init__(self, gpu: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, calls = context.Pipe()
        in_main = threading.current_thread() is threading.main_thread()
        self.process = context.Process(target=work, args=(calls, gpu, in_main), daemon=True)
        ensure_running()  # it lets signals through again as it starts, so before they are held back
        with interrupts_held():  # workers inherit it: a Ctrl-C on the terminal is for this process alone
            self.process.start()
        calls.close()
        self.future: Future[Any] | None = None
        self.lost = False

    @property
    def free(self) -> bool:
        return self.future is None or self.future.done()

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
        self.future = Future()
        threading.Thread(target=self._answer, args=((function, arguments), self.future), daemon=True).start()
        return self.future

    def _answer(self, call: Any, future: Future[Any]) -> None:
        try:
            self.pipe.send(call)
            result, error = self.pipe.recv()
        except (EOFError, OSError):
            self.lost = True
            self.process.join(5)  # for its exit code
            future.set_exception(WorkerLostError(f"exit code {self.process.exitcode}"))
        except Exception as failure:  # what cannot be sent
            future.set_exception(failure)
        else:
            future.set_result(result) if error is None else future.set_exception(WorkerLostError(error))

    def end(self) -> None:
        """End the process, whatever it is at: what it writes is there whole or not at all."""
        self.process.kill()
        self.process.join()
        if self.free:
            self.pipe.close()


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
