"""A command on a disk of its own, and the ways in which it is disturbed."""

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from gatas.cli.verify import verified
from gatas.errors import GatasError
from tests.faults.world import Job, Undisturbed, bytes_lost, content_of, ended, start, watch_calls

SECONDS_TO_END = 2.0
"""Within which a Ctrl-C ends a command, and workers end with a driver that is killed."""
LAST_CALLS = 40
"""In which a result gets its name and the folder of a finished job is removed."""
LEAKED = "leaked"  # what Python says of semaphores that outlive their process


@dataclass
class Trial:
    """One job on a disk of its own."""

    job: Job
    undisturbed: Undisturbed
    data: Path
    folder: Path
    chance: random.Random
    sooner: float = 1.0  # share of the undisturbed command's time that random moments are drawn from
    trouble: str = ""  # what was seen that a user must never see

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    @property
    def out(self) -> Path:
        return self.disk / self.job.out

    def run(self, disturb: Callable[[], None] = lambda: None) -> tuple[int, str]:
        return ended(self.start(disturb), self.folder / "log")

    def start(self, disturb: Callable[[], None] = lambda: None) -> Any:
        return start(self.job.arguments(self.data, self.disk), self.folder / "log", disturb)

    def a_moment(self) -> float:
        return self.chance.uniform(0.05, 1.0) * self.sooner * self.undisturbed.seconds

    def lost(self) -> int:
        return bytes_lost(self.undisturbed.content, content_of(self.out))

    def had_ended(self) -> bool:
        """Whether all is written by a command that writes once, and what it would go on from is gone."""
        return self.job.once and not (self.job.state and (self.disk / self.job.state).exists()) and self.lost() == 0

    def left_over(self) -> list[str]:
        """What no command is to leave: temporary files, and the folder of a job that was not asked for."""
        found = [path.name for path in self.disk.rglob("*") if ".tmp" in path.name]
        return found + [path.name for path in self.disk.glob(".*.job")]

    def look_at_overwritten(self) -> None:
        """After any fault, a store that is being overwritten is there: the old one or the new one, whole."""
        if self.job.overwrites:
            try:
                verified(self.out)
            except (GatasError, OSError) as error:
                self.trouble = f"while overwriting: {error}"


Fault = Callable[[Trial], tuple[int, str] | None]  # exit code and what was said; None: it came too late


def kill_at_random(trial: Trial) -> tuple[int, str] | None:
    child = trial.start()
    child.join(trial.a_moment())
    if child.exitcode is not None:
        return None
    workers = psutil.Process(child.pid).children(recursive=True)
    child.kill()
    end = ended(child, trial.folder / "log")
    trial.trouble = outlived(workers, SECONDS_TO_END)
    return None if trial.had_ended() else (end[0], (trial.folder / "log").read_text())


def interrupt_at_random(trial: Trial) -> tuple[int, str] | None:
    """Ctrl-C."""
    child = trial.start()
    child.join(trial.a_moment())
    if child.exitcode is not None:
        return None
    workers, started = psutil.Process(child.pid).children(recursive=True), time.monotonic()
    os.kill(child.pid, signal.SIGINT)
    end = ended(child, trial.folder / "log")
    took = time.monotonic() - started
    trial.trouble = outlived(workers, SECONDS_TO_END)
    if trial.job.prompt and took > SECONDS_TO_END:
        trial.trouble = f"a Ctrl-C took {took:.1f} s"
    return None if trial.had_ended() else end


def outlived(workers: list[psutil.Process], seconds: float) -> str:
    """Say which processes still run so long after their driver; those that ended may not have been asked for their code."""
    until, running = time.monotonic() + seconds, workers
    while running and time.monotonic() < until:
        time.sleep(0.01)
        running = [process for process in running if _runs(process)]
    return f"{len(running)} workers outlive their driver" if running else ""


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def kill_at_a_call(trial: Trial) -> tuple[int, str] | None:
    """Just before or just after one of all renames, removals and syncs; every other time one of the last."""
    calls = trial.undisturbed.calls
    first = trial.chance.choice((1, max(1, calls - LAST_CALLS)))
    end = trial.run(partial(_die_at_a_call, trial.chance.randint(first, calls), trial.chance.choice(("before", "after"))))
    return None if end[0] == 0 or trial.had_ended() else end


def _die_at_a_call(at: int, when: str) -> None:
    """In a child: that call is its last."""
    done = {"before": 0, "after": 0}

    def dying(moment: str, name: str) -> None:
        done[moment] += 1
        if moment == when and done[moment] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    watch_calls(partial(dying, "before"), partial(dying, "after"))


def kill_writing(trial: Trial) -> tuple[int, str] | None:
    """Half of what was to be synced is on the disk."""

    def die(file: Any) -> None:
        path = Path(f"/proc/self/fd/{file}").readlink()
        if path.is_file() and path.name != "history.jsonl":  # which grows: its first half was synced before
            os.truncate(path, os.fstat(file).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

    return _at_a_sync(trial, die)


def fail_writing(trial: Trial) -> tuple[int, str] | None:
    def fail(file: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return _at_a_sync(trial, fail)


def fill_disk(trial: Trial) -> tuple[int, str] | None:
    """It has room for a part of what is to be written."""
    size = int(trial.chance.uniform(0.05, 0.9) * trial.undisturbed.num_bytes)
    return _on_a_disk(trial, f"size={shutil.disk_usage(trial.disk).used + max(size, 4096)}")


def forbid_writing(trial: Trial) -> tuple[int, str] | None:
    return _on_a_disk(trial, "ro")


FAULTS: dict[str, Fault] = {
    "kill -9 at a random moment": kill_at_random,
    "kill -9 at a single call": kill_at_a_call,
    "Ctrl-C at a random moment": interrupt_at_random,
    "kill -9 half-way through a write": kill_writing,
    "EIO": fail_writing,
    "ENOSPC": fill_disk,
    "read-only folder": forbid_writing,
}


def end_now(file: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _at_a_sync(trial: Trial, do: Callable[[Any], None]) -> tuple[int, str]:
    """The command goes on until a random sync."""
    return trial.run(partial(disturb_sync, trial.chance.randint(1, trial.undisturbed.syncs), do))


def disturb_sync(sync: int, do: Callable[[Any], None]) -> None:
    """In a child: that sync is another."""
    fsync, done = os.fsync, 0

    def counting(fd: Any) -> None:
        nonlocal done
        done += 1
        do(fd) if done == sync else fsync(fd)

    os.fsync = counting


@contextmanager
def a_disk(folder: Path) -> Iterator[bool]:
    """A disk in memory of its own, where this process may mount one."""
    mounted = not subprocess.run(["mount", "-t", "tmpfs", "gatas", str(folder)], capture_output=True).returncode
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _on_a_disk(trial: Trial, options: str) -> tuple[int, str]:
    subprocess.run(["mount", "-o", f"remount,{options}", str(trial.disk)], check=True)
    try:
        return trial.run()
    finally:
        subprocess.run(["mount", "-o", "remount,rw,size=1g", str(trial.disk)], check=True)
