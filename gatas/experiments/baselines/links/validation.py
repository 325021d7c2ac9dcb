"""What a training of a link peer is stopped by: MRR where links are ranked, else macro ROC-AUC; and how it went."""

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from torch import nn

from gatas.datasets import Dataset
from gatas.errors import TrainingError
from gatas.experiments.baselines.links.scores import ScorePairs, pair_scores
from gatas.tasks import LinkTask
from gatas.tasks.ranking import LinkRanking, LinkScorer, ranking_metrics
from gatas.training.limit import Limit
from gatas.training.progress import Entry
from gatas.training.stopping import EarlyStopping


class Validation:
    """Measures a model on validation data, by what is asked of the data."""

    def __init__(self, dataset: Dataset, device: torch.device) -> None:
        if "valid" not in dataset.splits:
            raise TrainingError(f"{dataset.name} has no split 'valid'; expected pairs to stop a training by under that name.")
        self.dataset, self.device = dataset, device
        self.ranking = LinkRanking.of_split(dataset, "valid") if dataset.ranked else None
        self.task = LinkTask(dataset, 1)

    @property
    def metric(self) -> str:
        return "roc_auc" if self.ranking is None else "mrr"

    def __call__(self, score: ScorePairs, scorer: Callable[[], LinkScorer]) -> float:
        """Return the metric, from scores of pairs, or by a scorer of all nodes."""
        if self.ranking is None:
            measured = self.task.measure(pair_scores(score, self.dataset, "valid", self.device), "valid")
            return float(measured["roc_auc"])
        ranks = self.ranking.ranks(scorer(), device=self.device)
        return float(ranking_metrics(ranks, self.dataset.names)["mrr"])


class TrainingRecord:
    """One training of a peer: its epochs, its best weights by validation data, and whether it goes on."""

    def __init__(
        self,
        model: nn.Module,
        validate: Callable[[], float],
        metric: str,
        *,
        epochs: int,
        patience: int,
        every: int = 1,
        limit: Limit | None = None,
        report: Callable[[Entry], None] | None = None,
    ) -> None:
        """`patience` is in epochs; validation data is looked at after `every` so many."""
        self.model, self.validate, self.metric, self.epochs, self.every = model, validate, metric, epochs, every
        self.limit, self.report, self.stopping = limit or Limit(), report, EarlyStopping(1, patience)
        self.history: list[dict[str, Any]] = []
        self.best, self.cut, self.begun = self._weights(), "", perf_counter()
        self.started = self.begun

    @property
    def seconds(self) -> float:
        return perf_counter() - self.begun

    def goes_on(self, loss: float, seed: int) -> bool:
        """Note an epoch that is over; return whether there is a next."""
        epoch = len(self.history)
        if not math.isfinite(loss):
            raise TrainingError(f"the loss became {loss} in epoch {epoch + 1}, seed {seed}. Try a smaller learning_rate.")
        self.cut = self.limit.reached(epoch + 1, self.seconds) if epoch + 1 < self.epochs else ""
        last = bool(self.cut) or epoch + 1 == self.epochs
        entry: dict[str, Any] = {"epoch": epoch, "loss": loss}
        if last or (epoch + 1) % self.every == 0:
            entry[f"valid_{self.metric}"] = valid = self.validate()
            if self.stopping.report(epoch, {0: (valid,)})[0]:
                self.best = self._weights()
        now = perf_counter()
        self.history.append({**entry, "seconds": now - self.started})
        self.started = now
        if self.report is not None:
            self.report(self.history[-1])
        return not (last or self.stopping.done)

    def finish(self) -> dict[str, Any]:
        """Give the model its best weights; return what a run says of its training."""
        self.model.load_state_dict(self.best)
        cut = {"cut": self.cut} if self.cut and not self.stopping.done else {}
        return {"best_epoch": self.stopping.best_epoch[0], "epochs": len(self.history), **cut}

    def _weights(self) -> dict[str, Any]:
        return {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
