"""The fault suite: drawn commands, faults, and a check after each. `python -m tests.faults` runs it."""

import random
import shutil
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.faults.commands import KINDS, Kind
from tests.faults.damage import cut, damaged, files_of, flipped
from tests.faults.disturbing import FAULTS, LEAKED, Trial, a_disk, disturb_sync, end_now
from tests.faults.world import (
    Job,
    Row,
    Undisturbed,
    address_of,
    answers_of,
    ask,
    start,
    undisturbed_run,
)

FOUND = ("damaged", "tells of")  # a history that lacks epochs is said to tell of fewer
MOUNTED = ("ENOSPC", "read-only folder")
INTERRUPTED = 130
TRIES = 4
"""A fault that came after the end of its command is tried again, sooner."""
SEEN = 400
"""Characters that are shown of what a command said last."""


def drawn_job(kind: Kind, data: Path, folder: Path, chance: random.Random) -> tuple[Job, Undisturbed]:
    """Draw a command, and run it undisturbed; one that is refused in one line is drawn again."""
    for number, job in enumerate(kind.draws(chance)):
        found, said = undisturbed_run(job, data, folder / f"draw-{number}")
        if found is not None:
            return job, found
        assert is_one_line(1, said), f"{job.command}: {said}"
    raise AssertionError  # draws never end


def disturb(trial: Trial, fault: str, row: Row) -> bool:
    """Inject a fault, then run the same command again: it must end with the same bytes. Whether it came in time."""
    trial.disk.mkdir(parents=True)
    with a_disk(trial.disk) as mounted:
        if not mounted and fault in MOUNTED:
            row.said = "only root may mount a disk"
            return True
        trial.job.prepare(trial.data, trial.disk)
        end = FAULTS[fault](trial)
        if end is None or (end[0] == -signal.SIGKILL and trial.had_ended()):
            return False
        code, said = end
        trial.look_at_overwritten()
        again = (0, "") if code == 0 else trial.run()
        lost, left = trial.lost(), trial.left_over()
        foreseen = code in (0, -signal.SIGKILL, INTERRUPTED) or is_one_line(code, said)
        if LEAKED in said or "Traceback" in said:
            trial.trouble = said
        fine = foreseen and again[0] == 0 and lost == 0 and not left and not trial.trouble
        row.injected += 1
        row.survived += fine
        row.bytes_lost += lost
        row.said = message_of(said) or row.said
        if not fine:
            seen = f"{(trial.trouble or said)[-SEEN:]} {again[1][-SEEN:]}"
            row.failed.append(f"gatas {trial.job.command}: {seen} {left or ''}, {lost} bytes lost")
        return True


def is_one_line(code: int, said: str) -> bool:
    return code == 1 and "Traceback" not in said and said.splitlines()[-1].startswith("error: ")


def message_of(said: str) -> str:
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    return lines[-1] if lines else ""


def gone_on(trial: Trial, row: Row) -> None:
    """Stop a job near its end, damage what it goes on from, and run it again: the same bytes, or one line and no result."""
    trial.disk.mkdir(parents=True)
    trial.job.prepare(trial.data, trial.disk)
    trial.run(partial(disturb_sync, max(1, trial.undisturbed.syncs - 3), end_now))
    state = trial.disk / trial.job.state
    files = [file for file in files_of(state) if file.name not in (".lock", "lock")] if state.exists() else []
    if not files:  # it ended, or had not begun
        return
    file = trial.chance.choice(files)
    file.write_bytes(trial.chance.choice((flipped, cut))(file.read_bytes(), trial.chance))
    code, said = trial.run()
    lost = trial.lost() if code == 0 else 0
    fine = (code == 0 and lost == 0) or (is_one_line(code, said) and any(word in said for word in FOUND))
    row.injected += 1
    row.survived += fine
    row.bytes_lost += lost
    row.said = message_of(said) or row.said
    if not fine:
        row.failed.append(f"gatas {trial.job.command}, {file.name} damaged: {said}")


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


DAMAGED = "damage before going on"


def suite(data: Path, folder: Path, rounds: int, seed: int, chosen: list[str]) -> Iterator[Row]:
    """What was chosen of commands, serving and damage, a row at a time."""
    folder.mkdir(parents=True)
    for kind in KINDS.values():
        if kind.name in chosen:
            yield from of_kind(kind, data, folder, rounds, seed)
    if "serving" in chosen:
        yield served(data, folder, rounds, seed)
    if "damage" in chosen:
        for name, path in stored(data, folder).items():
            yield from damaged(name, path, rounds, seed)


def of_kind(kind: Kind, data: Path, folder: Path, rounds: int, seed: int) -> list[Row]:
    """Draw a command for each round, and disturb it in every way."""
    undisturbed_run(kind.plain_job, data, folder / f"{kind.name}-first")  # which loads and compiles
    rows = {fault: Row(kind.name, fault) for fault in (*FAULTS, DAMAGED)}
    for number in range(rounds):
        chance, own = random.Random(f"{kind.name} {number} {seed}"), folder / f"{kind.name}-{number}"
        job, undisturbed = drawn_job(kind, data, own, chance)
        for place, (fault, row) in enumerate(rows.items()):
            trials = (
                Trial(
                    job, undisturbed, data, own / f"trial-{place}-{late}", random.Random(f"{fault} {number} {seed}"), 2.0**-late
                )
                for late in range(TRIES)
            )
            if fault in FAULTS:
                any(disturb(trial, fault, row) for trial in trials)
            elif job.state:
                gone_on(next(trials), row)
            row.commands.append(job.command)
        shutil.rmtree(own)
    return list(rows.values())


def stored(data: Path, folder: Path) -> dict[str, Path]:
    """Write what is damaged: the result of each command, and the folder of its job."""
    found = {"graph": data / "graph", "run and checkpoints": data / "run"}
    for name in ("ingest", "transitions", "embedding"):
        job, place = KINDS[name].plain_job, folder / f"{name}-stored"
        undisturbed, said = undisturbed_run(job, data, place)
        assert undisturbed is not None, said
        found[f"result of {name}"] = place / job.out
        if job.state == "job":
            found[f"job of {name}"] = place / "job"
    return found
