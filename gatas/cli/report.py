"""`gatas report`: results as one page."""

from pathlib import Path

import typer

from gatas.cli.output import stdout


def report(
    results: Path = typer.Option(Path("results"), "--results", help="Folder that `reproduce` and `compare` wrote to."),
    benchmarks: Path = typer.Option(Path("benchmarks"), "--benchmarks", help="Folder of dated reports, if there is one."),
    out: Path = typer.Option(Path("report"), "--out", help="Folder for report.html, report.md and charts."),
    readme: Path = typer.Option(None, "--readme", help="Put the short table of peers between its marks in this file."),
) -> None:
    """Make one HTML page of all results, which opens from disk, and the same as Markdown."""
    from gatas.experiments.extra import check_extra

    check_extra("report")
    from gatas.experiments.report import report as make

    made = make(results, benchmarks, out, readme)
    stdout.print(f"{made.html}\n{made.markdown}", soft_wrap=True)
