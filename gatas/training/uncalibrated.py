"""What probabilities of links lack where validation data is missing, or says nothing of some types."""

import warnings

import numpy as np

from gatas.datasets import Dataset, LinkTargets
from gatas.errors import GatasWarning
from gatas.training.config import TrainingConfig


def warn_of_uncalibrated(config: TrainingConfig, dataset: Dataset) -> None:
    """Warn where links are learned by lists, and what makes their scores into probabilities has nothing to be fitted to."""
    if not isinstance(dataset.targets, LinkTargets) or config.loss != "list":
        return
    valid, names = dataset.targets.splits.get("valid"), dataset.names
    if valid is None:
        _warn(
            f"{dataset.name} has no split 'valid': the last epoch is kept, and probabilities of links are not calibrated: "
            "only their order within a type is meaningful. Give validation links to change that."
        )
        return
    unknown = np.setdiff1d(np.arange(len(names)), valid.edge_type)
    if unknown.size:
        verb, whose = ("has", "its") if unknown.size == 1 else ("have", "their")
        _warn(
            f"{dataset.name}: {unknown.size} of {len(names)} types of link {verb} no validation links (the first is "
            f"{names[int(unknown[0])]!r}); {whose} probabilities are calibrated as those of a mean type."
        )


def _warn(text: str) -> None:
    warnings.warn(text, GatasWarning, stacklevel=4)
