"""A trained model as the final test looks at it: where it is on another graph than its own, that one for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from gatas.graph import Graph
from gatas.inference.all_nodes import AllNodes
from gatas.inference.trained import TrainedModel
from gatas.training.final_test import final_graph, measured_on


@contextmanager
def nodes_in_final_test(nodes: AllNodes, split: str) -> Iterator[AllNodes]:
    """Give what is known about all nodes of the graph that a split is measured on at the end of training.

    With new nodes a model stays on the graph that has them.
    """
    trained = nodes.trained
    graph = final_graph(trained.dataset, trained.dataset.origin, split) if isinstance(trained.graph, Graph) else None
    if graph is None:
        yield nodes
        return
    with measured_on(graph, trained.model):
        yield AllNodes(TrainedModel(trained.model, trained.dataset, mode=trained.mode, draws=len(trained.draws)))
