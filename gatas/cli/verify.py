"""`gatas verify`: read every byte of what was written, and say whether it is as it was."""

from pathlib import Path

import typer

from gatas.cli.output import stderr, stdout
from gatas.errors import GatasError, StoreError

VerifyOption = typer.Option(False, "--verify", help="Read every byte of the run first, and refuse what is damaged.")


def verify(
    paths: list[Path] = typer.Argument(help="Graph, transitions, job or run folders, and files of embeddings or predictions."),
) -> None:
    """Check the checksums of all files: of stores, jobs, runs with their checkpoints, and results."""
    damaged = 0
    for path in paths:
        try:
            what = verified(path)
        except (GatasError, OSError) as error:
            stderr.print(f"error: {error}", style="red", soft_wrap=True)
            damaged += 1
        else:
            stdout.print(f"{path}: {what} as it was written", soft_wrap=True)
    if damaged:
        raise typer.Exit(1)


def verified(path: Path) -> str:
    """Return what is at a path, after reading every byte of it; what is damaged is refused."""
    from gatas.files import recover_overwritten
    from gatas.graph.storage import MANIFEST, verify_store

    recover_overwritten(path)
    if path.is_file():
        from gatas.files import verify_file

        verify_file(path)
        return "file"
    if path.joinpath(MANIFEST).exists():
        from gatas.datasets.ingest.work import read_note

        verify_store(path)
        read_note(path)
        return "store"
    if path.joinpath("parts").exists():
        from gatas.scale.job import verify_job

        return f"job with {verify_job(path)} parts"
    if any(path.joinpath(name).exists() for name in ("checkpoints", "config.yaml", "checksums.json")):
        from gatas.training.folder import verify_run

        verify_run(path)
        return "run"
    raise StoreError(f"{path} holds nothing that can be verified; expected a store, job, run or file that gatas wrote.")
