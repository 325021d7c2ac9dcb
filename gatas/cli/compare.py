"""`gatas compare`: our model beside others, on the same data and seeds."""

from pathlib import Path

import typer

from gatas.cli.interrupting import ending_soon
from gatas.cli.output import stderr, stdout


def compare(
    data: str = typer.Option(
        "cora", "--data", help="Data sets by name, or your own by a YAML file as for `gatas train`; by commas."
    ),
    models: str = typer.Option(
        "gatas,gat,gcn",
        "--models",
        help="gatas, peers, recipes such as cora-base, or your own module:Class; by commas.",
    ),
    seeds: int = typer.Option(10, "--seeds", min=1, help="Seeds for each model, from 0 on."),
    trials: int = typer.Option(
        1, "--trials", min=1, help="For nodes: tune every model by so many trials first, on validation data alone."
    ),
    splits: str = typer.Option(
        "", "--splits", help="Columns of the node table that say train, valid, test, also as 'split*'; by commas."
    ),
    at_once: int = typer.Option(100, "--at-once", min=1, help="Seeds trained in one program."),
    protocol: str = typer.Option(
        None, "--protocol", help="For links: the one table to show: paper, gatne or ranking. All are measured."
    ),
    epochs: int = typer.Option(None, "--epochs", min=1, help="Cut trainings after so many epochs; the table says which."),
    max_seconds: float = typer.Option(None, "--max-seconds", help="Cut trainings after so many seconds for each seed."),
    out: Path = typer.Option(Path("results"), "--out", help="Folder of the results: DATA-MODEL.json in its folder peers/."),
    data_dir: Path = typer.Option(None, "--data-dir", help="Folder that holds the data sets."),
    device: str = typer.Option("auto", "--device", help="cpu, cuda, or auto for what there is."),
) -> None:
    """Train models on the same splits and seeds, go on where it stopped, and print a table for each data set."""
    from gatas.experiments.extra import check_extra

    check_extra("compare")
    from gatas.experiments.compare import compare as run
    from gatas.training.limit import Limit

    with ending_soon(lambda: say_what_is_kept(out)):  # results are written whole or not at all
        text = run(
            listed(data),
            listed(models),
            out,
            seeds=seeds,
            trials=trials,
            splits=listed(splits),
            at_once=at_once,
            protocol=protocol,
            limit=Limit(epochs, max_seconds),
            data_dir=data_dir,
            device=device,
            begin=lambda what: stderr.print(f"{what} …"),
        )
    stdout.print(text, soft_wrap=True)


def say_what_is_kept(out: Path) -> None:
    """Say after a Ctrl-C where the same command goes on."""
    from gatas.experiments.compare import FOLDER
    from gatas.experiments.trials import FOLDER as TRIALS

    kept = [str(folder) for folder in (out / FOLDER, out / TRIALS) if any(folder.glob("*.json"))]
    if kept:
        stderr.print(
            f"stopped; models and seeds that are done are kept in {' and '.join(kept)}: the same command goes on from there",
            soft_wrap=True,
        )
    else:
        stderr.print("stopped before anything was done; the same command begins anew", soft_wrap=True)


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
