"""`Trial`: settings that were tried and what came of them; and the table of all."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["finished", "pruned", "diverged", "failed"]


@dataclass(frozen=True)
class Trial:
    """One training with some settings, measured on validation data.

    Args:
        number: Its place among all trials, from 1 on; the first has the config's own settings.
        settings: What was tried, named `section.key`.
        outcome: Whether it went to its end, was pruned since others were better by then, diverged, or could not be trained.
        metric: The validation metric of the weights that were kept; None where there are none.
        loss: The validation loss of the same weights.
        epochs: How long it learned.
        seconds: How long that took; of trials in one program, each one's share.
        reason: Why it failed, or what cut it short.
    """

    number: int
    settings: dict[str, Any]
    outcome: Outcome
    metric: float | None = None
    loss: float | None = None
    epochs: int = 0
    seconds: float = 0.0
    reason: str = ""
    curve: list[float] = field(default_factory=list, repr=False)  # the metric, epoch by epoch

    @property
    def rank(self) -> tuple[float, float]:
        """What trials are compared by: the metric, and of equal ones the loss."""
        assert self.metric is not None
        return self.metric, -(self.loss if self.loss is not None else float("inf"))


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """Return the best of the trials that went to their end, the earlier of equals; None where there is none."""
    finished = [trial for trial in trials if trial.outcome == "finished"]
    return max(finished, key=lambda trial: (*trial.rank, -trial.number), default=None)


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials from the best to the worst: those that went to their end first, then the others as they came."""
    finished = sorted((trial for trial in trials if trial.outcome == "finished"), key=lambda trial: trial.rank, reverse=True)
    return finished + [trial for trial in trials if trial.outcome != "finished"]


def as_csv(trials: Sequence[Trial], metric: str) -> bytes:
    """Return a table with a row for each trial, in the order of their numbers."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "outcome", f"valid_{metric}", "valid_loss", "epochs", "seconds", *names, "reason"])
    for trial in trials:
        numbers = ["" if value is None else f"{value:.6g}" for value in (trial.metric, trial.loss)]
        settings = ["" if trial.settings.get(name) is None else trial.settings[name] for name in names]
        writer.writerow([trial.number, trial.outcome, *numbers, trial.epochs, f"{trial.seconds:.2f}", *settings, trial.reason])
    return text.getvalue().encode()
