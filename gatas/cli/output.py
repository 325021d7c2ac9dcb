"""Results go to standard output, everything else to standard error."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from gatas.cli.interrupting import ending_soon

if TYPE_CHECKING:
    from rich.table import Table

# what users name things may look like markup, and is shown as it is
stdout = Console(markup=False, highlight=False)
stderr = Console(stderr=True, markup=False, highlight=False)


def print_json(content: Any) -> None:
    """Print one JSON document, for machines."""
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False))


def plain_table(*columns: str) -> "Table":
    """Make a table without a frame; columns that end in `#` hold numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.rstrip("#"), justify="right" if column.endswith("#") else "left", overflow="fold")
    return table


def signed(value: float | None, form: str = "+.3f") -> str:
    """Write a number with its sign; nothing where there is none."""
    return "" if value is None else f"{value + 0.0:{form}}"


def print_table(title: str, table: "Table") -> None:
    """Print a bold line, the table, and an empty line."""
    stdout.print(title, style="bold", soft_wrap=True)
    stdout.print(table)
    stdout.print()


def show_cursor() -> None:
    """Show the cursor again that a bar has hidden."""
    stderr.show_cursor(True)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on a terminal that vanishes when done; elsewhere nothing. A Ctrl-C ends the process soon."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
               TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())  # fmt: skip
    shown = Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal)
    with ending_soon(show_cursor), shown as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def counted(count: int, noun: str) -> str:
    """Return `1 node`, or `1,797 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def remark_on_loops(count: int) -> None:
    """Say of links that were asked for how many are of a node to itself, which models know little of."""
    if count:
        what = "1 link is of a node to itself" if count == 1 else f"{count:,} links are of nodes to themselves"
        text = (
            f"{what}: no negative ever is, and links of tables that are so are not learned, so that a probability says little."
        )
        stderr.print(text, style="yellow", soft_wrap=True)
