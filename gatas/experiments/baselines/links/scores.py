"""Scores of the typed pairs of a split, and what they are worth, for peers whose scores are no logits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatas.datasets import Dataset
from gatas.tasks import LinkTask

ScorePairs = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(B,) scores of sources, types and targets."""


@torch.no_grad()
def pair_scores(score: ScorePairs, dataset: Dataset, split: str, device: torch.device) -> Tensor:
    """Scores of a split's pairs."""
    pairs = dataset.splits[split]
    columns = (torch.from_numpy(np.array(column)).to(device) for column in (pairs.source, pairs.edge_type, pairs.target))
    return score(*columns).float().cpu()


def measured(score: ScorePairs, task: LinkTask, device: torch.device) -> dict[str, Any]:
    """Both protocols of pairs on validation and test data.

    The paper's protocol takes logits. So scores are shifted, for each type, to be above zero for as many validation pairs as
    are links. Its F1 and the loss depend on this, nothing else does.
    """
    dataset = task.dataset
    scores = {split: pair_scores(score, dataset, split, device) for split in ("valid", "test") if split in task.splits}
    limits = thresholds(scores["valid"], dataset) if "valid" in scores else torch.zeros(len(dataset.names))
    return {
        split: task.measure(own - limits[torch.from_numpy(np.array(dataset.splits[split].edge_type))], split)
        for split, own in scores.items()
    }


def thresholds(scores: Tensor, dataset: Dataset) -> Tensor:
    """(num_types,) where to accept links of each type; for types that validation data has none of, as for all pairs."""
    pairs = dataset.splits["valid"]
    found = np.full(len(dataset.names), np.quantile(scores.numpy(), 1 - pairs.label.mean()), np.float32)
    for kind in np.unique(pairs.edge_type):
        own = pairs.edge_type == kind
        found[kind] = np.quantile(scores.numpy()[own], 1 - pairs.label[own].mean())
    return torch.from_numpy(found)
