"""The `gatas` command: its commands, and how errors and warnings look."""

import sys
import warnings
from typing import Any

import typer

from gatas import __version__
from gatas.cli import (
    compare,
    configs,
    demo,
    embed,
    evaluate,
    explain,
    generate,
    ingest,
    init,
    inspect,
    jobs,
    neighbours,
    predict,
    report,
    reproduce,
    serve,
    train,
    transitions,
    verify,
)
from gatas.cli.output import stderr
from gatas.errors import GatasError, GatasWarning


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None)
app.command()(demo.demo)
app.command()(inspect.inspect)
app.command()(init.init)
app.command()(generate.generate)
app.command()(ingest.ingest)
app.command()(reproduce.reproduce)
app.command()(compare.compare)
app.command()(report.report)
app.add_typer(transitions.app, name="transitions")
app.add_typer(configs.app, name="config")
app.add_typer(jobs.app, name="jobs")
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(embed.embed)
app.command()(predict.predict)
app.command()(neighbours.neighbours)
app.command()(explain.explain)
app.command()(serve.serve)
app.command()(verify.verify)


@app.callback()
def gatas(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True, callback=_version),
) -> None:
    """Learn from a sample of typed multi-step neighbours: look at graphs, train models, measure them."""


def run() -> None:
    """Run a command. What a user can cause becomes one line and exit code 1."""
    warnings.showwarning = _show_warning
    try:
        app()
    except (GatasError, OSError) as error:
        stderr.print(f"error: {error}", style="red", soft_wrap=True)
        sys.exit(1)


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    if issubclass(category, GatasWarning):
        stderr.print(f"warning: {message}", style="yellow", soft_wrap=True)
