"""What all rows of a graph's transitions share, made once and kept in a folder: processes map it and compute their rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.graph import Graph
from gatas.graph.storage import Store
from gatas.transitions.build import Builder, adjacency_of
from gatas.transitions.cost import entry_bytes
from gatas.transitions.table import OnDemand, Setting, stored_walks

ADJACENCY = ("run_indptr", "run_type", "run_start", "scale")


class Prepared(OnDemand):
    """`OnDemand` from the arrays and the parameters that `prepared` gave, in a store."""

    def __init__(self, graph: Graph, store: Store, num_threads: int | None = None) -> None:
        walks = stored_walks(store)
        self.setting = Setting.made(walks, graph, store.parameter("graph_fingerprint"))
        adjacency = adjacency_of(graph, walks, {name: store.array(name) for name in ADJACENCY})
        self.builder = Builder(graph, walks, num_threads, adjacency)
        self.walks = list(store.array("walks").T)
        self.entry_bytes = entry_bytes(graph.num_relations, walks.num_steps)


def prepared(source: OnDemand) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and parameters to keep in a store."""
    setting, adjacency = source.setting, source.builder.adjacency
    walks = np.empty((setting.num_nodes, len(source.walks)), np.float32)
    for step, of_step in enumerate(source.walks):
        walks[:, step] = of_step
    arrays = {name: getattr(adjacency, name) for name in ADJACENCY} | {"walks": walks}
    parameters = {
        "num_steps": setting.num_steps,
        "kind": setting.kind,
        "max_candidates": setting.max_candidates,
        "max_degree": setting.max_degree,
        "revisits": setting.revisits,
        "graph_fingerprint": setting.graph_fingerprint,
    }
    return arrays, parameters
