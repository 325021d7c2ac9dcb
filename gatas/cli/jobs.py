"""Jobs in parts: the options of commands that may run as one, how far they are, and `gatas jobs`."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import typer

from gatas.cli.interrupting import SECONDS, ending_soon
from gatas.cli.output import plain_table, print_json, print_table, show_cursor, stderr, stdout
from gatas.cli.whole_help import WholeHelp
from gatas.errors import ConfigError, JobError, StoreError

if TYPE_CHECKING:
    from gatas.graph import Graph
    from gatas.scale import Engine, Job, JobProgress, JobTask
    from gatas.scale.progress import JobProgressCallback

EngineOption = typer.Option(None, "--engine", help="Do it in parts: in this process, a pool of processes, or on Ray.")
WorkersOption = typer.Option(None, "--workers", help="Parts at a time; as many as there are cores, if not given.")
PartsOption = typer.Option(None, "--parts", min=1, help="How many parts; the result is the same for any number.")
JobOption = typer.Option(None, "--job", metavar="FOLDER", help="Where parts are kept; beside the result until it is there.")
RayAddressOption = typer.Option(None, "--ray-address", metavar="ADDRESS", help="A Ray cluster that runs; else one is started.")
GpusOption = typer.Option(0.0, "--gpus-per-worker", help="GPUs of each worker; 0.5 lets two share one.")
SECONDS_BETWEEN_LINES = 5.0

EngineChoice = Literal["serial", "pool", "ray"]
"""The engines of `gatas.scale`, which takes too long to import for a command's help."""
Chosen = AbstractContextManager["Engine"]

app = typer.Typer(cls=WholeHelp, no_args_is_help=True, help="Look at jobs in parts, and go on with them.")


