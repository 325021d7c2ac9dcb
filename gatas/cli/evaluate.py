"""`gatas evaluate`: measure a finished run again, as it was or with other neighbourhoods."""

from pathlib import Path
from typing import Any, Literal

import typer

from gatas.cli.importing import quick_imports
from gatas.cli.metrics import print_metrics
from gatas.cli.output import print_json
from gatas.cli.verify import VerifyOption, verified


def evaluate(
    run: Path = typer.Argument(metavar="RUN", help="Folder that `gatas train` wrote, of one seed or of several."),
    split: str = typer.Option("test", "--split", help="train, valid or test."),
    mode: Literal["sample", "top", "all"] | None = typer.Option(None, "--mode", help="Neighbours: drawn, likeliest, all."),
    draws: int | None = typer.Option(None, "--draws", min=1, help="Neighbourhoods whose probabilities are averaged."),
    device: str = typer.Option("auto", "--device", help="cpu, cuda, or auto: a GPU where there is one."),
    verify: bool = VerifyOption,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Load a run and measure it; what is not given is as it was in training."""
    with quick_imports():
        from gatas.training.evaluation import evaluate_run  # torch: seconds that other commands need not wait

    if verify:
        verified(run)
    settings = {"evaluation_mode": mode, "evaluation_draws": draws}
    given: Any = {name: value for name, value in settings.items() if value is not None}
    folders = sorted(run.glob("seed-*")) or [run]
    measured = [evaluate_run(folder, split, device=device, **given) for folder in folders]
    if json:
        runs = [{"folder": str(folder), split: metrics} for folder, metrics in zip(folders, measured, strict=True)]
        print_json(runs if len(runs) > 1 else runs[0])
    else:
        print_metrics(f"{run}, {split} data", measured)
