"""`Run`: a finished training, and the folder it is kept in."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatas.datasets import Dataset
from gatas.training.config import Config


@dataclass(frozen=True, eq=False)
class Run:
    """What was asked, what came of it, epoch by epoch, and the model with its best weights."""

    config: Config
    seed: int
    metrics: dict[str, Any]
    history: list[dict[str, Any]] = field(repr=False)
    model: Any = field(repr=False)  # a `Model`, or another that was trained by the same loop
    dataset: Dataset = field(repr=False)

    def save(self, folder: str | Path) -> None:
        """Write config, weights, metrics, history, id map and plots into a folder."""
        from gatas.training.folder import write_run

        write_run([self], Path(folder))


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of several seeds."""

    runs: list[Run]

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, number: int) -> Run:
        return self.runs[number]

    def values(self, metric: str) -> list[float]:
        """One number for each seed; `metric` such as "test.accuracy"."""
        found = []
        for run in self.runs:
            value: Any = run.metrics
            for part in metric.split("."):
                value = value[part]
            found.append(float(value))
        return found

    def mean(self, metric: str) -> float:
        return statistics.fmean(self.values(metric))

    def std(self, metric: str) -> float:
        """Of the sample; 0 for a single run."""
        values = self.values(metric)
        return statistics.stdev(values) if len(values) > 1 else 0.0
