"""The graph of the final test: that of the data set, or one with links of validation as edges (`data.validation_edges`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gatas.datasets import Dataset
from gatas.datasets.config import DataConfig
from gatas.graph import Graph
from gatas.tasks import LinkPredictor

VALIDATION_EDGES = "validation_edges"
"""The key by which metrics say that they were measured with links of validation as edges."""


def final_graph(dataset: Dataset, data: DataConfig | None, split: str = "test") -> Graph | None:
    """Return the graph with links of validation as edges, where a split is to be measured on it; else none."""
    if split != "test" or not getattr(data, VALIDATION_EDGES, False) or "valid" not in dataset.splits:
        return None
    return dataset.with_validation_edges().graph


@contextmanager
def measured_on(graph: Graph | None, model: Any) -> Iterator[dict[str, Any]]:
    """Have a model look at another graph for a while, if one is given; give what its metrics then have to say."""
    if graph is None or not isinstance(model, LinkPredictor):
        yield {}
        return
    with model.looking_at(graph):
        yield {VALIDATION_EDGES: True}
