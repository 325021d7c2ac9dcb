"""What is disturbed: small jobs on the command line, in children of a process that has all modules and one thread."""

import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401
import httpx
import yaml
from pyarrow import csv, parquet

import gatas.cli.app
import gatas.scale.answers
import gatas.scale.processes
import gatas.serving.loaded_model
import gatas.serving.server
import gatas.training.mlflow  # noqa: F401
from gatas.cli import main
from gatas.datasets.generating import GraphRecipe, generate_graph
from gatas.files import atomic

FORK = multiprocessing.get_context("fork")
WAIT = 120
RECIPE = GraphRecipe(nodes=600, edges=4_000, features=4, train=0.1, valid=0.1, test=0.1, text_ids=True)
CONFIG = {
    "data": {"store": "graph"},
    "model": {"num_steps": 2, "sample_size": 8, "num_heads": 2, "head_size": 4, "neighbour_size": 4, "max_candidates": 32},
    "training": {"epochs": 4, "batch_size": 20, "checkpoint_seconds": 0, "evaluation_draws": 1},
}
COLUMNS = {"edges": ["source", "target", "type"], "nodes": ["id"]}
TIMED = ("history.jsonl", "checksums.json")
TIMES = ("seconds", "training_seconds")
COMPARED = ("peers", "trials")
COSTS = ("seconds", "seconds_per_epoch", "seconds_to_best", "seconds_for_1000", "peak_bytes", "date")


CALLS = ("rename", "replace", "unlink", "rmdir", "mkdir", "link", "fsync")
"""Calls at which the state of a disk changes; `gatas.files` exchanges two names, too."""


@dataclass(frozen=True)
class Job:
    """A command; `{data}` and `{out}` in it are filled in."""

    name: str
    command: str
    out: str
    state: str = ""  # where it keeps what it goes on from, beside what it writes
    once: bool = False  # it refuses to write what is there
    prompt: bool = True  # a Ctrl-C ends it at once; a training first ends the step at hand, or writes its last files

    @property
    def overwrites(self) -> bool:
        return "--overwrite" in self.command

    def prepare(self, data: Path, disk: Path) -> None:
        """Put a store where one is overwritten."""
        if self.overwrites:
            shutil.copytree(data / "graph", disk / self.out)

    def arguments(self, data: Path, disk: Path) -> list[str]:
        return [word.format(data=data, disk=disk, out=disk / self.out) for word in self.command.split()]


@dataclass
class Row:
    """What a fault did to a job."""

    job: str
    fault: str
    injected: int = 0
    survived: int = 0
    bytes_lost: int = 0
    said: str = ""  # the last message that a user saw
    failed: list[str] = field(default_factory=list)  # what was not survived: the command, and what was seen
    commands: list[str] = field(default_factory=list)


@dataclass
class Undisturbed:
    """How a job goes when nothing happens: what it writes, how long it takes, how often it syncs and changes the disk."""

    content: dict[str, bytes]
    seconds: float
    syncs: int
    calls: int

    @property
    def num_bytes(self) -> int:
        return sum(map(len, self.content.values()))


def make_data(folder: Path) -> Path:
    """Edges and nodes as files, a graph store of them, and a run: what jobs begin with."""
    generate_graph(folder / "files", RECIPE, threads=1)
    folder.joinpath("config.yaml").write_text(yaml.safe_dump(CONFIG))
    for name, table in (("edges", "edges"), ("nodes", "nodes")):
        csv.write_csv(parquet.read_table(folder / "files" / table).select(COLUMNS[name]), folder / f"{name}.csv")
    for command in (
        f"ingest {folder}/files/edges --nodes {folder}/files/nodes --out {folder}/graph --memory 400MB --threads 1",
        f"train {folder}/config.yaml --out {folder}/run --device cpu",
    ):
        code, said = ended(start(command.split(), folder / "log"), folder / "log")
        assert code == 0, said
    return folder


def start(arguments: list[str], log: Path, disturb: Callable[[], None] = lambda: None) -> ForkProcess:
    """Run a command in a child; all that it says goes to `log`."""
    child = FORK.Process(target=_run, args=(arguments, log, disturb))
    child.start()
    return child


def _run(arguments: list[str], log: Path, disturb: Callable[[], None]) -> None:
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    sys.argv = ["gatas", *arguments]
    try:
        disturb()
        main()
    except KeyboardInterrupt:  # before or after all that is ours
        sys.exit(130)


