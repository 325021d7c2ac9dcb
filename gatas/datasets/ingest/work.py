"""The folder an ingest works in, beside its store: stages are there whole or not at all, and are found again."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gatas.errors import GraphError, StoreError
from gatas.files import (
    FileLock,
    atomic_folder,
    checksum,
    checksum_of,
    read_signed_json,
    remove_all_leftovers_within,
    signed_json,
    verify_checksums,
    write_file,
)

FORMAT = 3
"""Format of the stages: those that another version has left are not gone on from."""

JOB = "job"
SPILL = "spill"
FACTS = "facts.json"
NOTE = ".ingest"
"""In the store, beside what its manifest names: which ingest wrote it, with a checksum."""


class IngestFolder:
    """Stages by name, each a folder that is there with all of its content or not at all."""

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
            with atomic_folder(done) as temporary:
                facts = dict(fill(temporary))
                checksums = {path.name: checksum(path) for path in sorted(temporary.iterdir())}
                (temporary / FACTS).write_bytes(signed_json({"facts": facts, "sums": checksums}))
        return done, facts


@contextmanager
def working_beside(out: Path, job: Mapping[str, Any]) -> Iterator[IngestFolder]:
    """The work folder of a store, for one ingest at a time.

    It goes when the store is there, in which it is noted which ingest wrote it, and stays after a failure.
    """
    folder = beside(out)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock") as lock:
        try:
            lock.acquire()
        except BlockingIOError:
            raise GraphError(f"another ingest is writing {out}. Wait for it, or choose another folder.") from None
        _begin(folder, key_of(job))
        yield IngestFolder(folder)
        if out.is_dir():
            _note(out, key_of(job))
        shutil.rmtree(folder)


def tidied(out: Path, job: Mapping[str, Any]) -> bool:
    """Whether this very ingest wrote the store and was ended while it removed its work folder, which is then removed."""
    folder, key = beside(out), key_of(job)
    named = folder / JOB  # gone if it was removed first
    if not folder.exists() or (named.is_file() and named.read_text() != key):
        return False
    with FileLock(folder / "lock") as lock:
        try:
            lock.acquire()
        except BlockingIOError:  # it is at it
            return False
        if named.is_file():
            _note(out, key)
        shutil.rmtree(folder)
    return True


def written_before(out: Path, job: Mapping[str, Any]) -> bool:
    """Whether this very ingest wrote the store: over the same files, with the same settings."""
    return bool(read_note(out).get("ingest") == key_of(job))


def read_note(out: Path) -> dict[str, Any]:
    """Return what a store says of the ingest that wrote it, nothing if none did; a damaged note is refused."""
    return read_signed_json(out / NOTE) if out.joinpath(NOTE).is_file() else {}


def beside(out: Path) -> Path:
    return out.with_name(f".{out.name}.ingest")


def key_of(job: Mapping[str, Any]) -> str:
    return checksum_of(json.dumps({"format": FORMAT, **job}, sort_keys=True).encode())


def fingerprints(files: Sequence[Path]) -> list[list[Any]]:
    """What tells that a file is still the same, without reading it."""
    return [[str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def _note(out: Path, key: str) -> None:
    write_file(out / NOTE, signed_json({"ingest": key}))


def _begin(folder: Path, job: str) -> None:
    """Keep the stages of the same job; those of another, over other files or with other settings, are removed."""
    named = folder / JOB
    if not named.is_file() or named.read_text() != job:
        for path in folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        write_file(named, job.encode())
    remove_all_leftovers_within(folder)
    shutil.rmtree(folder / SPILL, ignore_errors=True)
    (folder / SPILL).mkdir()


def _facts_of(stage: Path) -> dict[str, Any] | None:
    """Return the facts of a stage that is there, every byte of which is read; None where it is not, or is damaged."""
    if not stage.is_dir():
        return None
    try:
        content = read_signed_json(stage / FACTS)
        verify_checksums(stage, content["sums"])
    except StoreError:
        return None
    facts: dict[str, Any] = content["facts"]
    return facts
