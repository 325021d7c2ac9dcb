"""Early stopping: report a number, get to know whether it is the best so far. No input or output."""

from dataclasses import dataclass, field
from typing import Literal

Score = tuple[float, ...]
"""The larger the better; later numbers decide between equals."""


Rule = Literal["best", "either", "both"]


@dataclass
class EarlyStopping:
    """Early stopping of M models that learn at once, each with its own end.

    Patience counts from the best score; by the rule `either` from the last time that any number of a score was as good as
    ever, since a validation loss may still fall where accuracy stands still, or the other way round. By `both` so too, and
    the best is the last whose numbers were all as good as ever.
    """

    num_models: int
    patience: int
    rule: Rule = "best"
    best: list[Score] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    last_epoch: list[int] = field(default_factory=list)  # where each stopped; -1 while it learns
    highest: list[Score] = field(default_factory=list)  # number by number
    last_improvement: list[int] = field(default_factory=list)  # when one of them was last reached

    def __post_init__(self) -> None:
        self.best = [tuple(score) for score in self.best] or [(-float("inf"),)] * self.num_models
        self.best_epoch = self.best_epoch or [-1] * self.num_models
        self.last_epoch = self.last_epoch or [-1] * self.num_models
        self.highest = [tuple(score) for score in self.highest] or [()] * self.num_models
        self.last_improvement = self.last_improvement or [-1] * self.num_models

    @property
    def done(self) -> bool:
        return all(epoch >= 0 for epoch in self.last_epoch)

    @property
    def at_work(self) -> list[int]:
        """Return the models that are worth another step: when half of them or more have stopped, these are left behind."""
        rows = list(range(self.num_models))
        for epoch in sorted(set(self.last_epoch) - {-1}):
            learning = [row for row in rows if self.last_epoch[row] < 0 or self.last_epoch[row] > epoch]
            rows = learning if 2 * len(learning) <= len(rows) else rows
        return rows

    def report(self, epoch: int, scores: dict[int, Score]) -> list[bool]:
        """Take scores of models; return which of them have never been better. Those that have stopped never are."""
        improved = []
        for model, score in scores.items():
            better = self._is_better(model, score) and self.last_epoch[model] < 0
            improved.append(better)
            if better:
                self.best[model], self.best_epoch[model] = score, epoch
            if self.rule != "best":
                self._note_improvement(model, epoch, score)
            if self.last_epoch[model] < 0 and epoch - self.waits_since(model) >= self.patience:
                self.last_epoch[model] = epoch
        return improved

    def stop(self, model: int, epoch: int) -> None:
        """End a model's training with an epoch, whatever its patience, unless it has ended before."""
        if self.last_epoch[model] < 0:
            self.last_epoch[model] = epoch

    def waits_since(self, model: int) -> int:
        """Return the epoch that patience counts from."""
        return max(self.best_epoch[model], self.last_improvement[model])

    def _is_better(self, model: int, score: Score) -> bool:
        if self.rule == "both" and self.highest[model]:
            return all(number >= high for number, high in zip(score, self.highest[model], strict=True))
        return score > self.best[model]

    def _note_improvement(self, model: int, epoch: int, score: Score) -> None:
        highest = self.highest[model] or (-float("inf"),) * len(score)
        if any(number >= high for number, high in zip(score, highest, strict=True)):
            self.last_improvement[model] = epoch
        self.highest[model] = tuple(max(high, number) for number, high in zip(score, highest, strict=True))