@app.command()
def show(
    folder: Path = typer.Argument(help="Folder of a job."),
    verify: bool = typer.Option(False, "--verify", help="Check the checksums of all files."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List a job's parts: done, missing, damaged or failed."""
    job = open_known(folder)
    failed = failures(folder)
    rows = [{"first": part.first, "last": part.last, **state_of(job, part, failed, verify)} for part in job.parts]
    if json:
        print_json({"task": job.plan.parameter("task"), "key": job.key, "out": job.plan.parameter("out"), "parts": rows})
        return
    table = plain_table("first#", "last#", "state", "bytes#", "")
    for row in rows:
        table.add_row(f"{row['first']:,}", f"{row['last'] - 1:,}", row["state"], f"{row['bytes']:,}", row.get("error", ""))
    done = sum(row["state"] == "done" for row in rows)
    print_table(f"{done:,} of {len(rows):,} parts are done, of {job.plan.parameter('out')}", table)


@app.command()
def resume(
    folder: Path = typer.Argument(help="Folder of a job."),
    engine: EngineChoice = typer.Option("pool", "--engine", help="serial, pool or ray; need not be the one it began with."),
    workers: int | None = WorkersOption,
    threads: int | None = typer.Option(None, "--threads", help="Threads of each worker."),
    ray_address: str | None = RayAddressOption,
    gpus_per_worker: float = GpusOption,
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the result if it exists."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Check what is there of a job, do the rest, and write the result where it was meant to go."""
    job = open_known(folder)
    out = Path(job.plan.parameter("out"))
    chosen = chosen_engine(engine, workers, None, None, ray_address, threads, gpus_per_worker)
    assert chosen is not None
    written = do_job(job.task, folder, out, chosen, None, keep=True, overwrite=overwrite)
    if json:
        print_json({"out": str(out), **written})
    else:
        stdout.print(f"{out}: {', '.join(f'{name} {value}' for name, value in written.items())}", soft_wrap=True)


def chosen_engine(
    engine: EngineChoice | None,
    workers: int | None,
    parts: int | None,
    job: Path | None,
    ray_address: str | None,
    threads: int | None,
    gpus_per_worker: float,
) -> Chosen | None:
    """Return the engine that was asked for, if any: nothing of it runs yet."""
    if engine is not None:
        from gatas.scale import open_engine

        settings: dict[str, Any] = {"threads": threads, "gpus_per_worker": gpus_per_worker, "ray_address": ray_address}
        return open_engine(engine, workers, **settings)
    given = {"workers": workers, "parts": parts, "job": job, "ray-address": ray_address, "gpus-per-worker": gpus_per_worker}
    for name, value in given.items():
        if value:
            raise ConfigError(f"--{name} belongs to jobs in parts: give --engine serial, pool or ray, or leave it out.")
    return None


def job_folder(job: Path | None, out: Path) -> Path:
    """Return the folder that was named; or one beside the result, where the same command finds it again."""
    return job or out.absolute().with_name(f".{out.name}.job")


def is_begun(folder: Path) -> bool:
    """Whether a folder holds a job that was planned, or what is left of one that is finished."""
    from gatas.scale.finished import NOTE

    return folder.joinpath("plan").exists() or folder.joinpath(NOTE).exists()


def remove_emptied(folder: Path) -> None:
    """Remove the folder of a finished job that was killed just before it was."""
    from gatas.files import remove_leftovers

    remove_leftovers(folder)
    with suppress(OSError):  # it is not there, or not empty
        folder.rmdir()


def kept_graph(graph: "Graph", folder: Path) -> Path:
    """Store a graph that was read from files in a job's folder, from which workers map it."""
    from gatas.files import remove_folder
    from gatas.graph import Graph
    from gatas.graph.saved import graph_fingerprint
    from gatas.scale.finished import NOTE

    stored = folder / "graph"
    if folder.joinpath(NOTE).exists():  # a finished job was killed while its folder was removed
        remove_folder(stored)
    if not stored.exists():
        graph.save(stored)
    elif graph_fingerprint(Graph.open(stored)) != graph_fingerprint(graph):
        raise JobError(f"{folder} is of a job with another graph. Choose another folder, or remove it.")
    return stored


def answer_all(
    asked: Literal["embeddings", "predictions"],
    run: Path,
    out: Path,
    engine: Chosen,
    parts: int | None,
    job: Path | None,
    device: str,
    batch_size: int | None = None,
) -> dict[str, Any]:
    """Write what a run's predictor says of all nodes."""
    from gatas.scale.answers import AnswersTask, check_predicts_nodes

    if asked == "predictions":
        check_predicts_nodes(run)
    folder = job_folder(job, out)
    task = AnswersTask(asked, str(run.resolve()), batch_size, device)
    return do_job(task, folder, out, engine, parts, keep=job is not None, overwrite=True)


def do_job(
    task: "JobTask", folder: Path, out: Path, engine: Chosen, parts: int | None, *, keep: bool, overwrite: bool
) -> dict[str, Any]:
    """Run a job, while its progress is shown; an interrupted one says how to go on."""
    from gatas.scale import run_job
    from gatas.scale.job import finished_before

    before = finished_before(task, folder.resolve(), out.resolve())
    if before is not None:
        stderr.print(f"{out} was finished before: what was left in {folder} is removed", soft_wrap=True)
        return before

    def say() -> None:
        show_cursor()
        stderr.print(f"interrupted; what is done is kept in {folder}: the same command goes on from there", soft_wrap=True)

    seconds = getattr(engine, "seconds_to_end", SECONDS)
    with ending_soon(say, seconds), engine as opened, job_progress(task.name) as show:
        report = show if parts is None else fewer_said(show, parts, getattr(task, "whole_batch", 1))
        return run_job(task, folder, out, opened, num_parts=parts, keep=keep, overwrite=overwrite, report=report)


def fewer_said(show: "JobProgressCallback", asked: int, multiple: int) -> "JobProgressCallback":
    """Say once, before a job's progress is shown, that there are fewer parts than were asked for, and why."""
    said = False

    def report(state: "JobProgress") -> None:
        nonlocal said
        if state.total < asked and not said:
            said, why = True, "there are few nodes, or the work lies in few of them"
            if multiple > 1:
                why = f"parts are of whole batches, {multiple:,} nodes each"
            stderr.print(f"{state.total:,} parts instead of the {asked:,} asked for: {why}", soft_wrap=True)
        show(state)

    return report


@contextmanager
def job_progress(what: str) -> Iterator[Callable[["JobProgress"], None]]:
    """Show a bar on a terminal that vanishes when done; elsewhere a line now and then."""
    if not stderr.is_terminal:
        yield Lines(what)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(what, total=1.0, words="planning")
        yield lambda state: bar.update(task, completed=state.share, words=words_of(state))


class Lines:
    """The first state, the last, and some between."""

    def __init__(self, what: str) -> None:
        self.what, self.said = what, 0.0

    def __call__(self, state: "JobProgress") -> None:
        last = state.done + state.failed == state.total
        if last or not self.said or monotonic() - self.said >= SECONDS_BETWEEN_LINES:
            self.said = monotonic()
            stderr.print(f"{self.what}  {words_of(state)}", soft_wrap=True)


def words_of(state: "JobProgress") -> str:
    """Return `12 of 40 parts  1.5 MiB  0:12, left 0:30`."""
    from gatas.transitions.cost import readable_bytes, readable_seconds

    failed = f", {state.failed} failed" if state.failed else ""
    left = "" if state.seconds_left is None or state.done == state.total else f", left {readable_seconds(state.seconds_left)}"
    times = f"{readable_seconds(state.seconds)}{left}"
    return f"{state.done:,} of {state.total:,} parts{failed}  {readable_bytes(state.num_bytes)}  {times}"


def open_known(folder: Path) -> "Job":
    """Open the job in a folder, by its plan alone."""
    from gatas.scale import Job
    from gatas.scale.job import read_plan
    from gatas.scale.transitions import TransitionsTask

    plan = read_plan(folder)
    settings = plan.parameter("settings")
    if plan.parameter("task") == TransitionsTask.name:
        task: JobTask = TransitionsTask(**settings)
    else:
        from gatas.scale.answers import AnswersTask

        task = AnswersTask(**settings)
    return Job(folder.resolve(), task, plan.parameter("key"), plan)


def failures(folder: Path) -> dict[tuple[int, int], str]:
    """Return the failures that the last run recorded."""
    import json

    path = folder / "failed.json"
    if not path.exists():
        return {}
    return {(entry["first"], entry["last"]): entry["error"] for entry in json.loads(path.read_text(encoding="utf-8"))}


def state_of(job: "Job", part: Any, failed: dict[tuple[int, int], str], verify: bool) -> dict[str, Any]:
    """Return the state of a part: done, missing, damaged or failed."""
    if not job.has(part):
        error = failed.get((part.first, part.last))
        return {"state": "missing", "bytes": 0} if error is None else {"state": "failed", "bytes": 0, "error": error}
    try:
        store = job.read(part, verify=verify)
    except StoreError as error:
        return {"state": "damaged", "bytes": 0, "error": str(error)}
    return {"state": "done", "bytes": sum(array.nbytes for array in store.arrays.values())}
