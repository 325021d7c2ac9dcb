"""`Trainer`: trials are trained and compared on validation data, several of one shape in one program."""

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch

from gatas.datasets import Dataset
from gatas.errors import GatasError, TooLargeError
from gatas.graph.counts import counted
from gatas.tasks import Model
from gatas.tasks.settling import limits_of
from gatas.tasks.walk_limits import resolved
from gatas.training.config import Config
from gatas.training.jumps import jumps_unreported
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device, make_model
from gatas.training.progress import Entry
from gatas.training.run import TrainedRun
from gatas.training.side_by_side import fit_side_by_side
from gatas.tuning.trial import Outcome, Trial

Prune = Callable[[int, int, float], bool]
"""Is given a trial's number, an epoch and the metric after it; says whether to go on is of no use."""
Watch = Callable[[Entry], None]


class Trainer:
    """Trains models with the same data and the same seed. Transitions are made once for all trials that walk alike."""

    def __init__(self, dataset: Dataset, seed: int, device: str) -> None:
        self.dataset, self.seed, self.device = dataset, seed, device
        self.alike: dict[tuple[Any, ...], Model] = {}

    def make_model(self, config: Config) -> Model:
        """Make a model, over transitions that an earlier one had if they are the same."""
        walks = _walks(config, self.dataset)
        try:
            model = make_model(self.dataset, config, self.seed, self.alike.get(walks))
        except TooLargeError:
            if not self.alike:
                raise
            self.alike.clear()  # may be what takes the room
            model = make_model(self.dataset, config, self.seed)
        self.alike.setdefault(walks, model)
        return model

    def train(
        self,
        trials: Sequence[Trial],
        configs: Sequence[Config],
        *,
        prune: Prune,
        watch: Watch | None = None,
        seconds: float | None = None,
    ) -> list[Trial]:
        """Return trials with what came of them; `watch` is given each epoch's entry."""
        try:
            return self._trained(trials, configs, prune, watch, seconds)
        except torch.OutOfMemoryError:
            self._make_room()
            if len(trials) == 1:
                return [_failed(trials[0], "it does not fit into the memory of the GPU")]
        half = len(trials) // 2
        parts = ((trials[:half], configs[:half]), (trials[half:], configs[half:]))
        left = None if seconds is None else seconds / 2
        return [own for some, of in parts for own in self.train(some, of, prune=prune, watch=watch, seconds=left)]

    def _trained(
        self, trials: Sequence[Trial], configs: Sequence[Config], prune: Prune, watch: Watch | None, seconds: float | None
    ) -> list[Trial]:
        started, pruned = perf_counter(), set[int]()

        def report(entry: Entry) -> None:
            stopping, metric = entry["stopping"], entry[f"valid_{metric_of(entry)}"]
            more = entry["epoch"] + 1 < entry["epochs"]
            for place, trial in enumerate(trials):
                learns = stopping.last_epoch[place] < 0
                if learns and prune(trial.number, entry["epoch"], metric[place]) and more:
                    stopping.stop(place, entry["epoch"])
                    pruned.add(place)
            if watch is not None:
                watch(entry)

        limit = Limit(seconds=None if seconds is None else max(seconds, 1e-3) / len(trials))
        try:
            models = [self.make_model(config) for config in configs]
            given: Any = {"device": self.device, "report": report, "limit": limit}
            with jumps_unreported():
                runs = fit_side_by_side(models, self.dataset, configs, self.seed, **given)
        except GatasError as error:
            if trials[0].number == 1:
                raise  # the user's own settings
            return [_failed(trial, str(error)) for trial in trials]
        if chosen_device(self.device).type == "cuda":
            self._make_room()
        taken = (perf_counter() - started) / len(trials)
        return [
            _measured(trial, run, place in pruned, taken) for place, (trial, run) in enumerate(zip(trials, runs, strict=True))
        ]

    def _make_room(self) -> None:
        gc.collect()
        torch.cuda.empty_cache()


def metric_of(entry: Entry) -> str:
    """Return the name of the metric that trials are compared by, of those that an epoch is measured by."""
    names = [name.removeprefix("valid_") for name in entry if name.startswith("valid_")]
    return names[-1]


def _walks(config: Config, dataset: Dataset) -> tuple[Any, ...]:
    """Return what the transitions of a model depend on."""
    model = resolved(config.model, limits_of(dataset, config.model)).config
    return (model.steps, model.transition_kind, model.max_candidates, model.degree_limit, model.revisits, model.ablation)


def _measured(trial: Trial, run: TrainedRun, pruned: bool, seconds: float) -> Trial:
    outcome: Outcome = "diverged" if run.metrics.get("diverged") else "pruned" if pruned else "finished"
    best, metric = run.metrics["best_epoch"], metric_of(run.history[-1])
    kept = run.history[best] if best >= 0 else {}
    return Trial(
        trial.number,
        trial.settings,
        outcome,
        kept.get(f"valid_{metric}"),
        kept.get("valid_loss"),
        run.metrics["epochs"],
        seconds,
        f"cut after {counted(run.metrics['epochs'], 'epoch')}: no time left" if run.metrics.get("cut") else "",
        [entry[f"valid_{metric}"] for entry in run.history],
    )


def _failed(trial: Trial, reason: str) -> Trial:
    return Trial(trial.number, trial.settings, "failed", reason=reason)
