"""What the metrics of a split are made of, class by class: `ClassDetails`, for tables and pictures of a run."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gatas.tasks.calibration import Reliability, reliability

MOST_CLASSES = 1000
"""Of more, no matrix of confusions is kept: it would have a million cells."""


@dataclass(frozen=True, eq=False)
class ClassDetails:
    """Answers of a split counted by class, and how probable they were, before and after calibration."""

    names: tuple[str, ...]
    support: NDArray[np.int64]  # (classes,) nodes that have the class
    predicted: NDArray[np.int64]  # (classes,) nodes that are said to have it
    correct: NDArray[np.int64]  # (classes,) nodes of which both is so
    confusion: NDArray[np.int64] | None  # (classes, classes): truth by row; None: any number of labels a node, or too many
    num_nodes: int
    temperature: float
    before: Reliability
    after: Reliability

    @classmethod
    def of(cls, names: tuple[str, ...], logits: Tensor, labels: Tensor, temperature: float = 1.0) -> "ClassDetails":
        """Count the answers that (n, classes) logits give."""
        before = reliability(logits, labels)
        after = before if temperature == 1 else reliability(logits, labels, temperature)
        truth, count, confusion = labels.cpu().numpy(), len(names), None
        if truth.ndim == 2:
            said, true = (logits > 0).cpu().numpy(), truth > 0
            support, predicted, correct = (marks.sum(0, dtype=np.int64) for marks in (true, said, true & said))
        else:
            best = logits.argmax(-1).cpu().numpy()
            chosen = (truth, best, truth[truth == best])
            support, predicted, correct = (np.bincount(classes, minlength=count) for classes in chosen)
            if count <= MOST_CLASSES:
                confusion = np.bincount(truth * count + best, minlength=count**2).reshape(count, count)
        return cls(names, support, predicted, correct, confusion, len(truth), temperature, before, after)

    @property
    def by_class(self) -> dict[str, dict[str, float]]:
        """Return precision, recall, F1 and support of every class; 0 where nothing is to be divided by."""
        precision, recall = self.correct / np.maximum(self.predicted, 1), self.correct / np.maximum(self.support, 1)
        f1 = 2 * self.correct / np.maximum(self.predicted + self.support, 1)
        columns = zip(self.names, precision.tolist(), recall.tolist(), f1.tolist(), self.support.tolist(), strict=True)
        return {name: {"precision": p, "recall": r, "f1": f, "support": s} for name, p, r, f, s in columns}

    @property
    def calibration(self) -> dict[str, float]:
        """Return log loss and expected calibration error, before and after."""
        return {
            "loss_before": self.before.loss,
            "loss_after": self.after.loss,
            "error_before": self.before.error,
            "error_after": self.after.error,
        }

    @property
    def metrics(self) -> dict[str, Any]:
        """Return what is recorded beside the metrics of the whole split."""
        return {"by_class": self.by_class, "calibration": self.calibration}
