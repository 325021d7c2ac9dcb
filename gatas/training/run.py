"""`TrainedRun`: a finished training, and the folder it is kept in; `Runs` of several seeds."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Generic, TypeVar

from gatas.datasets import Dataset
from gatas.tasks.class_details import ClassDetails
from gatas.tasks.number_details import NumberDetails
from gatas.training.config import Config

Details = ClassDetails | NumberDetails


@dataclass(frozen=True, eq=False, repr=False)
class TrainedRun:
    """A finished training: its settings, what was measured, epoch by epoch, and the model with its best weights."""

    config: Config
    seed: int
    metrics: dict[str, Any]
    history: list[dict[str, Any]]
    model: Any  # a `Model`, or another that was trained by the same loop
    dataset: Dataset
    details: dict[str, Details] = field(default_factory=dict)  # by split: what tables and pictures of its folder show
    trained_together: int = 1  # models of the program that trained this one, which share its seconds

    def save(self, folder: str | Path) -> None:
        """Write a folder that holds all that answering needs: config, data, weights, metrics, history and plots."""
        from gatas.training.folder import write_run

        write_run([self], Path(folder))

    def __repr__(self) -> str:
        return f"Run({self.dataset.name!r}, seed {self.seed}: {self.summary()})"

    def summary(self) -> str:
        """Return `accuracy 0.953, micro_f1 0.953 on test data, best epoch 41 of 61`."""
        split = next((split for split in ("test", "valid") if split in self.metrics), None)
        measured = {} if split is None else with_ranks(self.metrics[split])
        names = [name for name in measured if name != "loss" and isinstance(measured[name], float)][:2]
        numbers = ", ".join(f"{name} {measured[name]:.3f}" for name in names)
        which = "best" if "valid" in self.metrics else "last"
        epochs = f"{which} epoch {self.metrics['best_epoch'] + 1} of {self.metrics['epochs']}"
        return f"{numbers} on {split} data, {epochs}" if numbers else epochs

    def _repr_html_(self) -> str:
        splits = {name: with_ranks(of) for name, of in self.metrics.items() if isinstance(of, dict)}
        names = list(dict.fromkeys(name for of in splits.values() for name, value in of.items() if isinstance(value, float)))
        rows = [f"<tr><th></th>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"]
        for split, of in splits.items():
            cells = "".join(f"<td>{of[name]:.4f}</td>" if name in of else "<td></td>" for name in names)
            rows.append(f"<tr><th>{escape(split)}</th>{cells}</tr>")
        return f"<table><caption>{escape(repr(self))}</caption>{''.join(rows)}</table>"


def with_ranks(measured: dict[str, Any]) -> dict[str, Any]:
    """Return a split's metrics with the numbers of its ranking, if links were ranked: these first."""
    return {**{name: value for name, value in measured.get("ranking", {}).items() if isinstance(value, float)}, **measured}


AnyRun = TypeVar("AnyRun", bound=TrainedRun)


@dataclass(frozen=True, eq=False)
class Runs(Generic[AnyRun]):
    """The runs of several seeds."""

    runs: list[AnyRun]

    def __iter__(self) -> Iterator[AnyRun]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, number: int) -> AnyRun:
        return self.runs[number]

    def values(self, metric: str) -> list[float]:
        """Return one number for each seed; `metric` is such as "test.accuracy"."""
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
        """Return the standard deviation of the sample; 0 for a single run."""
        values = self.values(metric)
        return statistics.stdev(values) if len(values) > 1 else 0.0
