"""The fault suite: jobs, faults, and a check after each, as three lists. `python -m tests.faults` runs it."""

import errno
import os
import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from gatas.cli.verify import verified
from gatas.errors import GatasError
from tests.faults.world import (
    Job,
    Undisturbed,
    address_of,
    answers_of,
    ask,
    bytes_lost,
    content_of,
    ended,
    start,
    timed,
)

BUILD = "transitions build {data}/graph --out {out} --steps 2 --max-candidates 32 --threads 1 --job {disk}/job --parts 6"
EMBED = "embed {data}/run --out {out} --batch-size 64 --device cpu --job {disk}/job --parts 6"
INGEST = "ingest {data}/files/edges --nodes {data}/files/nodes --out {out} --memory 400MB --threads 1"
JOBS = (
    Job("ingest", INGEST, "store", ".store.ingest"),
    Job("transitions", f"{BUILD} --engine serial", "table", "job"),
    Job("transitions, pool", f"{BUILD} --engine pool --workers 2", "table", "job"),
    Job("training", "train {data}/config.yaml --out {out} --device cpu", "run", "run/checkpoints"),
    Job("embedding", f"{EMBED} --engine serial", "all.parquet", "job"),
    Job("embedding, pool", f"{EMBED} --engine pool --workers 2", "all.parquet", "job"),
)
FOUND = ("damaged", "tells of")  # a history that lacks epochs is said to tell of fewer
FLIPS = "a bit flips"
CUTS = "a file is cut short"


@dataclass
class Row:
    """What a fault did to a job."""

    job: str
    fault: str
    injected: int = 0
    survived: int = 0
    bytes_lost: int = 0
    said: str = ""  # the last message that a user saw


@dataclass
class Trial:
    """One job on a disk of its own."""

    job: Job
    undisturbed: Undisturbed
    data: Path
    folder: Path
    chance: random.Random

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    def run(self, disturb: Callable[[], None] = lambda: None) -> tuple[int, str]:
        return ended(self.start(disturb), self.folder / "log")

    def start(self, disturb: Callable[[], None] = lambda: None) -> Any:
        return start(self.job.arguments(self.data, self.disk), self.folder / "log", disturb)

    def lost(self) -> int:
        return bytes_lost(self.undisturbed.content, content_of(self.disk / self.job.out))

    def had_ended(self) -> bool:
        """Whether all is written and what it would go on from is gone: it is done, as any that is not killed."""
        return not (self.disk / self.job.state).exists() and self.lost() == 0

    def left_over(self) -> list[str]:
        return [path.name for path in self.disk.rglob("*") if ".tmp" in path.name]


Fault = Callable[[Trial], tuple[int, str] | None]  # exit code and what was said; None: it came too late


def kill_at_random(trial: Trial) -> tuple[int, str] | None:
    child = trial.start()
    child.join(trial.chance.uniform(0.05, 1.0) * trial.undisturbed.seconds)
    if child.exitcode is not None:
        return None
    child.kill()
    end = ended(child, trial.folder / "log")
    return None if trial.had_ended() else end


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
    return _on_a_disk(trial, f"size={max(size, 4096)}")


def forbid_writing(trial: Trial) -> tuple[int, str] | None:
    return _on_a_disk(trial, "ro")


FAULTS: dict[str, Fault] = {
    "kill -9 at a random moment": kill_at_random,
    "kill -9 half-way through a write": kill_writing,
    "EIO": fail_writing,
    "ENOSPC": fill_disk,
    "read-only folder": forbid_writing,
}
IN_PROCESS = {"kill -9 half-way through a write", "EIO"}  # of which workers in processes of their own see nothing


def disturbed(job: Job, fault: str, data: Path, folder: Path, undisturbed: Undisturbed, rounds: int, seed: int) -> Row:
    """Inject a fault, then run the same command again: it must end with the same bytes."""
    row, chance = Row(job.name, fault), random.Random(f"{job.name} {fault} {seed}")
    for number in range(rounds):
        trial = Trial(job, undisturbed, data, folder / f"{job.name} {fault} {number}".replace(" ", "-"), chance)
        trial.disk.mkdir(parents=True)
        with a_disk(trial.disk) as mounted:
            if not mounted and fault in ("ENOSPC", "read-only folder"):
                row.said = "only root may mount a disk"
                return row
            end = FAULTS[fault](trial)
            if end is None:
                continue
            code, said = end
            again = (0, "") if code == 0 else trial.run()
            lost = trial.lost()
            foreseen = code in (0, -signal.SIGKILL) or is_one_line(code, said)
            row.injected += 1
            row.survived += foreseen and again[0] == 0 and lost == 0 and not trial.left_over()
            row.bytes_lost += lost
            row.said = message_of(said) or row.said
            if not foreseen or again[0]:
                row.said = f"{said} {again[1]}"
            elif left := trial.left_over():
                row.said = f"left over: {left}"
        shutil.rmtree(trial.folder)
    return row


def is_one_line(code: int, said: str) -> bool:
    return code == 1 and "Traceback" not in said and said.splitlines()[-1].startswith("error: ")


def message_of(said: str) -> str:
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    return lines[-1] if lines else ""


