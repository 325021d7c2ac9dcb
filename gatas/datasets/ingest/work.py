"""The folder an ingest works in, beside its store: stages are there whole or not at all, and are found again."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gatas.errors import GraphError, StoreError
from gatas.graph.sums import check_sums, file_sum, read_signed, signed

FORMAT = 3
"""Of the stages; what another version has left is not gone on from."""

JOB = "job"
SPILL = "spill"
FACTS = "facts.json"


class Work:
    """Stages by name. A stage is a folder that was filled under another name, synced, and then renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def spill(self) -> Path:
        """Where DuckDB puts what does not fit in memory."""
        return self.folder / SPILL

    def stage(self, name: str, fill: Callable[[Path], Mapping[str, Any]]) -> tuple[Path, dict[str, Any]]:
        """The folder of a stage and the facts that filling it gave, from before or from now."""
        done = self.folder / name
        if (facts := _facts_of(done)) is None:
            shutil.rmtree(done, ignore_errors=True)
            temporary = self.folder / f"{name}.tmp"
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            facts = dict(fill(temporary))
            sums = {path.name: file_sum(path) for path in sorted(temporary.iterdir())}
            (temporary / FACTS).write_bytes(signed({"facts": facts, "sums": sums}))
            for path in (*temporary.iterdir(), temporary):
                _sync(path)
            temporary.rename(done)
            _sync(self.folder)
        return done, facts


@contextmanager
def working_beside(out: Path, job: Mapping[str, Any]) -> Iterator[Work]:
    """The work folder of a store, for one ingest at a time; it goes when the store is there, and stays after a failure."""
    folder = beside(out)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise GraphError(f"another ingest is writing {out}. Wait for it, or choose another folder.") from None
        _begin(folder, key_of(job))
        yield Work(folder)
        shutil.rmtree(folder)


def tidied(out: Path, job: Mapping[str, Any]) -> bool:
    """Whether this very ingest wrote the store and was ended while it removed its work folder, which is then removed."""
    folder = beside(out)
    if not folder.exists() or (folder.joinpath(JOB).is_file() and folder.joinpath(JOB).read_text() != key_of(job)):
        return False
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # it is at it
            return False
        shutil.rmtree(folder)
    return True


def beside(out: Path) -> Path:
    return out.with_name(f".{out.name}.ingest")


def key_of(job: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps({"format": FORMAT, **job}, sort_keys=True).encode()).hexdigest()


def fingerprints(files: Sequence[Path]) -> list[list[Any]]:
    """What tells that a file is still the same, without reading it."""
    return [[str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def _begin(folder: Path, job: str) -> None:
    """Keep the stages of the same job; those of another, over other files or with other settings, are removed."""
    named = folder / JOB
    if not named.is_file() or named.read_text() != job:
        for path in folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        named.write_text(job)
        _sync(named)
    shutil.rmtree(folder / SPILL, ignore_errors=True)
    (folder / SPILL).mkdir()


def _facts_of(stage: Path) -> dict[str, Any] | None:
    """Of a stage that is there, every byte of which is read; None where it is not, or is damaged."""
    if not stage.is_dir():
        return None
    try:
        content = read_signed(stage / FACTS)
        check_sums(stage, content["sums"])
    except StoreError:
        return None
    facts: dict[str, Any] = content["facts"]
    return facts


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
