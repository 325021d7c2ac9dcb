"""Label propagation: Zhou et al., "Learning with local and global consistency" (2004). No features and no weights: a floor.

Labels of training nodes walk the graph, by PyG's `LabelPropagation`; `share` (α) is what comes from neighbours.
"""

from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import LabelPropagation

from gatas.datasets import Dataset
from gatas.experiments.baselines.peer import PeerSpace, edges_of
from gatas.tasks.learnable import Learnable
from gatas.tasks.nodes import NodeTask
from gatas.training.config import Config, NamedData
from gatas.training.run import TrainedRun

NAME = "label-propagation"
SETTINGS: dict[str, Any] = {"share": 0.9, "num_steps": 50}
SPACE: PeerSpace = {"share": (0.1, 0.5, 0.8, 0.9, 0.95, 0.99), "num_steps": (1, 2, 3, 5, 10, 50)}
PRIOR = 1e-6
"""Weight of the training classes' shares, which decide where no label arrives."""


class PropagatedLabels(Learnable):
    """What each node has of every class when the labels of training nodes have walked."""

    captures = False
    found: Tensor  # (N, num_classes)

    def __init__(self, dataset: Dataset, *, share: float, num_steps: int) -> None:
        super().__init__()
        targets, train = dataset.node_targets, torch.from_numpy(np.sort(np.asarray(dataset.splits["train"])))
        labels = torch.from_numpy(np.array(targets.labels))
        known = labels.float() if targets.multi_label else F.one_hot(labels.clamp_min(0), len(dataset.names)).float()
        self.multi_label = targets.multi_label
        walked = LabelPropagation(num_steps, share)(known, edges_of(dataset), train)
        self.register_buffer("found", walked + PRIOR * known[train].mean(0), persistent=False)

    def reset(self, seed: int) -> None:
        """There are no weights."""

    def forward(self, target: Tensor, **given: Any) -> Tensor:
        """(B, num_classes) logits; of several labels, each is likely if it has more than half of the largest."""
        found = self.found[target]
        return (found - 0.5 * found.amax(1, keepdim=True)) if self.multi_label else (found + 1e-12).log()


def fit_label_propagation(dataset: Dataset, seed: int, device: torch.device, **settings: Any) -> TrainedRun:
    """A run of one epoch, in which nothing is learned; seeds change nothing."""
    started = perf_counter()
    model, task = PropagatedLabels(dataset, **settings).to(device), NodeTask(dataset, 1).to(device)
    history = [{"epoch": 0, "loss": 0.0, "seconds": perf_counter() - started}]
    metrics: dict[str, Any] = {"best_epoch": 0, "epochs": 1}
    for split in (name for name in ("valid", "test") if name in dataset.splits):
        nodes = torch.from_numpy(np.sort(np.asarray(dataset.splits[split]))).to(device)
        metrics[split] = task.measure(model(nodes), split)
    return TrainedRun(Config(data=NamedData(name=dataset.name)), seed, metrics, history, model, dataset)
