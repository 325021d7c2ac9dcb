"""Node regression: one or several numbers a node, learned standardised and answered in the user's units."""

from typing import Any, Literal, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.datasets import Dataset, NumberTargets
from gatas.errors import GatasError
from gatas.nn import NodeHead
from gatas.sampling.sampler import Mode
from gatas.tasks.metrics import mean_r2, regression_metrics
from gatas.tasks.model import Model
from gatas.tasks.nodes import NodeTask
from gatas.tasks.number_details import NumberDetails
from gatas.tasks.settings import ModelSettings
from gatas.transitions import TransitionSource

RegressionLoss = Literal["squared", "huber"]


class NodeRegressor(Model):
    """Predicts one or several numbers of nodes.

    What it learns is standardised: (number - mean) / deviation, over training nodes. `Predictor` and metrics are in the units
    that the data has.

    Args:
        dataset: The data that it is made for.
        transitions: Transition probabilities, where they exist already; computed if left out.
        seed: Weights are a function of it.
        settings: Those of `ModelConfig`, all optional, as of `NodeClassifier`.

    >>> model = NodeRegressor(dataset, sample_size=100, dropout=0.3)
    >>> run = gatas.fit(model, dataset, seed=0)
    """

    target_mean: Tensor
    target_deviation: Tensor

    def __init__(
        self,
        dataset: Dataset,
        *,
        transitions: TransitionSource | None = None,
        seed: int = 0,
        **settings: Unpack[ModelSettings],
    ) -> None:
        mean, deviation = _targets(dataset).standard()
        super().__init__(dataset, transitions=transitions, seed=seed, **settings)
        self.register_buffer("target_mean", torch.tensor(mean))
        self.register_buffer("target_deviation", torch.tensor(deviation))

    def _make_head(self) -> NodeHead:
        return NodeHead(self.encoder.output_size, len(self.names), self.config.hidden_sizes)

    def forward(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """Return (B, num_targets) standardised numbers."""
        found: Tensor = self.head(self.represent(target, draw=draw, mode=mode, first_node=first_node))
        return found

    def in_units(self, standardised: Tensor) -> Tensor:
        """Return numbers in the user's units, in float64."""
        return standardised.double() * self.target_deviation + self.target_mean


class RegressionTask(NodeTask):
    """Batches, loss and metrics of node regression. What models say and what is stored here is standardised."""

    classifies = False

    def __init__(self, dataset: Dataset, batch_size: int, *, by_graph: bool = False, loss: RegressionLoss = "squared") -> None:
        super().__init__(dataset, batch_size, by_graph=by_graph)
        self.huber = loss == "huber"

    def _take_targets(self, dataset: Dataset) -> None:
        targets = _targets(dataset)
        self.names, self.splits, self.multi_label, self.metric = targets.names, targets.splits, False, "r2"
        mean, deviation = targets.standard()
        self.mean, self.deviation = torch.tensor(mean), torch.tensor(deviation)
        self.labels = ((torch.tensor(targets.values) - self.mean) / self.deviation).float()

    def to(self, device: torch.device) -> "RegressionTask":
        super().to(device)
        self.mean, self.deviation = self.mean.to(device), self.deviation.to(device)
        return self

    def standardise_as(self, model: NodeRegressor) -> None:
        """Take the means and deviations that a model was made with, whatever training nodes the data has now."""
        mean, deviation = (own.detach().to(self.mean.device) for own in (model.target_mean, model.target_deviation))
        if not (torch.equal(mean, self.mean) and torch.equal(deviation, self.deviation)):
            self.labels = ((self._in_units(self.labels) - mean) / deviation).float()
            self.mean, self.deviation = mean, deviation

    def loss(self, logits: Tensor, target: Tensor, weight: Tensor, whole: Tensor | None = None) -> Tensor:
        """Return the mean over a batch's nodes, or their part of it where `whole` has the weights of more."""
        return (self._distances(logits, self.labels[target]) * weight).sum() / (weight if whole is None else whole).sum()

    def _distances(self, found: Tensor, wanted: Tensor) -> Tensor:
        """Return (n,) losses of nodes: the mean over those of their numbers that are known."""
        known = ~wanted.isnan()
        wanted = torch.where(known, wanted, found.detach())
        each = F.huber_loss(found, wanted, reduction="none") if self.huber else F.mse_loss(found, wanted, reduction="none")
        return each.sum(-1) / known.sum(-1).clamp_min(1)

    def mean_logits(self, logits: Tensor) -> Tensor:
        """Return the mean number over draws, (R, …)."""
        return logits[0] if len(logits) == 1 else logits.mean(0)

    def monitor(self, logits: Tensor, split: str) -> dict[str, Tensor]:
        """Return loss and R² of M models, from (M, n, num_targets) numbers of the split's nodes in ascending order."""
        wanted = self._labels_of(split)
        losses = self._distances(logits, wanted.expand_as(logits))
        return {"loss": losses.mean(1), self.metric: mean_r2(logits, wanted)}

    def measure(self, logits: Tensor, split: str) -> dict[str, Any]:
        """Return the loss, and MAE, RMSE and R² in the user's units: the mean over targets, and of each."""
        wanted = self._labels_of(split)
        found, truth = (self._in_units(numbers).cpu().numpy() for numbers in (logits, wanted))
        loss = float(self._distances(logits, wanted).mean())
        return {"loss": loss, **regression_metrics(found, truth, self.names)}

    def details(self, logits: Tensor, split: str, temperature: float = 1.0) -> NumberDetails:
        """Return some of the numbers, predicted and true, for a picture."""
        found, truth = (self._in_units(numbers).cpu().numpy() for numbers in (logits, self._labels_of(split)))
        return NumberDetails.of(self.names, found, truth)

    def _in_units(self, standardised: Tensor) -> Tensor:
        return standardised.double() * self.deviation + self.mean


def _targets(dataset: Dataset) -> NumberTargets:
    if not isinstance(dataset.targets, NumberTargets):
        raise GatasError(f"{dataset.name} is for {dataset.task}; a NodeRegressor needs numbers of nodes.")
    if "train" not in dataset.targets.splits:
        raise GatasError(f"{dataset.name} has no split 'train', by whose numbers those of all nodes are standardised.")
    return dataset.targets
