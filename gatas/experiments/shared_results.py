"""Several processes at one result: each trains seeds that no other is at, and adds them to those that are there by then."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gatas.experiments.results import ResultRecord, SeedRun, TrainingSession, read_result, write_result
from gatas.files import FileLock, alone_in
from gatas.training.checkpoint import writing


@contextmanager
def claimed(path: Path, seeds: Sequence[int]) -> Iterator[list[int]]:
    """Those of some seeds that a result lacks and that no other process is at; until the end they are ours."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        ours = [seed for seed in seeds if is_free(path.with_name(f".{path.stem}-{seed}.lock"), held)]
        done = {run.seed for run in read_result(path).runs} if path.exists() else set()
        yield [seed for seed in ours if seed not in done]


def is_free(path: Path, held: ExitStack) -> bool:
    """Whether no other process has the lock of that name, which is ours until `held` is closed."""
    with writing(path):
        lock = held.enter_context(FileLock(path))
    try:
        lock.acquire()
    except BlockingIOError:
        return False
    except OSError:  # a disk that knows no locks: who starts several processes there trains seeds twice
        pass
    held.callback(path.unlink, missing_ok=True)
    return True


def add(path: Path, fresh: ResultRecord, runs: list[SeedRun], session: TrainingSession) -> ResultRecord:
    """Write further seeds, beside those that are there by now."""
    with alone_in(path.parent):
        found = there(path, fresh).extended(runs, session)
        write_result(path, found)
    return found


def add_error(path: Path, fresh: ResultRecord, error: Exception) -> ResultRecord:
    """Write what ended an attempt, beside the seeds that are there by now."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with alone_in(path.parent):
        found = there(path, fresh)
        found = found.model_copy(update={"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
        write_result(path, found)
    return found


def there(path: Path, fresh: ResultRecord) -> ResultRecord:
    """The result that is there by now, if it has any seed."""
    found = read_result(path) if path.exists() else fresh
    return found if found.runs else fresh
