"""A job: a folder with a plan and the parts that are done, a driver that has the others done, and then the whole.

folder/plan/          manifest with the task, its settings and its key; cuts between parts, and what all parts share
folder/graph/         the graph, where it was not stored before
folder/parts/0…-0…/   a range of nodes each, whole or not there
folder/failed.json    parts that failed too often in the last run, with their tracebacks
"""

import json
import random
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gatas import __version__
from gatas.errors import GatasError, JobError, StoreError
from gatas.files import FileLock, checksum_of, reason, remove_folder, remove_leftovers, remove_leftovers_within, write_file
from gatas.graph.saved import KINDS
from gatas.graph.storage import Store, open_store, write_store
from gatas.scale.engines import Engine
from gatas.scale.finished import LOCK, clear_for_another, read_note, remove_finished
from gatas.scale.parts import Part, PartOutcome, attempt, equal_work, read_part, write_part
from gatas.scale.progress import JobProgressCallback, JobProgressCounter
from gatas.scale.task import Job, JobTask

FORMAT = 1
"""The format of plans and parts: those of another are never mixed in."""
ATTEMPTS = 3
PART_BYTES = 512 << 20
PART_SECONDS = 60
"""Parts are not larger, about, unless so many are asked for."""
PARTS_PER_WORKER = 4
"""At least, so that workers end at about the same time."""


def run_job(
    task: JobTask,
    folder: str | Path,
    out: str | Path,
    engine: Engine,
    *,
    num_parts: int | None = None,
    attempts: int = ATTEMPTS,
    overwrite: bool = False,
    keep: bool = True,
    report: JobProgressCallback = lambda state: None,
) -> dict[str, Any]:
    """Do what of a job is not done yet, and write the whole to `out`; without `keep` the folder is removed at the end.

    Any number of drivers may be at one job, on one disk: they share the work, and what one of them has done stays.
    """
    folder, out = Path(folder).resolve(), Path(out).resolve()
    before = finished_before(task, folder, out)
    if before is not None:
        return before
    with shared(folder) as alone:
        try:
            job = open_job(task, folder, engine, num_parts, attempts, out)
        except GatasError:
            if not keep and not folder.joinpath("plan").exists() and alone():
                remove_folder(folder)
            raise
        run_parts(job, engine, attempts, report)
        remove_leftovers_within(folder / "parts")  # workers of a killed driver may have ended after a part was done
        written = task.assemble(job, out, overwrite)
        if not keep and alone():
            remove_finished(folder, job.key, written)
    return written


def finished_before(task: JobTask, folder: Path, out: Path) -> dict[str, Any] | None:
    """Return what was said of the result of this very job if it was ended while its folder was removed, which then goes.

    What is left of another job that ended so is removed.
    """
    note = read_note(folder)
    if note is None:
        return None
    with shared(folder) as alone:
        if note["key"] == key_of(task.identity()) and out.exists():
            written: dict[str, Any] = note["written"]
            if alone():
                remove_finished(folder, note["key"], written)
            return written
        if not alone():
            raise JobError(f"{folder} is of another job, which just ends. Run it again, or choose another folder.")
        clear_for_another(folder, task.data.resolve())
    return None


def open_job(
    task: JobTask, folder: Path, engine: Engine, num_parts: int | None = None, attempts: int = ATTEMPTS, out: Path | None = None
) -> Job:
    """Open the job in a folder, verified with its graph, if it is of this very task; or have a worker plan a new one."""
    key = key_of(task.identity())
    if not folder.joinpath("plan").exists():
        for _ in range(attempts):  # workers die of many causes
            outcome = outcome_of(engine.submit(attempt, _write_plan, task, folder, out, num_parts, engine.num_workers))
            if outcome.foreseen or not outcome.error:
                break
        if outcome.error:
            raise GatasError(outcome.error) if outcome.foreseen else JobError(f"no plan could be made: {outcome.error}")
        return Job(folder, task, key, open_store(folder / "plan", "plan"))
    plan = read_plan(folder)
    if plan.parameter("key") != key:
        theirs, ours = plan.parameter("identity"), task.identity() | {"gatas": __version__}
        differing = [f"{name} ({theirs.get(name)!r} there, {value!r} here)" for name, value in ours.items()
                     if theirs.get(name) != value]  # fmt: skip
        raise JobError(f"{folder} is of another job: it differs in {', '.join(differing)}. Choose another, or remove it.")
    check_parts(folder, plan, num_parts)
    open_store(task.data, KINDS, verify=True)
    job = Job(folder, task, key, plan)
    remove_damaged(job)
    return job


def check_parts(folder: Path, plan: Store, num_parts: int | None) -> None:
    """Refuse another number of parts than was asked for or came of it: fewer may come where nodes are few or unequal."""
    found, asked = len(plan.array("cuts")) - 1, plan.parameters.get("asked_parts")
    if num_parts is None or num_parts in (found, asked):
        return
    of_asked = "" if asked in (None, found) else f" of the {asked} asked for"
    raise JobError(
        f"{folder} is cut into {found} parts{of_asked}, not {num_parts}. Leave --parts out, or choose another folder."
    )


def key_of(identity: dict[str, Any]) -> str:
    content = {"format": FORMAT, "gatas": __version__, **identity}
    return checksum_of(json.dumps(content, sort_keys=True).encode())


