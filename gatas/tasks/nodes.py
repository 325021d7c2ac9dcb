"""Node classification: one class a node, or any number; the nodes of one graph, or of graphs never seen."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.datasets import Dataset, NodeTargets
from gatas.errors import ConfigError, GatasError
from gatas.nn import NodeHead
from gatas.sampling.sampler import Mode
from gatas.tasks.batches import Batches, cut, fill, generator_of
from gatas.tasks.calibration import fit_temperature
from gatas.tasks.class_details import ClassDetails
from gatas.tasks.class_weights import ClassWeights, weights_of_classes
from gatas.tasks.consistency import Consistency
from gatas.tasks.label_spreading import fit_spreading, weighted_evidence
from gatas.tasks.learnable import Learnable
from gatas.tasks.metrics import classification_metrics, mean_logits, micro_metric
from gatas.tasks.model import Model, as_tensor
from gatas.tasks.number_details import NumberDetails


class NodeClassifier(Model):
    """Predicts classes of nodes: one for each node, or any number.

    Args:
        dataset: The data that it is made for.
        transitions: Transition probabilities, where they exist already; computed if left out.
        seed: Weights are a function of it.
        settings: Those of `ModelConfig`, all optional. People change most often: `num_steps` (C, the longest path; 3, or 2
            in large graphs), `sample_size` (S, neighbours drawn for each target; 50), `num_heads` (K; 4), `head_size` (50),
            `hidden_size` (F, of the layer over features; 50), `neighbour_size` (F'; 50), `dropout`, `input_noise`,
            `node_embedding_size` (R, learned for each node; 50 where nodes have no features, else 0), `max_candidates`
            and `max_degree` (what is kept of the neighbourhoods of large graphs; all that fits), `skip_connection`,
            `output_norm`, `label_inputs` and `label_spreading`, `hidden_sizes` (layers before the classes; none). What is not
            given follows from the data: `config` has what was taken, `choices` says why.

    >>> model = NodeClassifier(dataset, sample_size=100, dropout=0.3)
    >>> run = gatas.fit(model, dataset, seed=0)
    """

    temperature: float = 1.0
    """What logits are divided by before they become probabilities; fitted to validation data after training."""
    spreading_weights: Tensor | None
    """(A,) what labels that were spread count in answers; fitted to validation data when training has ended."""

    def reset(self, seed: int) -> None:
        self.temperature = 1.0
        weights = None if self.spread is None else self.spread.new_zeros(len(self.spread))
        self.register_buffer("spreading_weights", weights)
        super().reset(seed)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take weights; those of a run from before there were further ways to spread labels count these for nothing."""
        known = state_dict.get("spreading_weights")
        if known is not None and self.spread is not None and len(known) < len(self.spread):
            state_dict = {**state_dict, "spreading_weights": F.pad(known, (0, len(self.spread) - len(known)))}
        return super().load_state_dict(state_dict, strict, assign)

    def _make_head(self) -> nn.Module:
        return NodeHead(self.encoder.output_size, len(self.names), self.config.hidden_sizes)

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """Return (B, num_classes) logits."""
        logits: Tensor = self.head(self.represent(target, draw=draw, mode=mode, first_node=first_node))
        if self.training or self.spread is None or self.spreading_weights is None:
            return logits  # the encoder learns as if nothing were added, so that it does not rely on it
        return logits + weighted_evidence(self.spreading_weights, self.spread[:, target])


class NodeTask:
    """Batches, loss and metrics of node classification."""

    classifies = True
    class_weights: Tensor | None = None

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        by_graph: bool = False,
        consistency: Consistency | None = None,
        class_weights: ClassWeights = "none",
        label_smoothing: float = 0.0,
    ) -> None:
        self.batch_size, self.consistency, self.label_smoothing = batch_size, consistency, label_smoothing
        self._take_targets(dataset)
        if class_weights != "none":
            self.class_weights = weights_of_classes(dataset.node_targets, class_weights)
        graph_id = dataset.nodes.graph_id if by_graph else None
        self.graph_id = None if graph_id is None else np.asarray(graph_id)
        self.columns: dict[str, Any] = {"target": None}
        if self.graph_id is not None and (np.diff(self.graph_id) >= 0).all():
            self.columns["first_node"] = np.searchsorted(self.graph_id, self.graph_id)
        if consistency is not None:
            self._look_at_others(dataset)

    def _take_targets(self, dataset: Dataset) -> None:
        if not isinstance(dataset.targets, NodeTargets):
            raise GatasError(f"{dataset.name} is for {dataset.task}; a NodeClassifier needs labelled nodes.")
        self.names, self.splits = dataset.names, dataset.targets.splits
        self.multi_label = dataset.targets.multi_label
        self.metric = "micro_f1" if self.multi_label else "accuracy"
        self.labels = as_tensor(dataset.targets.labels, copy=not dataset.mapped)

    def _look_at_others(self, dataset: Dataset) -> None:
        """Have batches also hold nodes whose labels are not `known`."""
        if self.multi_label or self.graph_id is not None:
            raise ConfigError("consistency is for nodes with one class each and batches of all graphs: set it to 0.")
        train, graph_id = np.asarray(self.splits["train"]), dataset.nodes.graph_id
        others = np.ones(dataset.graph.num_nodes, np.bool_) if graph_id is None else np.isin(graph_id, graph_id[train])
        others[train] = False  # of graphs that are trained on: test graphs stay unseen
        self.others = np.flatnonzero(others)
        self.columns["known"] = np.isin(np.arange(dataset.graph.num_nodes), train).astype(np.float32)

    def to(self, device: torch.device) -> "NodeTask":
        self.labels = self.labels.to(device)
        self.class_weights = None if self.class_weights is None else self.class_weights.to(device)
        return self

    def epoch(self, seed: int, number: int) -> Batches:
        """Shuffle the training nodes; batches of one graph are shuffled too."""
        generator = generator_of(seed, number)
        batches = cut(generator.permutation(self.splits["train"]), self.batch_size, self.graph_id)
        if self.graph_id is not None:
            batches = [batches[k] for k in generator.permutation(len(batches))]
        if self.consistency is not None:
            count = min(self.consistency.nodes, len(self.others))
            batches = [np.concatenate([batch, generator.choice(self.others, count, replace=False)]) for batch in batches]
        return fill(batches, self.columns)

    def split(self, name: str, batch_size: int) -> Batches:
        return fill(cut(np.asarray(self.splits[name]), batch_size, self.graph_id), self.columns)

    def objective(
        self,
        model: Learnable,
        target: Tensor,
        weight: Tensor,
        known: Tensor | None = None,
        *,
        whole: Mapping[str, Tensor],
        **given: Tensor,
    ) -> Tensor:
        """Return what a step makes smaller: these nodes' part of the mean over the `whole` batch, which processes may share."""
        if self.consistency is None:
            loss, penalty = self.loss(model(target, **given).float(), target, weight, whole["weight"]), model.penalty()
            return loss if penalty is None else loss + penalty
        logits = torch.stack([model(target, **given).float() for _ in range(self.consistency.draws)])  # (R, B, classes)
        assert known is not None
        losses = [self.loss(own, target, weight * known, whole["weight"] * whole["known"]) for own in logits]
        return torch.stack(losses).mean() + self.consistency.loss(logits, weight, whole["weight"])

    def loss(self, logits: Tensor, target: Tensor, weight: Tensor, whole: Tensor | None = None) -> Tensor:
        """Return the mean over a batch's nodes (and labels), or their part of it where `whole` has the weights of more."""
        losses = self._losses(logits, self.labels[target].clamp_min(0), self.class_weights, self.label_smoothing)
        return (losses * weight).sum() / (weight if whole is None else whole).sum()

    def _losses(
        self, logits: Tensor, labels: Tensor, class_weights: Tensor | None = None, label_smoothing: float = 0.0
    ) -> Tensor:
        """Return (n,) losses of nodes; classes may have weights, and what is certain may be made less so."""
        if self.multi_label:
            wanted = labels.float()
            if label_smoothing:
                wanted = wanted * (1 - label_smoothing) + label_smoothing / 2
            losses = F.binary_cross_entropy_with_logits(logits, wanted, pos_weight=class_weights, reduction="none")
            return losses.mean(-1)
        losses = F.cross_entropy(logits, labels, reduction="none", label_smoothing=label_smoothing)
        return losses if class_weights is None else losses * class_weights[labels]

    def mean_logits(self, logits: Tensor) -> Tensor:
        """Return logits of the mean probability over draws, (R, …)."""
        return mean_logits(logits, self.multi_label)

    def monitor(self, logits: Tensor, split: str) -> dict[str, Tensor]:
        """Return loss and metric of M models, from (M, n, num_classes) logits of the split's nodes in ascending order.

        Where classes have weights in training, they have them here, so that early stopping looks at what is asked for.
        """
        labels = self._labels_of(split)
        several = labels.repeat(len(logits), *[1] * (labels.ndim - 1))
        losses = self._losses(logits.flatten(0, 1), several, self.class_weights)
        return {"loss": losses.view(len(logits), -1).mean(1), self.metric: micro_metric(logits, labels)}

    def measure(self, logits: Tensor, split: str) -> dict[str, Any]:
        """Return the loss, in which all nodes count alike, and all metrics of one model."""
        labels = self._labels_of(split)
        return {"loss": float(self._losses(logits, labels).mean()), **classification_metrics(logits, labels)}

    def fit_spreading(self, model: Learnable, logits: Tensor) -> Tensor:
        """Return (M, A) weights of what labels spread over the graph say of validation nodes, beside (M, n, classes) logits."""
        assert isinstance(model, NodeClassifier) and model.spread is not None
        spread, labels = model.spread[:, self._nodes_of("valid").to(model.spread.device)], self._labels_of("valid")
        return torch.stack([fit_spreading(own, spread, labels) for own in logits])

    def spreading(self, model: Learnable, weights: Tensor) -> Tensor:
        """Return the (M, n, classes) part of validation nodes' logits that (M, A) weights give."""
        assert isinstance(model, NodeClassifier) and model.spread is not None
        spread = model.spread[:, self._nodes_of("valid").to(model.spread.device)]
        return torch.stack([weighted_evidence(own, spread) for own in weights])

    def fit_temperature(self, logits: Tensor, split: str) -> float:
        """Return the temperature at which the logits of a split have the largest likelihood."""
        return fit_temperature(logits, self._labels_of(split))

    def details(self, logits: Tensor, split: str, temperature: float = 1.0) -> ClassDetails | NumberDetails:
        """Return what the metrics of one model are made of, class by class, with probabilities at a temperature."""
        return ClassDetails.of(self.names, logits, self._labels_of(split), temperature)

    def _labels_of(self, split: str) -> Tensor:
        return self.labels[self._nodes_of(split).to(self.labels.device)]

    def _nodes_of(self, split: str) -> Tensor:
        return torch.from_numpy(np.sort(np.asarray(self.splits[split])))
