"""How much features say of classes by themselves, beside what labels of neighbours say; both on validation nodes."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gatas.datasets import Dataset
from gatas.graph.inputs import Ints
from gatas.tasks.label_spreading import normalised_adjacency, spread_over

MOST_NODES = 4096
"""Nodes that a classifier is fitted to, and that it is tried on, at most."""
MOST_COLUMNS, COUNTABLE = 512, 1 << 16
"""Columns that a classifier sees: more are mixed at random into as many. Where there are far more, nothing is measured."""
RIDGE = 0.1
STRENGTH, ITERATIONS = 0.5, 10
"""How labels are spread: not far, which is where most of what they say is."""
LITTLE = 0.25
"""Features say little that do not get this share of what neighbours' labels get, above the most frequent class."""
FAR_LESS = 0.7
"""Neighbours' labels say little that find fewer classes than this share of what features find."""

_measured: WeakKeyDictionary[Dataset, "Accuracies"] = WeakKeyDictionary()


class Accuracies(NamedTuple):
    """Shares of validation nodes whose class is found."""

    most_frequent: float
    by_features: float  # by a linear classifier
    by_labels: float  # by labels of training nodes, spread over the graph

    @property
    def features_say_little(self) -> bool:
        """Whether neighbours' labels say something of classes, and features, beside that, next to nothing."""
        gained = self.by_labels - self.most_frequent
        return gained > 0.05 and self.by_features - self.most_frequent < LITTLE * gained

    @property
    def neighbours_say_little(self) -> bool:
        """Whether neighbours' labels say far less of classes than features do.

        The most frequent class is no measure here: of few labels, often as many of each class, it is any of them.
        """
        return self.by_labels < FAR_LESS * self.by_features


def measure_features(dataset: Dataset) -> Accuracies | None:
    """Measure features of a data set whose nodes have one class each, once; nothing where there are too many of them."""
    if dataset not in _measured:
        if dataset.nodes.num_features > COUNTABLE:
            return None
        _measured[dataset] = _accuracies(dataset)
    return _measured[dataset]


def filled_share(dataset: Dataset) -> float:
    """Return the share of features that are not 0, of nodes that have any."""
    features = dataset.features
    if features is None:
        return 0.0
    filled = np.diff(features.tocsr().indptr) if sparse.issparse(features) else np.count_nonzero(features, axis=1)
    return float(filled.sum() / max(1, np.count_nonzero(filled) * features.shape[1]))


def _accuracies(dataset: Dataset) -> Accuracies:
    generator = np.random.default_rng(0)
    labels, num_classes = np.asarray(dataset.node_targets.labels), len(dataset.names)
    train, valid = (generator.permutation(np.asarray(dataset.splits[split])) for split in ("train", "valid"))
    counts = np.bincount(labels[train], minlength=num_classes)
    tried, answers = valid[:MOST_NODES], labels[valid[:MOST_NODES]]
    known = np.zeros((dataset.graph.num_nodes, num_classes), np.float32)
    known[train, labels[train]] = 1
    spread = spread_over(normalised_adjacency(dataset.graph), known, STRENGTH, ITERATIONS)[tried]
    most_frequent = float((answers == counts.argmax()).mean())
    by_features = most_frequent
    if dataset.nodes.num_features:
        guesses = _classified(dataset, train[:MOST_NODES], tried, labels, num_classes)
        by_features = float((answers == guesses).mean())
    return Accuracies(most_frequent, by_features, float((answers == (spread + 1e-9 * counts).argmax(1)).mean()))


def _classified(dataset: Dataset, train: Ints, tried: Ints, labels: Ints, num_classes: int) -> Ints:
    """Return the classes that ridge regression to training labels gives to nodes."""
    columns = _columns(dataset, np.concatenate([train, tried]))
    own, others = columns[: len(train)], columns[len(train) :]
    centre, scale = own.mean(0), own.std(0) + 1e-6
    own, others = (own - centre) / scale, (others - centre) / scale
    wanted = np.eye(num_classes)[labels[train]]
    products = own.T @ own + RIDGE * len(own) * np.eye(own.shape[1])
    weights = np.linalg.solve(products, own.T @ (wanted - wanted.mean(0)))
    found: Ints = (others @ weights + wanted.mean(0)).argmax(1)
    return found


def _columns(dataset: Dataset, nodes: Ints) -> NDArray[np.float64]:
    """Return the features of nodes, mixed into fewer columns where there are many."""
    assert dataset.features is not None
    rows, width = dataset.features[nodes], dataset.features.shape[1]
    if width > MOST_COLUMNS:
        rows = rows @ np.random.default_rng(1).standard_normal((width, MOST_COLUMNS), np.float32)
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)