def read_plan(folder: Path) -> Store:
    """Read a plan and check every byte of it and of the job's own graph: all parts rest on them."""
    try:
        if folder.joinpath("graph").exists():
            open_store(folder / "graph", KINDS, verify=True)
        return open_store(folder / "plan", "plan", verify=True)
    except StoreError as error:
        raise JobError(f"{folder} holds no job that can be resumed: {error}") from error


def remove_damaged(job: Job) -> None:
    """Check every byte of the parts that are there; what is damaged is done again."""
    for part in filter(job.has, job.parts):
        try:
            job.read(part, verify=True)
        except StoreError:
            shutil.rmtree(job.folder / "parts" / part.name)


def verify_job(folder: Path) -> int:
    """Read every byte of a job's plan, graph and parts; gives the number of parts that are there."""
    plan = read_plan(folder)
    parts = [Part(first, last) for first, last in pairwise(plan.array("cuts").tolist())]
    done = [part for part in parts if folder.joinpath("parts", part.name).exists()]
    for part in done:
        read_part(folder / "parts", plan.parameter("key"), part, verify=True)
    return len(done)


def _write_plan(task: JobTask, folder: Path, out: Path | None, num_parts: int | None, num_workers: int) -> int:
    outline = task.outline(folder)
    seconds = np.asarray(outline.seconds, np.float64)
    needed = max(outline.num_bytes / PART_BYTES, seconds.sum() / PART_SECONDS, PARTS_PER_WORKER * num_workers)
    cuts = equal_work(seconds, num_parts or int(np.ceil(needed)), outline.multiple)
    arrays = {"cuts": cuts, "seconds": np.add.reduceat(seconds, cuts[:-1]), **outline.arrays}
    parameters = {
        "key": key_of(task.identity()),
        "task": task.name,
        "settings": asdict(task),  # type: ignore[call-overload]
        "identity": task.identity() | {"gatas": __version__},
        "out": None if out is None else str(out),
        "asked_parts": num_parts,
        **outline.parameters,
    }
    try:
        write_store(folder / "plan", "plan", arrays, parameters)
    except StoreError:
        if not folder.joinpath("plan").exists():  # another driver may have been quicker
            raise
    return 0


def do_part(job_folder: Path, task: JobTask, key: str, part: Part, threads: int) -> int:
    """Compute a part and write it, in a worker."""
    job = Job(job_folder, task, key, open_store(job_folder / "plan", "plan"))
    if job.has(part):
        return 0
    return write_part(job_folder / "parts", key, part, task.arrays(job, part, threads))


def outcome_of(future: Future[PartOutcome]) -> PartOutcome:
    """Return what a call gave, or that its worker died."""
    error = future.exception()
    if error is None:
        return future.result()
    return PartOutcome(error=f"a worker died ({type(error).__name__})", traceback=f"{type(error).__name__}: {error}")


def run_parts(job: Job, engine: Engine, attempts: int = ATTEMPTS, report: JobProgressCallback = lambda state: None) -> None:
    """Have all parts done that are not; those that fail `attempts` times are recorded, and the others done all the same."""
    failures = job.folder / "failed.json"
    failures.unlink(missing_ok=True)
    waiting, running = deque(part for part in job.parts if not job.has(part)), dict[Future[PartOutcome], Part]()
    progress = JobProgressCounter(dict(zip(job.parts, job.plan.array("seconds").tolist(), strict=True)), waiting, report)
    waiting.rotate(-random.randrange(len(waiting) or 1))  # drivers that share a job begin at different places
    tried, failed, full = Counter[Part](), list[dict[str, Any]](), None
    while running or (waiting and full is None):
        while waiting and full is None and len(running) < engine.num_workers:
            part = waiting.popleft()
            if job.has(part):  # done by another driver
                progress.tell(part, 0)
            else:
                running[engine.submit(attempt, do_part, job.folder, job.task, job.key, part, engine.threads)] = part
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            part, outcome = running.pop(future), outcome_of(future)
            if not outcome.error:
                progress.tell(part, outcome.num_bytes)
                continue
            tried[part] += 1
            if outcome.full:
                full = outcome
            elif tried[part] < attempts:
                waiting.append(part)
            else:
                failed.append({"first": part.first, "last": part.last, "attempts": attempts, "error": outcome.error,
                               "traceback": outcome.traceback})  # fmt: skip
                progress.fail()
    if failed:
        _record(failures, failed)
    if full is not None:
        raise JobError(
            f"{full.error} {progress.done} of {progress.total} parts are done and kept: make room, and run it again."
        )
    if failed:
        raise JobError(
            f"{len(failed)} of {progress.total} parts failed {attempts} times; the first: {failed[0]['error']} Tracebacks are "
            f"in {failures}. The other parts are kept: run it again to try these once more."
        )


def _record(path: Path, failed: list[dict[str, Any]]) -> None:
    with suppress(OSError):  # the error that is raised says the most of it
        write_file(path, (json.dumps(failed, indent=1, ensure_ascii=False) + "\n").encode())


@contextmanager
def shared(folder: Path) -> Iterator[Callable[[], bool]]:
    """Be one of a job's drivers; gives a function that says whether there is no other any more."""
    try:
        folder.joinpath("parts").mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        lock = FileLock(folder / LOCK)
    except OSError as error:
        raise JobError(f"{folder} cannot be written to ({reason(error)}). Choose another folder.") from error
    with lock:
        _acquired(lock.acquire_shared)
        yield lambda: _acquired(lock.acquire)


def _acquired(acquire: Callable[[], None]) -> bool:
    """Return whether a lock could be had: another driver may have it, or the disk know no locks."""
    try:
        acquire()
    except OSError:
        return False
    return True
