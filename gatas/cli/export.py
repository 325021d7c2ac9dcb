"""`gatas export`: a trained model as a program that runs without gatas."""

from pathlib import Path
from typing import Literal

import typer

from gatas.cli import runs
from gatas.cli.importing import quick_imports
from gatas.cli.output import counted, print_json, stdout


def export(
    run: Path = runs.RunArgument,
    format: Literal["onnx", "torch"] = typer.Option(
        "onnx", "--format", help="onnx (pip install 'gatas[onnx]'), or torch: a program of torch.export, .pt2."
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="FILE", help="File to write, .onnx or .pt2; by default it is named after the run."
    ),
    batch_size: int | None = typer.Option(
        None, "--batch-size", min=1, help="B: nodes or links at a time; 64, or fewer where neighbourhoods are large."
    ),
    sample_size: int | None = typer.Option(
        None, "--sample-size", min=1, help="S: neighbours of each; as trained, or where all are looked at, the most there are."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace files that exist."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write a model as a program that answers for given neighbourhoods without gatas, by onnxruntime or by torch alone.

    Beside FILE come FILE.json, which says what it takes and gives, and FILE.npz, an example with gatas's own answers.
    """
    with quick_imports():
        from gatas.inference.export import check_files
        from gatas.inference.loading import load
        from gatas.inference.program_formats import ENDINGS

    file = out or Path(f"{run.resolve().name}{ENDINGS[format]}")
    check_files(file, format, overwrite=overwrite)
    sizes = {"batch_size": batch_size, "sample_size": sample_size}
    predictor = load(run, device="cpu")
    found = predictor.export(file, format=format, overwrite=overwrite, name=run.resolve().name, **sizes)
    if json:
        print_json({"file": str(file), **found.description})
        return
    what = counted(found.sizes.batch_size, "link" if predictor.predicts_links else "node")
    seen = f", {found.sizes.sample_size} neighbours each" if found.sizes.sample_size else ""
    stdout.print(
        f"{file}: {what} at a time{seen}; within {found.difference:.0e} of gatas on {file}.npz; "
        f"{file}.json says what it takes and gives",
        soft_wrap=True,
    )
