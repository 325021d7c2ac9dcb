"""How a search gets on, on standard error: a live table on a terminal, a line for each trial elsewhere."""

from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gatas.graph.counts import counted
from gatas.training.progress import Entry
from gatas.transitions.cost import readable_seconds
from gatas.tuning.trial import Trial, best_of, ranked

TOP = 5
"""Trials that the live table shows: the best so far."""
GAP = 2
"""Spaces between columns."""
COLUMNS = 5
"""Settings that it shows of each: those in which the best differs from the first trial."""


class TuningDisplay:
    """Trials done, the best so far, and how those at work get on."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = monotonic) -> None:
        self.console = console or Console(stderr=True, markup=False, highlight=False)
        self.clock, self.started = clock, clock()
        self.trials: list[Trial] = []
        self.total, self.metric, self.at_work = 0, "", ""
        lively = self.console.is_terminal and not self.console.is_dumb_terminal
        self.live = Live(console=self.console, get_renderable=self.picture, transient=True) if lively else None

    def __enter__(self) -> "TuningDisplay":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()

    def begin(self, trials: Sequence[Trial], total: int, metric: str) -> None:
        """Take the trials that were done before."""
        self.trials, self.total, self.metric = list(trials), total, metric
        if trials:
            self.console.print(f"going on after {counted(len(trials), 'trial')}{self._best()}", soft_wrap=True)

    def epoch(self, trials: Sequence[Trial], entry: Entry) -> None:
        """Take an epoch of the trials at work."""
        values = [value for name, values in entry.items() if name == f"valid_{self.metric}" for value in values]
        first, last = trials[0].number, trials[-1].number
        which = f"trial {first}" if first == last else f"trials {first} to {last}"
        metric = f"  {self._name()} {max(values):.4f}" if values else ""
        self.at_work = f"{which}: epoch {entry['epoch'] + 1}/{entry['epochs']}{metric}"

    def ended(self, trial: Trial) -> None:
        """Take a trial that has ended."""
        self.trials.append(trial)
        self.at_work = ""
        if self.live is None:
            self.console.print(self.line(trial), soft_wrap=True)

    def line(self, trial: Trial) -> str:
        """Return `trial 12/50  valid accuracy 0.8123  pruned after 11 epochs  0:12  best 0.8340 (trial 7)`."""
        metric = "" if trial.metric is None else f"  {self._name()} {trial.metric:.4f}"
        what = "" if trial.outcome == "finished" else f"  {trial.outcome}"
        epochs = f"  {counted(trial.epochs, 'epoch')}" if trial.epochs else ""
        reason = f"  ({trial.reason})" if trial.reason else ""
        taken = readable_seconds(self.clock() - self.started)
        return f"trial {trial.number}/{self.total}{metric}{what}{epochs}{reason}  {taken}{self._best()}"

    def picture(self) -> RenderableType:
        """Return how far the search is, the trials at work, and the best so far."""
        taken = readable_seconds(self.clock() - self.started)
        how_far = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=max(1, self.total), completed=len(self.trials), width=24)
        how_far.add_row(f"{len(self.trials)} of {self.total} trials", bar, taken, self.at_work)
        if not best_of(self.trials):
            return Group(how_far, Text(""))
        return Group(how_far, top_table(self.trials, self.metric, TOP, self.console.width))

    def _best(self) -> str:
        best = best_of(self.trials)
        return "" if best is None else f"  best {best.metric:.4f} (trial {best.number})"

    def _name(self) -> str:
        return f"valid {self.metric.replace('_', ' ')}"


def top_table(trials: Sequence[Trial], metric: str, count: int, width: int) -> Table:
    """Make a table of the best trials and of the first, with the settings that tell them apart.

    These have a column each where that fits into `width`; else they are named row by row.
    """
    best = [trial for trial in ranked(trials) if trial.outcome == "finished"][:count]
    rows = best if not trials or trials[0] in best or trials[0].metric is None else [*best, trials[0]]
    names = told_apart(rows, trials)
    titles = [name.partition(".")[2] for name in names]
    cells = [[written(trial.settings.get(name)) for name in names] for trial in rows]
    numbers = [
        ["1 (yours)" if trial.number == 1 else str(trial.number), f"{trial.metric:.4f}", str(trial.epochs)] for trial in rows
    ]
    head = ["trial", metric, "epochs"]
    columns = zip([*head, *titles], *([*own, *more] for own, more in zip(numbers, cells, strict=True)), strict=True)
    table = Table(box=None, pad_edge=False, header_style="dim")
    if sum(max(map(len, column)) + GAP for column in columns) - GAP > width:
        cells = [[", ".join(f"{title} {cell}" for title, cell in zip(titles, own, strict=True))] for own in cells]
        titles = ["settings"]
    for title in (*head, *titles):
        table.add_column(title, justify="left" if title == "settings" else "right", overflow="fold")
    for number, own in zip(numbers, cells, strict=True):
        table.add_row(*number, *own, style="bold" if number is numbers[0] else "")
    return table


def told_apart(rows: Sequence[Trial], trials: Sequence[Trial]) -> list[str]:
    """Return the settings in which these trials differ most often from the first, at most a few."""
    first = trials[0].settings if trials else {}
    count = {name: sum(trial.settings.get(name) != own for trial in rows) for name, own in first.items()}
    return sorted((name for name in count if count[name]), key=lambda name: -count[name])[:COLUMNS]


def written(value: Any) -> str:
    """Return a setting as it is shown."""
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
