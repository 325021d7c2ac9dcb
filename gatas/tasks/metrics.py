"""Metrics. Reported ones are scikit-learn's, imported when first needed (it takes a second); monitored ones are plain torch."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F


def classification_metrics(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Return accuracy, micro- and macro-F1 of (n, classes) logits.

    Macro-F1 of one class a node is over the classes that occur, as truth or as prediction; of multi-label data it is over all
    classes, and one that never occurs counts as 0. Multi-label accuracy is that of single labels.
    """
    from sklearn.metrics import accuracy_score, f1_score

    if labels.ndim == 1:
        truth, predicted = labels.cpu().numpy(), logits.argmax(-1).cpu().numpy()
        micro, macro = (f1_score(truth, predicted, average=kind, zero_division=0) for kind in ("micro", "macro"))
    else:
        truth, predicted = (labels > 0).cpu().numpy(), (logits > 0).cpu().numpy()
        micro = f1_score(truth.ravel(), predicted.ravel(), zero_division=0)
        # scikit-learn takes a single column for two classes
        macro = f1_score(truth, predicted, average="macro", zero_division=0) if truth.shape[1] > 1 else micro
    accuracy = accuracy_score(truth.ravel(), predicted.ravel())
    return {"accuracy": float(accuracy), "micro_f1": float(micro), "macro_f1": float(macro)}


def micro_metric(logits: Tensor, labels: Tensor) -> Tensor:
    """Return (M,) accuracy, or micro-F1 of multi-label data, of (M, n, classes) logits; the host is not waited for."""
    return accuracy(logits, labels) if labels.ndim == 1 else micro_f1(logits, labels)


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """(…) shares of the n nodes whose largest of (…, n, classes) logits is at their label."""
    return (logits.argmax(-1) == labels).sum(-1) / labels.shape[0]


def micro_f1(logits: Tensor, labels: Tensor) -> Tensor:
    """(…) micro-F1 of (…, n, classes) logits, positive where a label is predicted; 0 where none is true or predicted."""
    predicted, truth = logits > 0, labels > 0
    correct, named = (predicted & truth).sum((-2, -1)), predicted.sum((-2, -1)) + truth.sum()
    return 2 * correct / named.clamp_min(1)


def paper_protocol(scores: NDArray[Any], truth: NDArray[Any], types: NDArray[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return ROC-AUC and F1 at a probability of 0.5, macro over the edge types that have positives and negatives.

    `scores` are logits. `by_type` has how many of both every type has, measured or not.
    """
    from sklearn.metrics import f1_score, roc_auc_score

    by_type: dict[str, dict[str, float]] = {}
    for kind, name in enumerate(names):
        own, wanted = scores[types == kind], truth[types == kind]
        by_type[name] = {"positives": int(wanted.sum()), "negatives": int((1 - wanted).sum())}
        if 0 < wanted.sum() < len(wanted):
            by_type[name] |= {"roc_auc": float(roc_auc_score(wanted, own)), "f1": float(f1_score(wanted, own > 0))}
    return {
        **{metric: _mean(of[metric] for of in by_type.values() if metric in of) for metric in ("roc_auc", "f1")},
        "by_type": by_type,
    }


def macro_roc_auc(scores: NDArray[Any], truth: NDArray[Any], types: NDArray[Any], num_types: int) -> float:
    """Return the ROC-AUC of `paper_protocol` alone, which early stopping looks at after every epoch."""
    from sklearn.metrics import roc_auc_score

    rows = [(truth[types == kind], scores[types == kind]) for kind in range(num_types)]
    return _mean(float(roc_auc_score(wanted, own)) for wanted, own in rows if 0 < wanted.sum() < len(wanted))


def gatne_protocol(scores: NDArray[Any], truth: NDArray[Any], types: NDArray[Any], kinds: list[int]) -> dict[str, float]:
    """Return GATNE's metrics: ROC-AUC, PR-AUC, and F1 with as many pairs accepted as there are links; means over edge types."""
    from sklearn.metrics import auc, f1_score, precision_recall_curve, roc_auc_score

    rows = []
    for kind in kinds:
        own, wanted = scores[types == kind], truth[types == kind]
        if 0 < wanted.sum() < len(wanted):
            threshold = np.sort(own)[-int(wanted.sum())]
            precision, recall, _ = precision_recall_curve(wanted, own)
            rows.append((roc_auc_score(wanted, own), auc(recall, precision), f1_score(wanted, own >= threshold)))
    return {name: _mean(row[place] for row in rows) for place, name in enumerate(("roc_auc", "pr_auc", "f1"))}


def mean_logits(logits: Tensor, multi_label: bool) -> Tensor:
    """Return logits of the mean probability over draws, (R, …, classes)."""
    if len(logits) == 1:
        return logits[0]
    return mean_logit(logits) if multi_label else logits.log_softmax(-1).logsumexp(0)


def mean_logit(logits: Tensor) -> Tensor:
    """Return the logit of the mean probability over (R, …), finite where a probability rounds to 1."""
    return F.logsigmoid(logits).logsumexp(0) - F.logsigmoid(-logits).logsumexp(0)


def _mean(values: Any) -> float:
    found = list(values)
    return float(np.mean(found)) if found else float("nan")


def regression_metrics(found: NDArray[Any], truth: NDArray[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return MAE, RMSE and R² of (n, targets) numbers: of every target, over the nodes where it is known, and their means.

    R² is 0 for the mean of the truth, 1 for the truth; of a target that is the same for all nodes there is none.
    """
    by_target: dict[str, dict[str, float]] = {}
    for column, name in enumerate(names):
        known = ~np.isnan(truth[:, column])
        own, wanted = found[known, column], truth[known, column]
        by_target[name] = {"support": int(known.sum()), **_distances(own, wanted)}
    means = {
        metric: _mean(of[metric] for of in by_target.values() if np.isfinite(of[metric])) for metric in ("mae", "rmse", "r2")
    }
    return {**means, "by_target": by_target}


def _distances(found: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    if not len(truth):
        return dict.fromkeys(("mae", "rmse", "r2"), float("nan"))
    squared, spread = ((found - truth) ** 2).mean(), truth.var()
    r2 = float(1 - squared / spread) if spread > 0 else float("nan")
    return {"mae": float(abs(found - truth).mean()), "rmse": float(np.sqrt(squared)), "r2": r2}


def mean_r2(found: Tensor, truth: Tensor) -> Tensor:
    """Return (M,) R² of (M, n, targets) numbers, the mean over targets; what is NaN in (n, targets) truth is not known."""
    known = ~truth.isnan()
    count = known.sum(0).clamp_min(1)
    wanted = torch.where(known, truth, 0)
    centred = torch.where(known, truth - wanted.sum(0) / count, 0)
    left = torch.where(known, found - wanted, 0).square().sum(-2)  # (M, targets)
    spread = centred.square().sum(0)
    usable = (spread > 0) & (known.sum(0) > 1)
    r2 = torch.where(usable, 1 - left / spread.clamp_min(torch.finfo(spread.dtype).tiny), 0)
    return r2.sum(-1) / usable.sum().clamp_min(1)
