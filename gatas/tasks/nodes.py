"""Node classification: one class a node, or any number; the nodes of one graph, or of graphs never seen."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.datasets import Dataset
from gatas.errors import GatasError
from gatas.nn import NodeHead
from gatas.sampling.sampler import Mode
from gatas.tasks.batches import Batches, cut, fill, generator_of
from gatas.tasks.metrics import classification_metrics, mean_logit, micro_metric
from gatas.tasks.model import Model


class NodeClassifier(Model):
    """Classes of nodes.

    >>> model = NodeClassifier(dataset, sample_size=100, dropout=0.5)
    >>> run = gatas.fit(model, dataset, seed=0)
    """

    def _make_head(self) -> nn.Module:
        return NodeHead(self.encoder.output_size, len(self.names), self.config.hidden_sizes)

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """(B, num_classes) logits."""
        logits: Tensor = self.head(self.represent(target, draw=draw, mode=mode, first_node=first_node))
        return logits


class NodeTask:
    """Batches, loss and metrics of node classification."""

    def __init__(self, dataset: Dataset, batch_size: int, *, by_graph: bool = False) -> None:
        if dataset.labels is None or dataset.task == "link prediction":
            raise GatasError(f"{dataset.name} is for {dataset.task}; a NodeClassifier needs labelled nodes.")
        self.several = dataset.task == "multi-label node classification"
        self.metric = "micro_f1" if self.several else "accuracy"
        self.splits, self.batch_size = dataset.splits, batch_size
        labels = torch.from_numpy(np.array(dataset.labels))
        self.labels = labels.float() if self.several else labels.long()
        graph_id = dataset.graph.graph_id if by_graph else None
        self.graph_id = None if graph_id is None else np.asarray(graph_id)
        self.columns: dict[str, Any] = {"target": np.arange(dataset.graph.num_nodes)}
        if self.graph_id is not None and (np.diff(self.graph_id) >= 0).all():
            self.columns["first_node"] = np.searchsorted(self.graph_id, self.graph_id)

    def to(self, device: torch.device) -> "NodeTask":
        self.labels = self.labels.to(device)
        return self

    def epoch(self, seed: int, number: int) -> Batches:
        """The training nodes in an order of their own; batches of one graph are in any order too."""
        generator = generator_of(seed, number)
        batches = cut(generator.permutation(self.splits["train"]), self.batch_size, self.graph_id)
        if self.graph_id is not None:
            batches = [batches[k] for k in generator.permutation(len(batches))]
        return fill(batches, self.columns)

    def split(self, name: str, batch_size: int) -> Batches:
        return fill(cut(np.asarray(self.splits[name]), batch_size, self.graph_id), self.columns)

    def loss(self, logits: Tensor, target: Tensor, weight: Tensor, **_: Tensor) -> Tensor:
        """The mean over a batch's nodes (and labels)."""
        return (self._losses(logits, self.labels[target]) * weight).sum() / weight.sum()

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.several:
            return F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(-1)
        return F.cross_entropy(logits, labels, reduction="none")

    def mean_logits(self, logits: Tensor) -> Tensor:
        """Logits of the mean probability over draws, (R, …)."""
        if len(logits) == 1:
            return logits[0]
        return mean_logit(logits) if self.several else logits.log_softmax(-1).logsumexp(0)

    def monitor(self, logits: Tensor, split: str) -> dict[str, Tensor]:
        """Loss and metric of M models, from (M, n, num_classes) logits of the split's nodes in ascending order."""
        labels = self._labels_of(split)
        losses = self._losses(logits.flatten(0, 1), labels.repeat(len(logits), *[1] * (labels.ndim - 1)))
        return {"loss": losses.view(len(logits), -1).mean(1), self.metric: micro_metric(logits, labels)}

    def measure(self, logits: Tensor, split: str) -> dict[str, Any]:
        """Loss and all metrics of one model."""
        labels = self._labels_of(split)
        return {"loss": float(self._losses(logits, labels).mean()), **classification_metrics(logits, labels)}

    def _labels_of(self, split: str) -> Tensor:
        return self.labels[torch.from_numpy(np.sort(np.asarray(self.splits[split]))).to(self.labels.device)]
