"""`gatas train`: a model for every seed, from a recipe or a YAML file."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import typer

from gatas.cli.building import builds_said
from gatas.cli.compiling import compilation_said
from gatas.cli.configs import NamedArgument, SetOption, named_config
from gatas.cli.graphs import DataDirOption
from gatas.cli.importing import quick_imports
from gatas.cli.metrics import print_measured
from gatas.cli.output import print_json, stderr, stdout
from gatas.errors import GatasError, StoreError

if TYPE_CHECKING:
    from gatas.inference import Run
    from gatas.training import Runs


def train(
    named: str = NamedArgument,
    data_dir: Path | None = DataDirOption,
    seeds: int = typer.Option(1, "--seeds", min=1, help="How many models, each from a seed of its own."),
    settings: list[str] = SetOption,
    out: Path | None = typer.Option(None, "--out", help="Folder of the run; runs/ and the recipe's name if not given."),
    device: str = typer.Option("auto", "--device", help="cpu, cuda, or auto: a GPU where there is one."),
    seed: int = typer.Option(0, "--seed", help="The first seed."),
    max_seconds: float | None = typer.Option(
        None, "--max-seconds", min=0.001, help="End each training after so many seconds, with the best epoch so far."
    ),
    mlflow: bool = typer.Option(False, "--mlflow", help="Log to MLflow too, to where MLFLOW_TRACKING_URI says."),
    mlflow_experiment: str = typer.Option("gatas", "--mlflow-experiment", help="MLflow's experiment to log to."),
    report: bool = typer.Option(True, "--report/--no-report", help="Write report.html, a page about the run, into its folder."),
    timeout: float = typer.Option(
        600.0, "--timeout", min=0.1, help="Seconds for which processes that torchrun started wait for one another."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Train, measure and draw. The same command again goes on where it was stopped.

    Started by `torchrun --nproc-per-node N -m gatas train ...`, N processes train together.
    """
    with quick_imports():
        from gatas.inference.fitting import fit_many
        from gatas.scale.processes import together  # torch: seconds that other commands need not wait
        from gatas.training.limit import Limit
        from gatas.training.mlflow import MlflowTracker

    with together(device, timeout) as group:
        config, folder = named_config(named, settings), out or Path("runs") / Path(named).stem
        numbers = list(range(seed, seed + seeds))
        tracking: AbstractContextManager[MlflowTracker | None] = nullcontext()
        if mlflow and group.first:
            tracking = MlflowTracker(config, numbers, experiment=mlflow_experiment, name=folder.name)
        given: Any = {"data_dir": data_dir, "folder": folder, "device": device, "progress": True, "group": group}
        given["limit"] = Limit(seconds=max_seconds)
        try:
            with tracking as tracker, said_on_stderr(device) if group.first else nullcontext():
                runs = fit_many(config, numbers, report=tracker, **given)
                if tracker is not None:
                    tracker.finish(runs)
        except (KeyboardInterrupt, SystemExit):
            if group.first:
                stderr.print(f"stopped; the same command goes on from what is saved in {folder}", soft_wrap=True)
            raise
    if not group.first:
        return
    reports = written_reports(list(runs), folder, device) if report else []
    if json:
        print_json(as_json(runs, folder))
    else:
        print_runs(runs, folder)
        for path in reports:
            stdout.print(f"Report: {path}", soft_wrap=True)


@contextmanager
def said_on_stderr(device: str) -> Iterator[None]:
    """Say what is done before the first epoch: kernels that are compiled, transitions that are built."""
    with compilation_said(device), builds_said():
        yield


def written_reports(runs: "Sequence[Run]", folder: Path, device: str) -> list[Path]:
    """Write a page about each run into its folder; a run is none the worse without."""
    from gatas.inference.run_report import write_report

    folders = [folder] if len(runs) == 1 else [folder / f"seed-{run.seed}" for run in runs]
    found = []
    for place in folders:
        try:
            found.append(write_report(place, device=device))
        except StoreError:  # the disk is full, say: the same command writes it later
            raise
        except GatasError as error:
            stderr.print(f"no report of {place}: {error}", style="yellow", soft_wrap=True)
    return found


def print_runs(runs: "Runs[Run]", folder: Path) -> None:
    """Print metrics, depth where it was learned, and where the rest is."""
    epochs = ", ".join(f"{run.metrics['best_epoch'] + 1} of {run.metrics['epochs']}" for run in runs)
    split = next((split for split in ("test", "valid") if split in runs[0].metrics), None)
    if split is not None:
        print_measured(f"{runs[0].dataset.name}, {split} data", [run.metrics[split] for run in runs])
    depth, plots = depth_of(runs), ["curve.png"]
    if depth is not None:
        stdout.print(f"Depth q: {readable_depth(depth)}", soft_wrap=True)
        plots.append("depth.png")
    kept = "Best epoch" if "valid" in runs[0].metrics else "Last epoch, which is kept without validation data"
    stdout.print(f"{kept}: {epochs}", soft_wrap=True)
    if any("cut" in run.metrics for run in runs):
        stdout.print("Ended by --max-seconds while it might still have improved.", soft_wrap=True)
    where = folder if len(runs) == 1 else folder / "seed-*"
    named = ", ".join(str(where / plot) for plot in plots)
    stdout.print(f"Model, metrics and history: {folder}\nPlots: {named}", soft_wrap=True)


def depth_of(runs: "Runs[Run]") -> list[float] | None:
    """Return q, the mean over seeds; nothing where no neighbourhoods are looked at."""
    if "depth" not in runs[0].history[-1]:
        return None
    depths = [run.model.sampler.depth_coefficients.tolist() for run in runs]
    return [fmean(of_step) for of_step in zip(*depths, strict=True)]


def readable_depth(depth: list[float]) -> str:
    """Return `itself 0.45, 1 step 0.28, 2 steps 0.19`."""
    names = ["itself", "1 step", *(f"{step} steps" for step in range(2, len(depth)))]
    return ", ".join(f"{name} {share:.2f}" for name, share in zip(names, depth, strict=False))


def as_json(runs: "Runs[Run]", folder: Path) -> dict[str, Any]:
    """Return what was trained and measured as data, for JSON."""
    from gatas.training.folder import summary

    return {
        "folder": str(folder),
        "data": runs[0].dataset.name,
        "metrics": summary(runs),
        "depth": depth_of(runs),
        "seeds": [{"seed": run.seed, **run.metrics} for run in runs],
    }
