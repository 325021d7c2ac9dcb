"""Early stopping: report a number, get to know whether it is the best so far. No input or output."""

from dataclasses import dataclass, field


@dataclass
class EarlyStopping:
    """For M models that learn at once, each with its own end."""

    num_models: int
    patience: int
    larger_is_better: bool
    best: list[float] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    last_epoch: list[int] = field(default_factory=list)  # where each stopped; -1 while it learns

    def __post_init__(self) -> None:
        worst = -float("inf") if self.larger_is_better else float("inf")
        self.best = self.best or [worst] * self.num_models
        self.best_epoch = self.best_epoch or [-1] * self.num_models
        self.last_epoch = self.last_epoch or [-1] * self.num_models

    @property
    def done(self) -> bool:
        return all(epoch >= 0 for epoch in self.last_epoch)

    def report(self, epoch: int, values: list[float]) -> list[bool]:
        """Which models have never been better; those that have stopped never are."""
        improved = []
        for model, value in enumerate(values):
            better = value > self.best[model] if self.larger_is_better else value < self.best[model]
            better = better and self.last_epoch[model] < 0
            improved.append(better)
            if better:
                self.best[model], self.best_epoch[model] = value, epoch
            elif self.last_epoch[model] < 0 and epoch - self.best_epoch[model] >= self.patience:
                self.last_epoch[model] = epoch
        return improved
