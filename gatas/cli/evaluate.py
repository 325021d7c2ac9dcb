"""`gatas evaluate`: measure a finished run again, as it was or with other neighbourhoods."""

from pathlib import Path
from typing import Any, Literal

import typer

from gatas.cli.importing import quick_imports
from gatas.cli.metrics import print_details, print_graph, print_metrics, print_ranking
from gatas.cli.output import print_json, progress_bar
from gatas.cli.verify import VerifyOption, verified

EvaluationProtocol = Literal["classification", "ranking"]
Neighbours = Literal["sample", "top", "all"] | None


def evaluate(
    run: Path = typer.Argument(metavar="RUN", help="Folder that `gatas train` wrote, of one seed or of several."),
    split: str = typer.Option("test", "--split", help="train, valid or test."),
    protocol: EvaluationProtocol = typer.Option(
        "classification", "--protocol", help="Of links also ranking: each among all nodes, filtered (MRR, Hits@K)."
    ),
    mode: Neighbours = typer.Option(None, "--mode", help="Neighbours: drawn, likeliest, all."),
    draws: int | None = typer.Option(None, "--draws", min=1, help="Neighbourhoods whose probabilities are averaged."),
    device: str = typer.Option("auto", "--device", help="cpu, cuda, or auto: a GPU where there is one."),
    verify: bool = VerifyOption,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Load a run and measure it; what is not given is as it was in training."""
    if verify:
        verified(run)
    folders = sorted(run.glob("seed-*")) or [run]
    measure = ranked if protocol == "ranking" else classified
    measured = [measure(folder, split, device, mode, draws) for folder in folders]
    if json:
        runs = [{"folder": str(folder), split: metrics} for folder, metrics in zip(folders, measured, strict=True)]
        print_json(runs if len(runs) > 1 else runs[0])
    elif protocol == "ranking":
        print_ranking(f"{run}, {split} data, filtered ranking", measured)
        print_graph(measured)
    else:
        print_metrics(f"{run}, {split} data", measured)
        print_details(measured)
        print_graph(measured)


def classified(folder: Path, split: str, device: str, mode: Neighbours, draws: int | None) -> dict[str, Any]:
    """Measure classes of nodes, or positives against negatives."""
    with quick_imports():
        from gatas.training.evaluation import evaluate_run  # torch: seconds that other commands need not wait

    settings = {"evaluation_mode": mode, "evaluation_draws": draws}
    given: Any = {name: value for name, value in settings.items() if value is not None}
    return evaluate_run(folder, split, device=device, **given)


def ranked(folder: Path, split: str, device: str, mode: Neighbours, draws: int | None) -> dict[str, Any]:
    """Rank links among all nodes."""
    with quick_imports():
        from gatas.inference.loading import load

    predictor = load(folder, device=device, mode=mode, draws=draws)
    predictor.check_predicts_links()
    with progress_bar("ranking") as progress:
        return predictor.prepare().evaluate_ranking(split, progress=progress)
