"""`reproduce`: run what stands behind a table's cells, resume where it stopped, and render the table."""

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from gatas.datasets import Dataset, open_dataset
from gatas.errors import ConfigError
from gatas.experiments.recipes import recipe
from gatas.experiments.recording import curve, seed_run, session
from gatas.experiments.results import ResultRecord, kept, read_result, result_path, resumed, spread, write_result
from gatas.experiments.tables import TABLES, Cell, PaperTable
from gatas.inference import fit_many
from gatas.training.config import Config
from gatas.training.loop import chosen_device
from gatas.training.progress import Entry


def recipes_of(table: str, only: list[str]) -> list[str]:
    """The recipes behind a table, or those whose name contains one of `only`."""
    if table not in TABLES:
        raise ConfigError(f"there is no table {table!r}. Known: {', '.join(TABLES)}.")
    names = list(dict.fromkeys(cell.recipe for cell in TABLES[table].cells))
    chosen = [name for name in names if not only or any(part in name for part in only)]
    if not chosen:
        raise ConfigError(f"nothing in {table} is named like {', '.join(only)}. Known: {', '.join(names)}.")
    return chosen


def reproduce(
    table: str,
    folder: Path,
    *,
    seeds: int | None = None,
    only: list[str] | None = None,
    begin: Callable[[str], None] = lambda name: None,
    **settings: Any,
) -> str:
    """Run a table's recipes that have fewer seeds than asked for, and render it. `settings` are those of `run_recipe`."""
    for name in recipes_of(table, only or []):
        begin(name)
        run_recipe(name, range(seeds or TABLES[table].seeds), folder, **settings)
    return render(TABLES[table], folder)


def run_recipe(
    name: str,
    seeds: Sequence[int],
    folder: Path,
    *,
    at_once: int = 100,
    data_dir: str | Path | None = None,
    device: str = "auto",
    report: Callable[[Entry], None] | None = None,
) -> ResultRecord:
    """Train the seeds that the recipe's result does not have yet, `at_once` in one program, and add them to it."""
    config = recipe(name)
    path, result = resumed(folder, asked_of(name, config))
    missing = result.missing(seeds)
    dataset: Dataset | None = None
    for start in range(0, len(missing), at_once):
        chosen = missing[start : start + at_once]
        dataset = dataset or open_dataset(config.data, data_dir)
        started = perf_counter()
        runs = fit_many(config, chosen, dataset=dataset, device=device, report=report)
        taken = session(chosen, chosen_device(device), seconds=round(perf_counter() - started, 2))
        curves = {str(run.seed): curve(run) for run in runs if run.seed == 0}
        about = {"task": dataset.task, "note": dataset.note}
        result = result.model_copy(update=about).extended([seed_run(run) for run in runs], taken, curves)
        write_result(path, result)
    return result


def asked_of(name: str, config: Config) -> ResultRecord:
    """A recipe's result before anything was run."""
    return ResultRecord(model=name, data=config.data.name, task="", settings=settings_of_config(config))


def settings_of_config(config: Config) -> dict[str, Any]:
    """A config as results keep it: model and training whole, of the data what is not as by default, no places."""
    data = {"name": config.data.name, **config.data.model_dump(mode="json", exclude_defaults=True)}
    return kept({"data": without_places(data), **config.model_dump(mode="json", include={"model", "training"})})


def without_places(content: Any) -> Any:
    """Content with absolute paths cut to a file and its folder: where data lies on a machine is nobody else's business."""
    if isinstance(content, dict):
        return {name: without_places(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_places(value) for value in content]
    return "/".join(Path(content).parts[-2:]) if isinstance(content, str) and Path(content).is_absolute() else content


def render(table: PaperTable, folder: Path) -> str:
    """The table in Markdown, from what is in the folder."""
    wanted = {cell.recipe for cell in table.cells}
    paths = {name: result_path(folder, asked_of(name, recipe(name))) for name in wanted}
    return rendered(table, {name: read_result(path) for name, path in paths.items() if path.exists()})


def rendered(table: PaperTable, found: Mapping[str, ResultRecord], theirs: str = "paper") -> str:
    """The table in Markdown, from results by recipe; `theirs` is what stands above the figures that ours are beside."""
    columns = ["", "data", theirs, "ours", "seeds", "difference ± its standard error", "verdict"]
    lines = [f"### {table.title}", "", f"|{' |'.join(f' {name}'.rstrip() for name in columns)} |", "|---" * len(columns) + "|"]
    for cell in table.cells:
        numbers = found[cell.recipe].values(cell.metric) if cell.recipe in found else []
        lines.append(f"| {cell.row} | {cell.column} | {shown(cell, cell.paper, cell.spread)} | {_ours(cell, numbers)} |")
    return "\n".join([*lines, "", *table.notes, ""])


def _ours(cell: Cell, numbers: list[float]) -> str:
    if not numbers:
        return "not run yet | 0 | – | –"
    shares = [100 * number for number in numbers] if cell.percent else numbers
    mean, deviation = statistics.fmean(shares), spread(shares)
    difference, said = compared(cell, mean, deviation, len(numbers))
    return f"{shown(cell, mean, deviation)} | {len(numbers)} | {difference} | {said}"


def shown(cell: Cell, mean: float | None, deviation: float | None) -> str:
    """A cell's number with its deviation."""
    if mean is None:
        return "–"
    digits = 2 if cell.percent else 4
    return f"{mean:.{digits}f}" + (f" ± {deviation:.{digits}f}" if deviation else "")


def compared(cell: Cell, mean: float, deviation: float, seeds: int) -> tuple[str, str]:
    """The difference from the paper with its standard error, and how many of these it is (Welch's t).

    Where the paper gives no deviation, or no number of runs, the error is that of our mean alone, and the verdict says so.
    """
    if cell.paper is None:
        return "–", "–"
    difference, digits = mean - cell.paper, 2 if cell.percent else 4
    if seeds < 2:
        return f"{difference:+.{digits}f}", "one run"
    theirs = cell.spread**2 / cell.seeds if cell.spread and cell.seeds else 0.0
    error = math.sqrt(deviation**2 / seeds + theirs)
    if not error:
        return f"{difference:+.{digits}f}", "no deviation"
    said = within(difference / error) + ("" if theirs else ", of ours alone")
    return f"{difference:+.{digits}f} ± {error:.{digits}f}", said


def within(errors: float) -> str:
    """How many standard errors a difference is."""
    return "within 2 standard errors" if abs(errors) <= 2 else f"{errors:+.1f} standard errors"


def update_readme(readme: Path, name: str, text: str) -> None:
    """Put a table between its marks in a file."""
    content = readme.read_text(encoding="utf-8")
    marks = f"<!-- results: {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), re.DOTALL)
    if not pattern.search(content):
        raise ConfigError(f"{readme} has no marks {marks[0]} and {marks[1]} to put the table between.")
    readme.write_text(pattern.sub(lambda _: f"{marks[0]}\n{text}\n{marks[1]}", content), encoding="utf-8")