def ended(child: ForkProcess, log: Path) -> tuple[int, str]:
    """Wait; gives exit code and what was said."""
    child.join(WAIT)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"it hangs: {log.read_text()}")
    return child.exitcode, log.read_text(encoding="utf-8", errors="replace")


def undisturbed_run(job: Job, data: Path, disk: Path) -> tuple[Undisturbed | None, str]:
    """Run a command; gives nothing but what it said if it was refused."""
    disk.mkdir(parents=True)
    job.prepare(data, disk)
    counted, log, started = disk.with_name(f"{disk.name}.calls"), disk.with_name(f"{disk.name}.log"), time.monotonic()
    code, said = ended(start(job.arguments(data, disk), log, lambda: count_calls(counted)), log)
    if code:
        return None, said
    calls = counted.read_bytes()
    return Undisturbed(content_of(disk / job.out), time.monotonic() - started, calls.count(b"s"), len(calls)), said


def count_calls(counted: Path) -> None:
    """In a child: leave a byte for each call, `s` for a sync."""
    counted.write_bytes(b"")

    def leave(name: str) -> None:
        with counted.open("ab") as said:
            said.write(b"s" if name == "fsync" else b".")

    watch_calls(leave, lambda name: None)


def watch_calls(before: Callable[[str], None], after: Callable[[str], None]) -> None:
    """In a child: call these around every call that changes the disk, but for those of compilers, which keep what they made."""

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*args: Any, **named: Any) -> Any:
            if any("__pycache__" in str(arg) for arg in args):
                return call(*args, **named)
            before(name)
            result = call(*args, **named)
            after(name)
            return result

        return watching

    for name in CALLS:
        setattr(os, name, watched(name, getattr(os, name)))
    atomic.exchange = watched("exchange", atomic.exchange)  # type: ignore[attr-defined]


def content_of(path: Path) -> dict[str, bytes]:
    """All that a job wrote, but what says how long it took."""
    if path.is_file():
        return {path.name: path.read_bytes()}
    files = [file for file in path.rglob("*") if file.is_file() and "checkpoints" not in file.parts and file.name[0] != "."]
    content = {str(file.relative_to(path)): file.read_bytes() for file in files}
    for name in content:
        if Path(name).name in TIMED:  # of a run, or of each of several seeds
            content[name] = _without_times(content[name])
        elif name.endswith(".json") and Path(name).parent.name in COMPARED:
            content[name] = json.dumps(without_costs(json.loads(content[name]))).encode()
    return content


def without_costs(value: Any) -> Any:
    """What a result says, but what it took."""
    if isinstance(value, list):
        return [without_costs(own) for own in value]
    if not isinstance(value, dict):
        return value
    return {name: without_costs(own) for name, own in value.items() if name not in COSTS}


def _without_times(content: bytes) -> bytes:
    kept = []
    for line in content.decode().splitlines():
        with suppress(ValueError):
            line = json.dumps({name: value for name, value in json.loads(line).items() if name not in TIMES})
        if "history.jsonl" not in line and '"sha256"' not in line:  # checksums over times
            kept.append(line)
    return "\n".join(kept).encode()


def bytes_lost(expected: dict[str, bytes], found: dict[str, bytes]) -> int:
    """Of files that differ, or are not there."""
    return sum(len(content) for name, content in expected.items() if found.get(name) != content)


def answers_of(address: str) -> list[bytes]:
    """What a server says to some questions."""
    with httpx.Client(base_url=address, timeout=WAIT) as client:
        return [ask(client, number) for number in range(6)]


def ask(client: httpx.Client, number: int) -> bytes:
    ids = [f"n{(number * 7 + k) % RECIPE.nodes:03d}" for k in range(3)]
    answer = client.post(("/v1/embed", "/v1/predict")[number % 2], json={"ids": ids})
    assert answer.status_code == 200, answer.text
    return answer.content


def address_of(log: Path, server: ForkProcess) -> str:
    """Where a server listens that was just started, once it is ready."""
    begun = time.monotonic()
    while time.monotonic() - begun < WAIT and server.exitcode is None:
        words = log.read_text().split() if log.exists() else []
        with suppress(httpx.TransportError):
            if "Serving" in words:
                address = words[words.index("Serving") + 2].rstrip(";")
                if httpx.get(f"{address}/v2/health/ready", timeout=WAIT).status_code == 200:
                    return address
        time.sleep(0.02)
    raise AssertionError(f"no server: {log.read_text()}")
