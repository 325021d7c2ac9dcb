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
NOTHING = 0.03
"""Neighbours' labels say nothing that find so few more classes than the most frequent one is of."""
REACHED = 0.25
"""Of neighbours' labels nothing is known where no more validation nodes than this share have a labelled neighbour."""

_measured: WeakKeyDictionary[Dataset, "Accuracies"] = WeakKeyDictionary()


class Accuracies(NamedTuple):
    """Shares of validation nodes whose class is found."""

    most_frequent: float
    by_features: float  # by a linear classifier
    by_labels: float  # by labels of training nodes, spread over the graph
    by_neighbours: float | None = None  # by a linear classifier on shares of classes among neighbours; none if few have labels

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

    @property
    def neighbours_say_nothing(self) -> bool:
        """Whether neighbours' labels find hardly more classes than the most frequent one does.

        Neighbours that are never of a node's own class say much, too: a classifier on their labels finds that.
        """
        if self.by_neighbours is None:
            return False
        return max(self.by_labels, self.by_neighbours) < self.most_frequent + NOTHING


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
    adjacency = normalised_adjacency(dataset.graph)
    spread = spread_over(adjacency, known, [STRENGTH], ITERATIONS)[0, tried]
    most_frequent = float((answers == counts.argmax()).mean())
    by_features, fitted = most_frequent, train[:MOST_NODES]
    if dataset.nodes.num_features:
        columns = _columns(dataset, np.concatenate([fitted, tried]))
        by_features = float((answers == _classified(columns, labels[fitted], num_classes)).mean())
    shares = _shares(adjacency, known, np.concatenate([fitted, tried]))
    by_neighbours = None
    if shares[len(fitted) :].any(1).mean() > REACHED:
        by_neighbours = float((answers == _classified(shares, labels[fitted], num_classes)).mean())
    by_labels = float((answers == (spread + 1e-9 * counts).argmax(1)).mean())
    return Accuracies(most_frequent, by_features, by_labels, by_neighbours)


def _classified(columns: NDArray[np.float64], labels: Ints, num_classes: int) -> Ints:
    """Return the classes that ridge regression to the labels of the first nodes gives to the others."""
    own, others = columns[: len(labels)], columns[len(labels) :]
    centre, scale = own.mean(0), own.std(0) + 1e-6
    own, others = (own - centre) / scale, (others - centre) / scale
    wanted = np.eye(num_classes)[labels]
    products = own.T @ own + RIDGE * len(own) * np.eye(own.shape[1])
    weights = np.linalg.solve(products, own.T @ (wanted - wanted.mean(0)))
    found: Ints = (others @ weights + wanted.mean(0)).argmax(1)
    return found


def _shares(adjacency: sparse.csr_array, known: NDArray[np.float32], nodes: Ints) -> NDArray[np.float64]:
    """Return the shares of classes among the labelled neighbours of nodes; a node's own label is not among them."""
    found: NDArray[np.float64] = np.asarray(adjacency[nodes] @ known, np.float64)
    found /= np.maximum(found.sum(1, keepdims=True), 1e-12)
    return found


def _columns(dataset: Dataset, nodes: Ints) -> NDArray[np.float64]:
    """Return the features of nodes, mixed into fewer columns where there are many."""
    assert dataset.features is not None
    rows, width = dataset.features[nodes], dataset.features.shape[1]
    if width > MOST_COLUMNS:
        rows = rows @ np.random.default_rng(1).standard_normal((width, MOST_COLUMNS), np.float32)
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)
