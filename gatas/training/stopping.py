"""Early stopping: report a number, get to know whether it is the best so far. No input or output."""

from dataclasses import dataclass, field

Score = tuple[float, ...]
"""The larger the better; later numbers decide between equals."""


@dataclass
class EarlyStopping:
    """For M models that learn at once, each with its own end."""

    num_models: int
    patience: int
    best: list[Score] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    last_epoch: list[int] = field(default_factory=list)  # where each stopped; -1 while it learns

    def __post_init__(self) -> None:
        self.best = [tuple(score) for score in self.best] or [(-float("inf"),)] * self.num_models
        self.best_epoch = self.best_epoch or [-1] * self.num_models
        self.last_epoch = self.last_epoch or [-1] * self.num_models

    @property
    def done(self) -> bool:
        return all(epoch >= 0 for epoch in self.last_epoch)

    @property
    def at_work(self) -> list[int]:
        """The models that are worth another step: whenever half of them or more have stopped, these are left behind."""
        rows = list(range(self.num_models))
        for epoch in sorted(set(self.last_epoch) - {-1}):
            learning = [row for row in rows if self.last_epoch[row] < 0 or self.last_epoch[row] > epoch]
            rows = learning if 2 * len(learning) <= len(rows) else rows
        return rows

    def report(self, epoch: int, scores: dict[int, Score]) -> list[bool]:
        """Which of these models have never been better; those that have stopped never are."""
        improved = []
        for model, score in scores.items():
            better = score > self.best[model] and self.last_epoch[model] < 0
            improved.append(better)
            if better:
                self.best[model], self.best_epoch[model] = score, epoch
            elif self.last_epoch[model] < 0 and epoch - self.best_epoch[model] >= self.patience:
                self.last_epoch[model] = epoch
        return improved
