"""`TrainedModel`: a trained model over a graph, by node index: what all answers are computed from."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.datasets import Dataset, LinkTargets, NumberTargets
from gatas.errors import GatasError
from gatas.files import RunningChecksum
from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.graph.saved import graph_fingerprint
from gatas.inference.exact import ExactEncoder
from gatas.inference.ids import ids_of
from gatas.inference.prediction import NumberPrediction, Prediction
from gatas.nn.sparse_rows import is_sparse
from gatas.progress import ProgressCallback
from gatas.sampling import NeighbourSampler
from gatas.sampling.on_demand import rows_on
from gatas.sampling.sampler import Mode
from gatas.tasks import Model, NodeRegressor
from gatas.tasks.metrics import mean_logits
from gatas.tasks.model import known_labels
from gatas.transitions.ahead import ReadAhead

BATCH_SIZE, GPU_BATCH_SIZE = 256, 1024
"""Nodes at a time. A GPU waits for the host to begin each operation, however little is in it."""
COUNTERS = ("sampler.draws", "encoder.passes")
"""State of a model that counts training steps; answers do not depend on it."""


def silent(share: float) -> None:
    """Take no notice of progress."""


class TrainedModel:
    """A trained model over the graph that it was trained on, or over that graph with new nodes.

    Args:
        model: The model.
        dataset: The data that it was trained on.
        mode: Which neighbours answers look at: `"sample"` draws them, `"top"` takes the likeliest, `"all"` takes all.
        draws: Over how many drawn neighbourhoods answers are averaged.
        graph: The graph with new nodes, if there are any.
        exact: The encoder over that graph.
    """

    def __init__(
        self,
        model: Model,
        dataset: Dataset,
        *,
        mode: Mode = "sample",
        draws: int = 1,
        graph: ExtendedGraph | None = None,
        exact: ExactEncoder | None = None,
    ) -> None:
        self.model, self.dataset, self.mode = model, dataset, mode
        self.draws = range(-1, -1 - (draws if mode == "sample" else 1), -1)  # below zero, as none that was trained on
        self.graph: Graph | ExtendedGraph = graph or dataset.graph
        self.exact = exact or ExactEncoder(model)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of what is predicted: classes or numbers of nodes, or types of link."""
        return self.dataset.names

    @property
    def task(self) -> str:
        """Return what is predicted, in words."""
        return self.dataset.task

    @property
    def predicts_links(self) -> bool:
        return isinstance(self.dataset.targets, LinkTargets)

    @property
    def predicts_numbers(self) -> bool:
        return isinstance(self.dataset.targets, NumberTargets)

    @property
    def embedding_size(self) -> int:
        """Return the width of a representation, K·F'', or of a node's own vector where no other is trained; 0 for none."""
        return self.exact.size

    @property
    def num_features(self) -> int:
        """Return how many features a new node must bring."""
        return self.dataset.nodes.num_features

    @property
    def device(self) -> torch.device:
        return self.exact.device

    @property
    def sampler(self) -> NeighbourSampler:
        return self.exact.sampler

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of all that answers depend on: graph, features, settings and weights."""
        calibrated = "" if self.temperature == 1 else f" {self.temperature!r}"
        model, mode = self.model, f"{self.mode} {len(self.draws)}{calibrated}"
        digest = RunningChecksum()
        digest.update(f"{graph_fingerprint(self.dataset.graph)} {model.config.model_dump_json()} {mode} {self.names}".encode())
        labels = {} if model.labels is None else {"labels": model.labels}
        labels |= {} if model.spread is None else {"spread labels": known_labels(self.dataset)}
        state = {**model.state_dict(), **_feature_parts(model.features), **labels}
        for name, tensor in sorted(state.items()):
            if name not in COUNTERS:
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
                content = tensor.detach().cpu().contiguous().numpy()
                digest.update(content.reshape(-1).data.cast("B") if content.size else b"")
        return digest.hexdigest()

    def embed_indices(
        self, nodes: Ints, batch_size: int | None = None, progress: ProgressCallback = silent
    ) -> NDArray[np.float32]:
        """Return (n, K·F'') representations of nodes given by index."""
        found, done = [np.empty((0, self.embedding_size), np.float32)], 0
        for batch in self.batches(nodes, batch_size):
            mean = torch.stack([self.exact.represent(batch, self.mode, draw) for draw in self.draws]).mean(0)
            found.append(mean.float().cpu().numpy())
            done += len(batch)
            progress(done / len(nodes))
        return np.concatenate(found)

    def predict_indices(self, nodes: Ints, batch_size: int | None = None, draws: int | None = None) -> Any:
        """Predict the classes of nodes given by index, a `Prediction`; or their numbers, a `NumberPrediction`.

        Args:
            nodes: Indices.
            batch_size: Nodes at a time.
            draws: Neighbourhoods that are drawn for each node; answers are the mean over them, and come with its deviation.
        """
        if self.predicts_numbers:
            return self.predict_numbers(nodes, batch_size, draws)
        return self.predict_classes(nodes, batch_size, draws)

    def predict_classes(self, nodes: Ints, batch_size: int | None = None, draws: int | None = None) -> Prediction:
        """Predict the classes of nodes given by index, with their probabilities."""
        multi_label, size = self.dataset.node_targets.multi_label, len(self.names)
        found, spread = [np.empty((0, size), np.float32)], [np.empty((0, size), np.float32)]
        for logits in self._outputs(nodes, batch_size, draws):
            found.append(mean_probabilities(logits, multi_label, self.temperature).float().cpu().numpy())
            if draws is not None:
                tempered = probabilities_of(logits / self.temperature, multi_label)
                spread.append(tempered.std(0).float().cpu().numpy())
        deviations = None if draws is None else np.concatenate(spread)
        return Prediction(ids_of(self.graph, nodes), self.names, np.concatenate(found), multi_label, deviations)

    def predict_numbers(self, nodes: Ints, batch_size: int | None = None, draws: int | None = None) -> NumberPrediction:
        """Predict the numbers of nodes given by index, in the units that the data has."""
        assert isinstance(self.model, NodeRegressor)
        found, spread = [np.empty((0, len(self.names)))], [np.empty((0, len(self.names)))]
        for standardised in self._outputs(nodes, batch_size, draws):
            numbers = self.model.in_units(standardised)
            found.append(numbers.mean(0).cpu().numpy())
            if draws is not None:
                spread.append(numbers.std(0).cpu().numpy())
        deviations = None if draws is None else np.concatenate(spread)
        return NumberPrediction(ids_of(self.graph, nodes), self.names, np.concatenate(found), deviations)

    def _outputs(self, nodes: Ints, batch_size: int | None, draws: int | None) -> Iterator[torch.Tensor]:
        """Give (R, B, …) of what the head says of each batch of nodes, from each draw; by default from as many as usual."""
        numbers = self.draws if draws is None else self.spread_draws(draws)
        for batch in self.batches(nodes, batch_size):
            seen = (self.exact.represent(batch, self.mode, draw) for draw in numbers)
            found = torch.stack([self.exact.apply_head(one) for one in seen])
            added = self.exact.spread_labels(torch.from_numpy(batch).to(self.device))
            yield found if added is None else found + added

    def spread_draws(self, draws: int) -> range:
        """Return the numbers of so many draws, to tell how far answers differ between them."""
        if self.mode != "sample":
            raise GatasError(
                f"{draws} draws were asked for, but this predictor looks at {self.mode} neighbours, which are always the same. "
                "Load the run with mode='sample'."
            )
        if draws < 2:
            raise GatasError(f"draws is {draws}; a spread needs 2 or more.")
        return range(-1, -1 - draws, -1)

    @property
    def temperature(self) -> float:
        """Return what logits are divided by before they become probabilities; 1 where nothing was calibrated."""
        return float(getattr(self.model, "temperature", 1.0))

    @property
    def new_indices(self) -> Ints:
        """Return the indices of new nodes, which follow those of the nodes trained on."""
        return np.arange(self.dataset.graph.num_nodes, self.graph.num_nodes)

    def batches(self, nodes: Ints, batch_size: int | None = None) -> Iterator[Ints]:
        """Give so many nodes at a time, in order; where the host makes rows ahead, those of the next are made meanwhile."""
        size = batch_size or batch_size_on(self.device.type)
        source = self.sampler.transitions
        parts = [nodes[start : start + size] for start in range(0, len(nodes), size)]
        for number, batch in enumerate(parts):
            if isinstance(source, ReadAhead) and rows_on(source, self.device) is None:
                for upcoming in parts[number : number + 2]:
                    source.ahead(upcoming)
            yield batch

    def link_type(self, name: str | None) -> str:
        """Return the type of link that is meant: the named one, or the only one."""
        if name is None and len(self.names) > 1:
            raise GatasError(f"the type of link is missing; the model knows {', '.join(map(repr, self.names[:20]))}.")
        return self.names[0] if name is None else name

    def check_predicts_nodes(self) -> None:
        """Refuse to give classes or numbers of nodes where the model predicts links."""
        if self.predicts_links:
            raise GatasError(
                "the model predicts links, not classes of nodes. Ask for links: predict_links or rank_links, "
                "`gatas predict RUN --pairs FILE` or `--source ID`."
            )

    def check_predicts_links(self) -> None:
        """Refuse to give links where the model predicts classes or numbers of nodes."""
        if not self.predicts_links:
            what = "numbers" if self.predicts_numbers else "classes"
            raise GatasError(f"the model predicts {what} of nodes, not links. Ask for {what}: predict, or `gatas predict RUN`.")


def probabilities_of(logits: torch.Tensor, multi_label: bool) -> torch.Tensor:
    """Return probabilities of logits; of classes that exclude one another they add up to 1."""
    return logits.sigmoid() if multi_label else logits.softmax(-1)


def mean_probabilities(logits: torch.Tensor, multi_label: bool, temperature: float) -> torch.Tensor:
    """Return the mean over draws of the probabilities of (R, …) logits, at a temperature.

    The mean is tempered, not what it is taken of: so the order of classes stays as it is.
    """
    if temperature == 1:
        return probabilities_of(logits, multi_label).mean(0)
    return probabilities_of(mean_logits(logits, multi_label) / temperature, multi_label)


def batch_size_on(device: str) -> int:
    """Return how many nodes are represented at a time where no other number is asked for."""
    return BATCH_SIZE if device == "cpu" else GPU_BATCH_SIZE


def _feature_parts(features: Tensor | None) -> dict[str, Tensor]:
    """Return the arrays that features are held in, dense or sparse, by name."""
    if features is None:
        return {}
    if not is_sparse(features):
        return {"features": features}
    return {
        "features.indptr": features.crow_indices(),
        "features.column": features.col_indices(),
        "features": features.values(),
    }
