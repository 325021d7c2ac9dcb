"""The facts that a model of a knowledge graph learns from: (source, type, target), each once and as it is directed."""

import numpy as np
from numpy.typing import NDArray

from gatas.datasets import Dataset
from gatas.experiments.baselines.links.edges import type_names

INVERSE = "⁻¹"


def triples_of(dataset: Dataset) -> NDArray[np.int64]:
    """(n, 3) sources, types and targets of the graph's edges and of training links; inverse types are left out.

    Types are numbered as the data set's `names` are, and those that are never asked for come after them.
    """
    graph, train, names = dataset.graph, dataset.splits["train"], type_names(dataset)
    number = np.array([-1 if name.endswith(INVERSE) else names.index(name) for name in graph.edge_type_names], np.int64)
    kind = number[graph.edge_type]
    listed, links = kind >= 0, train.label == 1
    columns = (
        np.concatenate([graph.source[listed], train.source[links]]),
        np.concatenate([kind[listed], train.edge_type[links]]),
        np.concatenate([graph.neighbour[listed], train.target[links]]),
    )
    return np.unique(np.stack(columns, axis=1).astype(np.int64), axis=0)
