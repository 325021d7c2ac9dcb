"""Embedded: scikit-learn's 1,797 handwritten digits as a nearest-neighbour graph, 10 labels per class."""

import numpy as np

from gatas.datasets.dataset import Dataset
from gatas.graph import Graph
from gatas.graph.inputs import Ints

NUM_NEIGHBOURS = 7
LABELS_PER_CLASS = 10
NUM_VALID = 300
SEED = 0


def load() -> Dataset:
    """Load images with edges to the 7 most alike (`alike`), and back (`alike⁻¹`); 100 are for training, 300 for validation."""
    from sklearn.datasets import load_digits  # a second to import, which every command would wait for

    images = load_digits()
    labels = images.target.astype(np.int64)
    nearest = _nearest(images.data.astype(np.int64))
    graph = Graph.from_edges(
        np.repeat(np.arange(len(labels)), NUM_NEIGHBOURS),
        nearest.ravel(),
        num_nodes=len(labels),
        inverse=True,
        edge_type_names=["alike"],
    )
    names = tuple(str(digit) for digit in images.target_names)
    return Dataset.for_nodes(graph, labels, _splits(labels), class_names=names, features=images.data / 16.0, name="digits")


def _nearest(pixels: Ints) -> Ints:
    """Return (n, 7) the most alike, of equal ones the first. Distances are whole numbers: the same on every machine."""
    squares = np.square(pixels).sum(1)
    distance = squares[:, None] + squares - 2 * pixels @ pixels.T
    np.fill_diagonal(distance, distance.max() + 1)
    return np.argsort(distance, axis=1, kind="stable")[:, :NUM_NEIGHBOURS]


def _splits(labels: Ints) -> dict[str, Ints]:
    order = np.random.default_rng(SEED).permutation(len(labels))
    train = np.concatenate([order[labels[order] == digit][:LABELS_PER_CLASS] for digit in range(10)])
    rest = order[~np.isin(order, train)]
    return {"train": np.sort(train), "valid": np.sort(rest[:NUM_VALID]), "test": np.sort(rest[NUM_VALID:])}
