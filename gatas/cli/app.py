"""The `gatas` command: its commands, and how errors and warnings look."""

import sys
import warnings
from importlib import import_module
from typing import Any

import typer

from gatas import __version__
from gatas.cli.whole_help import WholeHelp
from gatas.errors import GatasError, GatasWarning
from gatas.ops.memory import use_huge_pages

COMMANDS = {
    "demo": (
        "gatas.cli.demo:demo",
        "Learn digits and family relations on the embedded data, and show which neighbours the answers rest on.",
    ),
    "inspect": (
        "gatas.cli.inspect:inspect",
        "Show counts, degrees by type, components, oddities, and what its transitions would cost.",
    ),
    "init": (
        "gatas.cli.init:init",
        "Look at your tables, ask what cannot be seen, and write a config for `gatas train`.",
    ),
    "generate": (
        "gatas.cli.generate:generate",
        "Generate a graph with hubs, edge types and classes, in bounded memory: for tests of scale.",
    ),
    "ingest": (
        "gatas.cli.ingest:ingest",
        "Sort, number and check edges on disk. The same command again goes on where it was stopped.",
    ),
    "reproduce": (
        "gatas.cli.reproduce:reproduce",
        "Run what stands behind a table of the paper, go on where it stopped, and print the table.",
    ),
    "compare": (
        "gatas.cli.compare:compare",
        "Train models on the same splits and seeds, go on where it stopped, and print a table for each data set.",
    ),
    "report": (
        "gatas.cli.report:report",
        "Make one HTML page of all results, which opens from disk, and the same as Markdown.",
    ),
    "train": (
        "gatas.cli.train:train",
        "Train, measure and draw. The same command again goes on where it was stopped.",
    ),
    "tune": (
        "gatas.cli.tune:tune",
        "Search for better settings, and train the best. The same command again goes on where it was stopped.",
    ),
    "evaluate": (
        "gatas.cli.evaluate:evaluate",
        "Load a run and measure it; what is not given is as it was in training.",
    ),
    "embed": (
        "gatas.cli.embed:embed",
        "Write the representations of all nodes, of some, or of new ones, a batch at a time; or draw a map of them.",
    ),
    "predict": (
        "gatas.cli.predict:predict",
        "Predict classes or numbers of nodes; of a model of links, score given links or rank the likeliest.",
    ),
    "export": (
        "gatas.cli.export:export",
        "Write a model as a program that answers for given neighbourhoods without gatas, by onnxruntime or by torch alone.",
    ),
    "neighbours": (
        "gatas.cli.neighbours:neighbours",
        "Find the nodes whose representations are most alike, by the cosine between them.",
    ),
    "explain": (
        "gatas.cli.explain:explain",
        "Show what an answer rests on, of nodes known or new: neighbours, typed paths, and what each does to it.",
    ),
    "serve": (
        "gatas.cli.serve:serve",
        "Serve a trained model over HTTP: embeddings, classes, links, explanations, nearest nodes. Logs go to standard error.",
    ),
    "verify": (
        "gatas.cli.verify:verify",
        "Check the checksums of all files: of stores, jobs, runs with their checkpoints, and results.",
    ),
    "transitions": ("gatas.cli.transitions:app", "Build typed transition probabilities, and look at them."),
    "config": ("gatas.cli.configs:app", "Look at recipes and at settings."),
    "jobs": ("gatas.cli.jobs:app", "Look at jobs in parts, and go on with them."),
}
"""For each command its function or its group of commands, and the first line of its help: what `gatas --help` needs to know
without importing it."""

LOOK: Any = {"no_args_is_help": True, "pretty_exceptions_enable": False, "add_completion": False, "rich_markup_mode": None}


class ImportedWhenRun(WholeHelp):
    """A group of commands, each a name and a line of help until it is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was typed, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else imported_command(name), rest


def imported_command(name: str) -> Any:
    """Import a command or a group of commands, with its arguments and options."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(module), attribute)
    home = typer.Typer(**LOOK)
    home.callback()(gatas)  # without one, a single command would be taken for the whole
    if isinstance(found, typer.Typer):
        home.add_typer(found, name=name)
    else:
        home.command(name)(found)
    return typer.main.get_group(home).commands[name]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


def _unknown_yet() -> None:
    """Stand for a command that is not imported."""


app = typer.Typer(cls=ImportedWhenRun, **LOOK)
for _name, (_place, _help) in COMMANDS.items():
    app.command(_name, help=_help)(_unknown_yet)


@app.callback()
def gatas(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True, callback=_version),
) -> None:
    """Learn from a sample of typed multi-step neighbours: look at graphs, train models, measure them."""


def run() -> None:
    """Run a command. What a user can cause becomes one line and exit code 1."""
    warnings.showwarning = _show_warning
    use_huge_pages()
    try:
        app()
    except (GatasError, OSError) as error:
        _say(f"error: {error}", "red")
        sys.exit(1)


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    if issubclass(category, GatasWarning):
        _say(f"warning: {message}", "yellow")


def _say(line: str, style: str) -> None:
    from gatas.cli.output import stderr  # rich: what a command's help need not wait for

    stderr.print(line, style=style, soft_wrap=True)
