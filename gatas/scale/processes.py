"""`together`: the processes that `torchrun` started, as a `Group` that one training is shared among.

Gradients are added up by one all-reduce of the optimiser's own vector, rather than by DistributedDataParallel: that would
average over processes whose shares are uneven, and knows neither models side by side nor rows of a sparse gradient.
"""

import os
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from time import monotonic, sleep
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from gatas.errors import ConfigError, GatasError, LostError
from gatas.training.group import ALONE, Group
from gatas.training.loop import chosen_device

T = TypeVar("T")
NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
SECONDS_TO_ANSWER = 1.0
"""Within which processes that are well say so, once others are lost."""
GIVEN_UP = "gatas/given up"


@contextmanager
def together(device: str = "auto", timeout: float = 600.0) -> Iterator[Group]:
    """Give the group of all processes that torchrun started, or this one alone. What ends one of them ends all; one says why.

    A process that does not answer for `timeout` seconds is lost.

    >>> with together() as group:
    ...     run = gatas.fit(model, dataset, group=group, folder="runs/mine")
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield ALONE
        return
    group = Processes(timeout)
    with group.failing_together(), warnings.catch_warnings():
        if not group.first:
            warnings.simplefilter("ignore")
        group.join(device)
        yield group
        group.wait()  # one that left early would be missed by a training that is started again
        dist.destroy_process_group()


class Processes(Group):
    """Several processes, each with the rank that torchrun gave it."""

    def __init__(self, timeout: float) -> None:
        missing = [name for name in NEEDED if name not in os.environ]
        if missing:
            raise ConfigError(f"WORLD_SIZE is set, but not {', '.join(missing)}. Start several processes with torchrun.")
        self.rank, self.size, self.timeout = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), timeout
        self.keeps_notes = self.first and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        self.launch, self.store = connected(self.size, timedelta(seconds=timeout), self.keeps_notes)

    def join(self, device: str) -> None:
        """Join the group of processes."""
        if self.launch.check([GIVEN_UP]):
            raise SystemExit(1)  # torchrun starts again what had been told to be in vain
        check_restarts()
        own_gpu = takes_own_gpu(device)
        if not own_gpu and os.environ.get("GROUP_WORLD_SIZE") == "1" and "lo" in (name for _, name in socket.if_nameindex()):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # one machine: nobody else needs to hear
        backend, wait = "cpu:gloo,cuda:nccl" if own_gpu else "gloo", timedelta(seconds=self.timeout)
        with self._asking():
            dist.init_process_group(backend, store=self.store, rank=self.rank, world_size=self.size, timeout=wait)

    def gathered(self, found: Tensor, count: int) -> Tensor:
        each = -(-count // self.size)
        own = found if len(found) == each else torch.cat([found, found.new_zeros(each - len(found), *found.shape[1:])])
        return torch.stack(self._gathered(own), dim=1).flatten(0, 1)[:count]

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        with self._asking():
            dist.all_reduce(tensor)
        return tensor

    def union_rows(self, rows: Tensor) -> Tensor:
        counts = self._gathered(torch.tensor([len(rows)], device=rows.device))
        longest = int(torch.cat(counts).max())
        filled = torch.cat([rows, rows.new_full((longest - len(rows),), -1)])
        found = torch.unique(torch.cat(self._gathered(filled)))
        union: Tensor = found[found >= 0]
        return union

    def all_reduce_max(self, number: int) -> int:
        found = torch.tensor(number)
        with self._asking():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def broadcast(self, content: T) -> T:
        said: list[Any] = [content if self.first else None]
        with self._asking():
            dist.broadcast_object_list(said, device=torch.device("cpu"))
        return said[0]  # type: ignore[no-any-return]

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        with self._asking():
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def wait(self) -> None:
        self.all_reduce_max(0)

    def _gathered(self, tensor: Tensor) -> list[Tensor]:
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        with self._asking():
            dist.all_gather(found, tensor.contiguous())
        return found

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Say what it means that others do not answer."""
        try:
            yield
        except RuntimeError as error:  # of whichever backend
            raise LostError(self._loss(str(error))) from None

    def _loss(self, reason: str) -> str:
        missing = self._missing()
        who = f"process {' and '.join(str(rank) for rank in missing)}" if missing else "another process"
        if "timed out" in reason.lower() or "timeout" in reason.lower():
            what = f"{who} of {self.size} did not answer for {self.timeout:g} seconds: it hangs, or needs a larger --timeout"
        else:
            what = f"{who} of {self.size} has died"
        return f"{what}. Start again to go on from the last checkpoint; torchrun --max-restarts does so by itself."

    def _missing(self) -> list[int]:
        """Return the ranks that do not answer."""
        try:
            self.store.set(f"well/{self.rank}", "")
            sleep(SECONDS_TO_ANSWER)
            return [rank for rank in range(self.size) if not self.store.check([f"well/{rank}"])]
        except RuntimeError:  # there is nobody left to ask
            return []

    @contextmanager
    def failing_together(self) -> Iterator[None]:
        """Have the first that fails speak, and the others end in silence. What is the user's to mend is not tried again."""
        try:
            yield
        except BaseException as error:
            speaks = self._fails_first()
            if isinstance(error, GatasError) and not isinstance(error, LostError):
                self._give_up()
            self._let_others_know()
            if isinstance(error, Exception) and not speaks:
                sleep(SECONDS_TO_ANSWER)  # torchrun ends the others once one has ended, and the first is to be heard
                raise SystemExit(1) from None
            raise

    def _fails_first(self) -> bool:
        try:
            return bool(self.store.add("failed", 1) == 1)
        except RuntimeError:
            return True

    def _give_up(self) -> None:
        with suppress(RuntimeError):
            self.launch.set(GIVEN_UP, "")

    def _let_others_know(self) -> None:
        """Stay until the others have read the notes, where these are kept by this process and not by torchrun."""
        if not self.keeps_notes:
            return
        with suppress(RuntimeError):
            if dist.is_initialized():
                dist.destroy_process_group()  # they would wait for it
            until = monotonic() + 3 * SECONDS_TO_ANSWER
            while self.store.add("failed", 0) < self.size and monotonic() < until:
                sleep(0.05)


