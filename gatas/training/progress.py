"""How a training gets on, on standard error: a live display on a terminal, a line now and then elsewhere."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean, median
from time import monotonic
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gatas.transitions.cost import readable_seconds
from gatas.transitions.watching import watch_builds

Entry = dict[str, Any]
Report = Callable[[Entry], None]
SECONDS_BETWEEN_LINES = 5.0
SECONDS_WITHIN_EPOCHS = 20.0
"""Between lines about an epoch that is not done yet."""


@contextmanager
def reporting(report: Report | None, progress: bool, choices: Sequence[str] = ()) -> Iterator["Reporter"]:
    """Give what `fit` reports to: the `report` that was given, the display if `progress` is wanted, or both.

    The display begins with the `choices` that were made where settings left them open.
    """
    if not progress:
        yield Reporter(report, None)
        return
    with ProgressDisplay() as display, watch_builds(display.build):
        for choice in choices:
            display.console.print(choice, soft_wrap=True)
        yield Reporter(report, display)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Passes on what a training tells: each epoch to both, each batch to the display."""

    report: Report | None
    display: "ProgressDisplay | None"

    def __call__(self, entry: Entry) -> None:
        for told in (self.display, self.report):
            if told is not None:
                told(entry)

    def batch(self, epoch: int, epochs: int, done: int, count: int) -> None:
        """Tell that so many of an epoch's batches are done."""
        if self.display is not None:
            self.display.batch(epoch, epochs, done, count)


class ProgressDisplay:
    """Epoch, loss, validation metric, depth q, time taken and time left; of several seeds their means."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = monotonic) -> None:
        self.console = console or Console(stderr=True, markup=False, highlight=False)
        self.clock, self.started = clock, clock()
        self.said = self.started
        self.entry: Entry | None = None
        self.now = "first epoch"  # what is being done, until an epoch is
        self.unsaid = False
        self.seconds: deque[float] = deque(maxlen=5)  # of the last epochs; the first may have compiled something
        lively = self.console.is_terminal and not self.console.is_dumb_terminal
        self.live = Live(console=self.console, get_renderable=self.picture, transient=True) if lively else None

    def __enter__(self) -> "ProgressDisplay":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()
        if self.unsaid:
            self._say()
        elif self.entry is None and kind is None:
            self.console.print("nothing left to learn: the training was finished before")

    def __call__(self, entry: Entry) -> None:
        """Take an epoch's entry from `fit`."""
        self.entry, self.unsaid, self.now = entry, True, ""
        self.seconds.append(entry["seconds"])
        if self.live is None and self.clock() - self.said >= SECONDS_BETWEEN_LINES:
            self._say()

    def batch(self, epoch: int, epochs: int, done: int, count: int) -> None:
        """Take notice of a batch; a long epoch is told of before it is over."""
        self._do(f"epoch {epoch + 1}/{epochs}, batch {done:,} of {count:,}")

    def build(self, share: float) -> None:
        """Take notice of transitions that are being built."""
        self._do(f"building transitions, {share:.0%}")

    def _do(self, now: str) -> None:
        self.now = now
        if self.live is None and self.clock() - self.said >= SECONDS_WITHIN_EPOCHS:
            self.console.print(f"{now}  {readable_seconds(self.clock() - self.started)}", soft_wrap=True)
            self.said = self.clock()

    def _say(self) -> None:
        assert self.entry is not None
        line = f"{place(self.entry)}  {numbers(self.entry)}  {self.times(self.entry)}"
        self.console.print(line, soft_wrap=True)
        self.said, self.unsaid = self.clock(), False

    def picture(self) -> RenderableType:
        """Return two lines: how far, and how well."""
        if self.entry is None:
            return Text(f"{self.now}  {readable_seconds(self.clock() - self.started)}", style="dim")
        bar = ProgressBar(total=self.entry["epochs"], completed=self.entry["epoch"] + 1, width=24)
        how_far = Table.grid(padding=(0, 2))
        how_far.add_row(place(self.entry), bar, self.times(self.entry), Text(self.now, style="dim"))
        return Group(how_far, Text(numbers(self.entry), overflow="ellipsis", no_wrap=True))

    def times(self, entry: Entry) -> str:
        """Return `0:14, left 0:05 to 0:20`: less if nothing improves any more, more if it goes on to the last epoch."""
        taken = readable_seconds(self.clock() - self.started)
        if len(self.seconds) < 2 or not any(epochs_left(entry)):  # a first epoch that compiles says nothing of others
            return taken
        least, most = (readable_seconds(epochs * median(self.seconds)) for epochs in epochs_left(entry))
        return f"{taken}, left {least}" + ("" if least == most else f" to {most}")


def place(entry: Entry) -> str:
    """Return `epoch 12/150`, and how many seeds are still at it if some are not."""
    stopped = sum(last >= 0 for last in entry["stopping"].last_epoch)
    seeds = f", {stopped} of {len(entry['seeds'])} seeds have stopped" if stopped else ""
    return f"epoch {entry['epoch'] + 1}/{entry['epochs']}{seeds}"


def numbers(entry: Entry) -> str:
    """Return `loss 0.083  valid accuracy 0.967  q 0.46 0.27 0.18 0.09`."""
    parts = [f"loss {fmean(entry['loss']):.3f}"]
    parts += [
        f"{name.replace('_', ' ')} {fmean(values):.3f}"
        for name, values in entry.items()
        if name.startswith("valid_") and name != "valid_loss"
    ]
    if "depth" in entry:
        depth = [fmean(of_step) for of_step in zip(*entry["depth"], strict=True)]
        parts.append("q " + " ".join(f"{share:.2f}" for share in depth))
    return "  ".join(parts)


def epochs_left(entry: Entry) -> tuple[int, int]:
    """Return how many epochs are left: at least, if no model improves any more, and at most."""
    stopping, epoch = entry["stopping"], entry["epoch"]
    most = entry["epochs"] - epoch - 1
    if not any(name.startswith("valid_") for name in entry):
        return most, most
    waiting = [stopping.waits_since(model) for model, last in enumerate(stopping.last_epoch) if last < 0]
    if not waiting:
        return 0, 0
    return min(most, max(waiting) + stopping.patience - epoch), most
