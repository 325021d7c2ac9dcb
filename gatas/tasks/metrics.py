"""Metrics, as torchmetrics and scikit-learn define them; both are imported when first needed, as they take seconds."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

NAMES = ("accuracy", "micro_f1", "macro_f1")
KINDS: tuple[Literal["micro"], Literal["macro"]] = ("micro", "macro")


def classification_metrics(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Return accuracy, micro- and macro-F1. With multiple labels a node, accuracy is that of single labels."""
    from torchmetrics.functional import classification as metrics

    if labels.ndim == 2:
        predicted, truth, classes = (logits > 0).int(), labels.int(), logits.shape[1]
        accuracy = metrics.multilabel_accuracy(predicted, truth, classes, average="micro")
        f1 = [metrics.multilabel_f1_score(predicted, truth, classes, average=kind) for kind in KINDS]
    else:
        predicted, truth, classes = logits.argmax(-1), labels, logits.shape[1]
        accuracy = metrics.multiclass_accuracy(predicted, truth, classes, average="micro")
        f1 = [metrics.multiclass_f1_score(predicted, truth, classes, average=kind) for kind in KINDS]
    return dict(zip(NAMES, torch.stack([accuracy, *f1]).tolist(), strict=True))


def micro_metric(logits: Tensor, labels: Tensor) -> Tensor:
    """Return (M,) accuracy, or micro-F1 with multiple labels a node, of (M, n, classes) logits."""
    from torchmetrics.functional import classification as metrics

    def one(own: Tensor) -> Tensor:
        if labels.ndim == 2:
            predicted, truth = (own > 0).int(), labels.int()
            return metrics.multilabel_f1_score(predicted, truth, own.shape[1], average="micro", validate_args=False)
        return metrics.multiclass_accuracy(own.argmax(-1), labels, own.shape[1], average="micro", validate_args=False)

    return torch.vmap(one)(logits)


def paper_protocol(scores: NDArray[Any], truth: NDArray[Any], types: NDArray[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return ROC-AUC and F1 at a probability of 0.5, macro over the edge types that have positives and negatives.

    `scores` are logits. `by_type` has the support of every type, measured or not.
    """
    from sklearn.metrics import f1_score, roc_auc_score

    by_type: dict[str, dict[str, float]] = {}
    for kind, name in enumerate(names):
        own, wanted = scores[types == kind], truth[types == kind]
        by_type[name] = {"links": int(wanted.sum()), "others": int((1 - wanted).sum())}
        if 0 < wanted.sum() < len(wanted):
            by_type[name] |= {"roc_auc": float(roc_auc_score(wanted, own)), "f1": float(f1_score(wanted, own > 0))}
    return {
        **{metric: _mean(of[metric] for of in by_type.values() if metric in of) for metric in ("roc_auc", "f1")},
        "by_type": by_type,
    }


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


def mean_logit(logits: Tensor) -> Tensor:
    """Return the logit of the mean probability over (R, …), finite where a probability rounds to 1."""
    return F.logsigmoid(logits).logsumexp(0) - F.logsigmoid(-logits).logsumexp(0)


def _mean(values: Any) -> float:
    found = list(values)
    return float(np.mean(found)) if found else float("nan")
