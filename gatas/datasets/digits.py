"""Embedded: scikit-learn's 1,797 handwritten digits as a nearest-neighbour graph, 10 labels per class."""

from importlib.util import find_spec
from pathlib import Path

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
    pixels, labels = read_images()
    nearest = _nearest(pixels)
    graph = Graph.from_edges(
        np.repeat(np.arange(len(labels)), NUM_NEIGHBOURS),
        nearest.ravel(),
        num_nodes=len(labels),
        inverse=True,
        edge_type_names=["alike"],
    )
    features = (pixels / 16.0).astype(np.float32)
    return Dataset.for_nodes(graph, labels, _splits(labels), class_names=tuple("0123456789"), features=features, name="digits")


def read_images() -> tuple[Ints, Ints]:
    """Read the 8 × 8 pixels (n, 64), each 0 to 16, and the digits (n,) from the file that scikit-learn is installed with.

    Its own `load_digits` reads the same file, after a second for importing all of scikit-learn.
    """
    package = find_spec("sklearn")
    assert package is not None and package.submodule_search_locations is not None  # a dependency of ours
    path = Path(package.submodule_search_locations[0], "datasets", "data", "digits.csv.gz")
    rows = np.loadtxt(path, delimiter=",", dtype=np.int64)
    return rows[:, :-1], rows[:, -1]


def _nearest(pixels: Ints) -> Ints:
    """Return (n, 7) the most alike, of equal ones the first. Distances are whole numbers: the same on every machine."""
    exact = pixels.astype(np.float32)  # whole numbers far below 2²⁴, which matrix products of floats are quicker with
    squares = np.square(exact).sum(1)
    distance = (squares[:, None] + squares - 2 * exact @ exact.T).astype(np.int16)  # at most 64 · 16²
    np.fill_diagonal(distance, np.iinfo(np.int16).max)
    return np.argsort(distance, axis=1, kind="stable")[:, :NUM_NEIGHBOURS]


def _splits(labels: Ints) -> dict[str, Ints]:
    order = np.random.default_rng(SEED).permutation(len(labels))
    train = np.concatenate([order[labels[order] == digit][:LABELS_PER_CLASS] for digit in range(10)])
    rest = order[~np.isin(order, train)]
    return {"train": np.sort(train), "valid": np.sort(rest[:NUM_VALID]), "test": np.sort(rest[NUM_VALID:])}
