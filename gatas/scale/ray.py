"""Tasks on Ray: on this machine, listening on loopback only, or on a cluster that runs already."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from importlib import import_module
from types import TracebackType
from typing import Any

from gatas.errors import ConfigError, JobError, MissingExtraError
from gatas.ops.threads import available_threads

OBJECT_STORE_BYTES = 100 << 20
"""Memory of a local Ray's object store: parts are files, and what calls return is small."""


class Ray(AbstractContextManager["Ray"]):
    """One task a call, none of them retried by Ray: the job counts failures, alike on all engines.

    A Ray that this process is connected to already is used, and left running.
    """

    seconds_to_end = 20.0  # its processes are many

    def __init__(self, num_workers: int | None, threads: int, gpus_per_worker: float, address: str | None) -> None:
        try:
            self.ray: Any = import_module("ray")
        except ImportError:
            raise MissingExtraError("the engine 'ray' needs Ray", "ray") from None
        self.address = address
        self.num_workers, self.threads, self.gpus_per_worker = num_workers or 0, threads, gpus_per_worker
        self.running: dict[Future[Any], Any] = {}

    def __enter__(self) -> "Ray":
        self.ours = not self.ray.is_initialized()
        if self.ours:
            self._connect()
        self.num_workers = self.num_workers or self._room()
        resources = {"num_cpus": self.threads, "num_gpus": self.gpus_per_worker}
        self.call = self.ray.remote(max_retries=0, **resources)(_call)
        return self

    def _connect(self) -> None:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if self.address is not None:
                self.ray.init(address=self.address, **quiet)
                return
            self.ray.init(
                address="local",
                num_cpus=self.threads * (self.num_workers or available_threads()),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
        except (ConnectionError, RuntimeError, ValueError, AssertionError, TimeoutError) as error:
            where = "here" if self.address is None else f"at {self.address}"
            raise JobError(f"Ray could not be reached {where}: {_first_line(error)}") from error

    def _room(self) -> int:
        """Return how many workers the cluster has processors and GPUs for."""
        there = self.ray.cluster_resources()
        rooms = [there.get("CPU", 0) / self.threads]
        if self.gpus_per_worker:
            rooms.append(there.get("GPU", 0) / self.gpus_per_worker)
        if min(rooms) < 1:
            raise ConfigError(
                f"the Ray cluster has {there.get('CPU', 0):g} processors and {there.get('GPU', 0):g} GPUs: not enough for a "
                f"worker of {self.threads} threads and {self.gpus_per_worker:g} GPUs."
            )
        return int(min(rooms))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        reference = self.call.remote(function, *arguments)
        future: Future[Any] = reference.future()
        self.running = {known: at for known, at in self.running.items() if not known.done()} | {future: reference}
        return future

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for future, reference in self.running.items():
            if not future.done():
                self.ray.cancel(reference, force=True)
        if self.ours:
            self.ray.shutdown()


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