def damaged(name: str, stored: Path, rounds: int, seed: int) -> list[Row]:
    """Damage every file of what is stored, one after another: `gatas verify` must find it."""
    verified(stored)
    chance = random.Random(f"{name} {seed}")
    rows = [Row(name, fault) for fault in (FLIPS, CUTS)]
    for file in files_of(stored):
        content = file.read_bytes()
        for row in rows * rounds:
            file.write_bytes(flipped(content, chance) if row.fault == FLIPS else cut(content, chance))
            row.injected += 1
            try:
                verified(stored)
                row.bytes_lost += 1
                row.said = f"not found in {file.name}"
            except GatasError as error:
                row.survived += 1
                row.said = row.said or f"error: {error}"
        file.write_bytes(content)
    verified(stored)
    return rows


def files_of(stored: Path) -> list[Path]:
    """All that have bytes; beside a file, its sum."""
    found = stored.rglob("*") if stored.is_dir() else [stored, stored.with_name(f".{stored.name}.sha256")]
    return sorted(file for file in found if file.is_file() and file.stat().st_size)


def flipped(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def gone_on(job: Job, data: Path, folder: Path, undisturbed: Undisturbed, rounds: int, seed: int) -> Row:
    """Stop a job near its end, damage what it goes on from, and run it again: the same bytes, or one line and no result."""
    row, chance = Row(job.name, "damage before going on"), random.Random(f"{job.name} {seed}")
    for number in range(rounds):
        trial = Trial(job, undisturbed, data, folder / f"{job.name} damage {number}".replace(" ", "-"), chance)
        trial.disk.mkdir(parents=True)
        trial.run(partial(_disturb, max(1, undisturbed.syncs - 3), _end))
        files = [file for file in files_of(trial.disk / job.state) if file.name not in (".lock", "lock")]
        file = chance.choice(files)
        file.write_bytes(chance.choice((flipped, cut))(file.read_bytes(), chance))
        code, said = trial.run()
        lost = trial.lost() if code == 0 else 0
        row.injected += 1
        row.survived += (code == 0 and lost == 0) or (is_one_line(code, said) and any(word in said for word in FOUND))
        row.bytes_lost += lost
        row.said = message_of(said) or row.said
        if code not in (0, 1) or "Traceback" in said:
            row.said = said
        shutil.rmtree(trial.folder)
    return row


def served(data: Path, folder: Path, rounds: int, seed: int) -> Row:
    """Kill a server among requests: what it answered was right, and the next one answers the same."""
    row, chance = Row("serving", "kill -9 at a random moment"), random.Random(f"serving {seed}")
    command, log = f"serve {data}/run --port 0 --device cpu --neighbours off".split(), folder / "serving.log"
    expected: list[bytes] = []
    for number in range(rounds + 1):
        log.unlink(missing_ok=True)
        server = start(command, log)
        address = address_of(log, server)
        answers = answers_of(address)
        right = answers == (expected or answers)
        expected = expected or answers
        if number:
            row.survived += right
        if number < rounds:
            row.injected += 1
            given = asked_until_killed(server, address, chance.uniform(0.0, 0.5))
            row.bytes_lost += sum(len(answer) for k, answer in given if answer != expected[k % len(expected)])
        server.kill()
        server.join()
    return row


def asked_until_killed(server: Any, address: str, seconds: float) -> list[tuple[int, bytes]]:
    killer = threading.Timer(seconds, server.kill)
    killer.start()
    given: list[tuple[int, bytes]] = []
    try:
        with httpx.Client(base_url=address, timeout=10) as client:
            while True:
                given.append((len(given), ask(client, len(given) % 6)))
    except httpx.TransportError:
        return given
    finally:
        killer.join()


def suite(data: Path, folder: Path, rounds: int, seed: int, chosen: list[str]) -> Iterator[Row]:
    """What was chosen of jobs, serving and damage, a row at a time."""
    folder.mkdir(parents=True)
    stored = {"graph": data / "graph", "run and checkpoints": data / "run"}
    for job in JOBS:
        alone = "pool" not in job.name
        if job.name not in chosen and not ("damage" in chosen and alone):
            continue
        written = folder / job.name.replace(" ", "-")
        undisturbed = timed(job, data, written)
        if alone and job.name != "training":  # of which there is a run already
            stored[f"result of {job.name}"] = written / "undisturbed-1" / job.out
        if alone and job.state == "job":
            stored[f"job of {job.name}"] = written / "undisturbed-1" / "job"
        if job.name not in chosen:
            continue
        for fault in FAULTS:
            if alone or fault not in IN_PROCESS:
                yield disturbed(job, fault, data, folder, undisturbed, rounds, seed)
        if alone:
            yield gone_on(job, data, folder, undisturbed, rounds, seed)
    if "serving" in chosen:
        yield served(data, folder, rounds, seed)
    if "damage" in chosen:
        for name, path in stored.items():
            yield from damaged(name, path, rounds, seed)


def _end(file: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _at_a_sync(trial: Trial, do: Callable[[Any], None]) -> tuple[int, str]:
    """The command goes on until a random sync."""
    return trial.run(partial(_disturb, trial.chance.randint(1, trial.undisturbed.syncs), do))


def _disturb(sync: int, do: Callable[[Any], None]) -> None:
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
