"""`GatasClassifier`: node classification as an estimator of scikit-learn's."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gatas.datasets import Dataset
from gatas.graph import Graph
from gatas.inference.fitting import fit
from gatas.tasks import NodeClassifier
from gatas.tasks.settings import ModelSettings
from gatas.training.settings import TrainingSettings

MODEL: ModelSettings = {
    "num_steps": 2,
    "sample_size": 20,
    "hidden_size": 32,
    "neighbour_size": 32,
    "head_size": 16,
    "num_heads": 4,
}
TRAINING: TrainingSettings = {
    "batch_size": 256,
    "epochs": 40,
    "learning_rate": 0.02,
    "schedule": "cosine",
    "evaluation_mode": "all",
}
UNLABELLED = -1


class GatasClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies the nodes of a graph; rows of X are their features.

    With a `graph`, X has a row for each of its nodes, y a class or -1 for those without a label, and predictions are of those
    same nodes. Without one, every row is linked to the rows most like it; predictions are of any rows, linked to those that
    were fitted.

    Args:
        graph: The graph whose nodes the rows of X are.
        n_neighbors: How many rows each row is linked to, without a graph.
        model: Settings of `gatas.NodeClassifier` that are to differ from `MODEL`.
        training: Settings of `gatas.fit` that are to differ from `TRAINING`.
        device: `"cpu"`, `"cuda"`, or `"auto"` for what there is.
        random_state: A seed, or a generator of numpy's.

    >>> GatasClassifier(graph=graph, training={"epochs": 200}).fit(X, y).predict(X)
    """

    def __init__(
        self,
        graph: Graph | None = None,
        n_neighbors: int = 7,
        model: ModelSettings | None = None,
        training: TrainingSettings | None = None,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.model = model
        self.training = training
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "GatasClassifier":
        """Learn from features and classes."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        labelled = np.ones(len(y), bool) if self.graph is None else y != UNLABELLED
        if not labelled.any():
            raise ValueError("y holds no label, only -1, which marks nodes without one.")
        self.classes_, numbers = np.unique(y[labelled], return_inverse=True)
        labels = np.full(len(y), UNLABELLED)
        labels[labelled] = numbers
        self.mean_, self.scale_ = X.mean(0), np.where(X.std(0) > 0, X.std(0), 1.0)
        graph = self._linked(X) if self.graph is None else self.graph
        if len(X) != graph.num_nodes:
            raise ValueError(f"X has {len(X)} rows, but the graph has {graph.num_nodes} nodes. Give a row for each.")
        features, splits = self._widened(X), {"train": np.flatnonzero(labelled)}
        names = tuple(str(number) for number in range(len(self.classes_)))
        dataset = Dataset.for_nodes(graph, labels, splits, class_names=names, features=features, name="X")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        of_model: ModelSettings = {**MODEL, **(self.model or {})}
        of_training: TrainingSettings = {**TRAINING, **(self.training or {})}
        model = NodeClassifier(dataset, **of_model)
        self.predictor_ = fit(model, dataset, seed=seed, device=self.device, **of_training).predictor
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Return (n, classes) probabilities, in the order of `classes_`."""
        check_is_fitted(self, "predictor_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        features = self._widened(X)
        if self.graph is None:
            near = self.nearest_.kneighbors(X, min(self.n_neighbors, self.nearest_.n_samples_fit_), return_distance=False)
            first = self.nearest_.n_samples_fit_
            edges = np.repeat(np.arange(first, first + len(X)), near.shape[1]), near.ravel()
            extended = self.predictor_.with_new_nodes(features, edges, reverse=False)  # so that none of them sees another
            return extended.predict_classes(extended.new_indices).probabilities
        if not np.array_equal(features, np.asarray(self.predictor_.dataset.features)):
            raise ValueError(
                "X is not what was fitted. With a graph, predictions are of its nodes, with the features they had."
            )
        return self.predictor_.predict_classes(np.arange(self.predictor_.graph.num_nodes)).probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        chances = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[chances.argmax(1)]
        return found

    def _linked(self, X: NDArray[Any]) -> Graph:
        """Link every row to those most like it."""
        self.nearest_ = NearestNeighbors(n_neighbors=self.n_neighbors).fit(X)
        count = min(self.n_neighbors, len(X) - 1)
        if not count:
            return Graph.from_edges([], [], num_nodes=len(X), num_edge_types=1)
        near = self.nearest_.kneighbors(n_neighbors=count, return_distance=False)
        return Graph.from_edges(np.repeat(np.arange(len(X)), count), near.ravel(), num_nodes=len(X))

    def _widened(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Standardise X, and put its negative and a one beside it: LayerNorm would leave nothing of one or two columns."""
        scaled = (X - self.mean_) / self.scale_
        wide: NDArray[np.float32] = np.hstack([scaled, -scaled, np.ones((len(X), 1))]).astype(np.float32)
        return wide