def connected(size: int, timeout: timedelta, keeps_notes: bool) -> tuple[Any, Any]:
    """Return two stores that processes share: one for a launch, and one for an attempt in it.

    Torchrun keeps one store for all attempts, in which those of torch 2.13 find addresses of the dead (pytorch#135712). So
    each attempt has names of its own; but torchrun counts attempts for each machine alone (pytorch#108158).
    """
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    try:
        store = dist.TCPStore(  # type: ignore[attr-defined]
            host, port, size, is_master=keeps_notes, timeout=timeout, multi_tenant=keeps_notes
        )
    except RuntimeError as error:
        raise LostError(f"nobody answers at {host}:{port} ({str(error).splitlines()[0]}). Start again.") from None
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return store, dist.PrefixStore(f"gatas/{attempt}", store)  # type: ignore[attr-defined]


def check_restarts() -> None:
    """Refuse what would wait for processes that count differently."""
    machines, restarts = (int(os.environ.get(name, "0")) for name in ("GROUP_WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS"))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and machines > 1 and restarts > 0:
        raise ConfigError(
            f"torchrun would restart up to {restarts} times, but on several machines it mistakes processes of before for those "
            "of now: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for every torchrun and use --rdzv-backend=c10d, or "
            "--max-restarts=0."
        )


def takes_own_gpu(device: str) -> bool:
    """Whether each process takes a GPU of its own, the one that has its number on this machine."""
    if chosen_device(device).type != "cuda":
        return False
    own, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if ":" in device or own >= gpus:
        raise ConfigError(
            f"device is {device!r} for process {own} of this machine, where torch sees {gpus} GPUs. Give 'cuda', with one "
            "process for each of them, or 'cpu'."
        )
    torch.cuda.set_device(own)
    return True
