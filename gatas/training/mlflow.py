"""Trainings in MLflow: a run for each seed, with its settings, every epoch's numbers, and what came of it."""

from collections.abc import Iterator
from time import time
from types import TracebackType
from typing import Any

from gatas.errors import MissingExtraError
from gatas.training.config import Config
from gatas.training.run import Runs


class MlflowTracker:
    """A `report` for `fit_many`. Where the numbers go, MLflow's own settings say (MLFLOW_TRACKING_URI).

    >>> with MlflowTracker(config, seeds) as tracker:
    ...     tracker.finish(fit_many(config, seeds, report=tracker))
    """

    def __init__(self, config: Config, seeds: list[int], *, experiment: str = "gatas", name: str | None = None) -> None:
        try:
            import mlflow
            from mlflow import entities
        except ImportError:
            raise MissingExtraError("MLflow is not installed", "mlflow") from None
        self.client, self.entities = mlflow.MlflowClient(), entities
        found = self.client.get_experiment_by_name(experiment)
        self.experiment = self.client.create_experiment(experiment) if found is None else found.experiment_id
        self.config, self.seeds, self.name = config, seeds, name or config.data.name
        self.runs: list[str] = []
        self.logged: set[int] = set()

    def __enter__(self) -> "MlflowTracker":
        sections = self.config.model_dump(mode="json").items()
        settings = {f"{section}.{key}": value for section, values in sections for key, value in values.items()}
        for seed in self.seeds:
            run = self.client.create_run(self.experiment, run_name=f"{self.name}, seed {seed}").info.run_id
            self.runs.append(run)
            params = [self.entities.Param(key, str(value)) for key, value in {**settings, "seed": seed}.items()]
            self.client.log_batch(run, params=params)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        status = "FINISHED" if kind is None else "FAILED" if issubclass(kind, Exception) else "KILLED"
        for run in self.runs:
            self.client.set_terminated(run, status)

    def __call__(self, entry: dict[str, Any]) -> None:
        """Log an epoch of every seed."""
        self.logged.add(entry["epoch"])
        columns = {name: values for name, values in entry.items() if isinstance(values, list) and name != "seeds"}
        for number, run in enumerate(self.runs):
            self._log(run, {name: values[number] for name, values in columns.items()}, entry["epoch"])

    def finish(self, runs: Runs[Any]) -> None:
        """Log what was measured in the end, and epochs from before a resumption."""
        for own, run in zip(runs, self.runs, strict=True):
            for entry in own.history:
                if entry["epoch"] not in self.logged:
                    self._log(run, entry, entry["epoch"])
            self._log(run, without_classes(own.metrics), own.metrics["best_epoch"])

    def _log(self, run: str, content: dict[str, Any], step: int) -> None:
        now = int(time() * 1000)
        metrics = [self.entities.Metric(name, value, now, step) for name, value in flat(content)]
        self.client.log_batch(run, metrics=metrics)


def without_classes(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return metrics without the scores of every class: MLflow takes a thousand numbers at once."""
    return {name: without_classes(own) if isinstance(own, dict) else own for name, own in metrics.items() if name != "by_class"}


def flat(content: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Return numbers by name, such as `test.accuracy` and `depth.2`; names keep what MLflow allows in them."""
    if isinstance(content, dict):
        for key, value in content.items():
            safe = "".join(letter if letter.isalnum() or letter in "_-. " else "_" for letter in str(key))
            yield from flat(value, f"{name}.{safe}".lstrip("."))
    elif isinstance(content, list):
        for place, value in enumerate(content):
            yield from flat(value, f"{name}.{place}")
    else:
        yield name, float(content)
