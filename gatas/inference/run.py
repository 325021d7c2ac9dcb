"""`Run`: what `fit` returns: settings, metrics, history, and a predictor."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

from gatas.inference.predictor import Predictor
from gatas.training.final_test import VALIDATION_EDGES
from gatas.training.run import TrainedRun


@dataclass(frozen=True, eq=False, repr=False)
class Run(TrainedRun):
    """A finished training, and a predictor over the data that it was trained on."""

    @cached_property
    def predictor(self) -> Predictor:
        """Return a predictor with the model's best weights, which looks at neighbours as in its evaluation."""
        training, dataset = self.config.training, self.dataset
        if dataset.origin is None and getattr(self.config.data, VALIDATION_EDGES, False):
            dataset = replace(dataset, origin=self.config.data)  # which says what the final test looks at
        return Predictor(self.model, dataset, mode=training.evaluation_mode, draws=training.evaluation_draws)

    def save(self, folder: str | Path, *, report: bool = False) -> None:
        """Write a folder that holds all that answering needs: config, data, weights, metrics, history and plots.

        With `report` it has report.html too, a page about the run, as `gatas train` writes it; that takes some seconds.
        """
        super().save(folder)
        if report:
            from gatas.inference.run_report import write_report

            write_report(folder, device=self.predictor.device.type)

    @classmethod
    def of(cls, trained: TrainedRun) -> "Run":
        return cls(**{own.name: getattr(trained, own.name) for own in fields(trained)})
