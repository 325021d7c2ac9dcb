"""Weights of classes in the loss of training, so that rare classes are learned as well as frequent ones."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gatas.datasets import NodeTargets
from gatas.errors import ConfigError

ClassWeights = Literal["none", "balanced"] | Mapping[str, float]


def weights_of_classes(targets: NodeTargets, asked: ClassWeights) -> Tensor | None:
    """Return (num_classes,) weights, or None where all nodes count alike.

    Where nodes have one class each, `balanced` gives every class the same total weight, and any weights are scaled so that
    their mean over training nodes is 1: the learning rate keeps its meaning. Where nodes have any number of labels, a weight
    is that of having the label against 1 for not having it; `balanced` makes both sides of every label weigh alike.
    """
    if asked == "none":
        return None
    training = np.asarray(targets.labels[targets.splits["train"]])
    counts = training.sum(0, dtype=np.int64) if targets.multi_label else np.bincount(training, minlength=len(targets.names))
    if isinstance(asked, Mapping):
        weights = _named(targets.names, asked)
    elif targets.multi_label:
        weights = (len(training) - counts) / np.maximum(counts, 1)
    else:
        weights = 1 / np.maximum(counts, 1)
    weights = np.where(weights > 0, weights, 1.0)
    if not targets.multi_label:
        weights = weights * counts.sum() / (weights * counts).sum()
    return torch.tensor(weights, dtype=torch.float32)


def _named(names: tuple[str, ...], asked: Mapping[str, float]) -> np.ndarray:
    for name in asked:
        if name not in names:
            near = get_close_matches(str(name), names, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(map(repr, names[:20]))}."
            raise ConfigError(f"training.class_weights names {name!r}, which is no class. {hint}")
    return np.array([asked.get(name, 1.0) for name in names], np.float64)
