"""`gatas tune`: search for better settings, and train the best."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gatas.cli.compiling import compilation_said
from gatas.cli.configs import NamedArgument, SetOption, named_config
from gatas.cli.graphs import DataDirOption
from gatas.cli.importing import quick_imports
from gatas.cli.metrics import print_measured
from gatas.cli.output import print_json, print_table, stderr, stdout
from gatas.cli.train import written_reports

if TYPE_CHECKING:
    from gatas.tuning import Tuning

TOP = 10
"""Trials that are printed in the end."""


def tune(
    named: str = NamedArgument,
    trials: int = typer.Option(50, "--trials", min=1, help="How many settings to try, those of earlier calls included."),
    seconds: float = typer.Option(None, "--seconds", min=0.1, help="End the search after so long, and train the best."),
    space: Path = typer.Option(
        None, "--space", metavar="FILE", help="What to try, as YAML; --show-space prints one to begin with."
    ),
    show_space: bool = typer.Option(False, "--show-space", help="Print what would be tried as YAML, and leave."),
    settings: list[str] = SetOption,
    data_dir: Path | None = DataDirOption,
    out: Path | None = typer.Option(None, "--out", help="Folder of the run; runs/NAME-tuned if not given."),
    device: str = typer.Option("auto", "--device", help="cpu, cuda, or auto: a GPU where there is one."),
    at_once: int = typer.Option(
        None, "--at-once", min=1, help="Trials of one shape in one program; 8 on a GPU, 1 on a CPU if not given."
    ),
    seed: int = typer.Option(0, "--seed", help="Of the search, and of every training."),
    report: bool = typer.Option(
        True, "--report/--no-report", help="Write report.html, a page about the best, into its folder."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Search for better settings, and train the best. The same command again goes on where it was stopped.

    The first trial is the config as it is. Trials are compared on validation data; test data is looked at once, when the best
    is trained in the end.
    """
    with quick_imports():
        from gatas.tuning import tune as search  # torch: seconds that other commands need not wait
        from gatas.tuning.values import read_space

    config, folder = named_config(named, settings), out or Path("runs") / f"{Path(named).stem}-tuned"
    asked = None if space is None else read_space(space)
    if show_space:
        typer.echo(_written_space(config, asked, data_dir), nl=False)
        return
    given: Any = {"space": asked, "data_dir": data_dir, "folder": folder, "seed": seed, "device": device, "at_once": at_once}
    try:
        with compilation_said(device):
            tuning = search(config, trials=trials, seconds=seconds, progress=True, **given)
    except (KeyboardInterrupt, SystemExit):
        _say_how_to_go_on(folder)
        raise
    reports = written_reports([tuning.run], folder, device) if report and tuning.run is not None else []
    if json:
        print_json(as_json(tuning, folder))
    else:
        print_tuning(tuning, folder)
        for path in reports:
            stdout.print(f"Report: {path}", soft_wrap=True)


def _written_space(config: Any, asked: Any, data_dir: Path | None) -> str:
    """Return what would be tried as YAML that --space takes."""
    from gatas.datasets import open_dataset
    from gatas.tuning.tuning import described_space

    config = config.below(Path.cwd())
    return described_space(config, open_dataset(config.data, data_dir), asked)


def _say_how_to_go_on(folder: Path) -> None:
    kept = [name for name in ("best.yaml", "trials.csv") if folder.joinpath(name).exists()]
    known = f"; so far: {' and '.join(str(folder / name) for name in kept)}" if kept else ""
    stderr.print(f"stopped; the same command goes on from what is saved in {folder}{known}", soft_wrap=True)
    if "best.yaml" in kept:
        stderr.print(f"to train the best so far: gatas train {shlex.quote(str(folder / 'best.yaml'))}", soft_wrap=True)


def print_tuning(tuning: "Tuning", folder: Path) -> None:
    """Print the best trials, what mattered, test metrics, and where the rest is."""
    from gatas.tuning.display import top_table

    counts = {kind: sum(trial.outcome == kind for trial in tuning.trials) for kind in ("pruned", "diverged", "failed")}
    others = "".join(f", {count} {kind}" for kind, count in counts.items() if count)
    print_table(
        f"{len(tuning.trials)} trials{others}; the best by validation {tuning.metric}",
        top_table(tuning.trials, tuning.metric, TOP, stdout.width),
    )
    if tuning.importance:
        most = list(tuning.importance.items())[:5]
        stdout.print(f"What mattered: {', '.join(f'{name} {share:.2f}' for name, share in most)}\n", soft_wrap=True)
    if tuning.run is not None and "test" in tuning.run.metrics:
        print_measured(f"{tuning.run.dataset.name}, test data, with the best settings", [tuning.run.metrics["test"]])
    plots = [str(folder / name) for name in ("trials.png", "importance.png") if folder.joinpath(name).exists()]
    stdout.print(f"Best settings: {folder / 'best.yaml'}\nAll trials: {folder / 'trials.csv'}", soft_wrap=True)
    stdout.print(f"Plots: {', '.join(plots)}\nTrained model: {folder}", soft_wrap=True)


def as_json(tuning: "Tuning", folder: Path) -> dict[str, Any]:
    """Return what was tried and found as data, for JSON."""
    from dataclasses import asdict

    trials = [{name: value for name, value in asdict(trial).items() if name != "curve"} for trial in tuning.trials]
    metrics = None if tuning.run is None else tuning.run.metrics
    return {
        "folder": str(folder),
        "metric": tuning.metric,
        "best": tuning.best.number,
        "importance": tuning.importance,
        "trials": trials,
        "metrics": metrics,
    }
