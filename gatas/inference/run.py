"""`Run`: what `fit` returns: settings, metrics, history, and a predictor."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

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

    @classmethod
    def of(cls, trained: TrainedRun) -> "Run":
        return cls(**{own.name: getattr(trained, own.name) for own in fields(trained)})
