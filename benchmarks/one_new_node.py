"""What does it cost to represent one node that the model has never seen, in a graph with a million edges?

A new node with five edges, asked for as a server is: alone, again and again, with other neighbours each time. Beside it, a node
that the model knows. The graph has ids that are text; once all nodes have about as many edges, once there are hubs.
"""

import argparse
import statistics
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.report import Report
from gatas import Dataset, Graph, NodeClassifier, OnDemand, Predictor
from gatas.tasks.settings import ModelSettings

NUM_FEATURES, NUM_EDGES = 32, 5
SETTINGS: ModelSettings = {"sample_size": 100, "num_heads": 4, "head_size": 16, "neighbour_size": 32}


def even(num_edges: int) -> Graph:
    """Ends drawn alike: ten edges a node, both directions counted."""
    return graph_of(np.random.default_rng(0).integers(num_edges // 10, size=(2, num_edges // 2)), num_edges // 10)


def hubs(num_edges: int) -> Graph:
    """Ends drawn by a power law: the first nodes have thousands of edges."""
    draws = np.random.default_rng(0).random((2, num_edges // 2))
    return graph_of((num_edges // 10 * draws**3).astype(np.int64), num_edges // 10)


def graph_of(ends: Any, num_nodes: int) -> Graph:
    return Graph.from_edges(*ends, num_nodes=num_nodes, undirected=True, node_ids=[f"node-{node}" for node in range(num_nodes)])


def predictor_of(graph: Graph, num_steps: int) -> Predictor:
    generator = np.random.default_rng(1)
    features = generator.normal(size=(graph.num_nodes, NUM_FEATURES)).astype(np.float32)
    labels, splits = np.arange(graph.num_nodes) % 4, {"train": np.arange(100)}
    dataset = Dataset.for_nodes(graph, labels, splits, class_names=("a", "b", "c", "d"), features=features, name="made")
    settings: ModelSettings = {**SETTINGS, "num_steps": num_steps}
    model = NodeClassifier(dataset, transitions=OnDemand(graph, num_steps), **settings)
    return Predictor(model, dataset)


def seconds(work: Any, repeats: int) -> tuple[float, float, float]:
    """Median, least and most, after a first call that is not counted."""
    times = []
    for number in range(repeats + 1):
        start = perf_counter()
        work(number)
        times.append(perf_counter() - start)
    return statistics.median(times[1:]), min(times[1:]), max(times[1:])


def measured(predictor: Predictor, repeats: int) -> list[list[str]]:
    generator = np.random.default_rng(2)
    questions = {
        "known node": lambda number: predictor.embed([f"node-{number * 37 + 11}"]),
        "new node": lambda number: new_node(predictor, generator),
    }
    found = {what: [f"{1000 * time:,.1f}" for time in seconds(work, repeats)] for what, work in questions.items()}
    return [[what, middle, f"{least} to {most}"] for what, (middle, least, most) in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=10**6)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    report = Report("one-new-node", "What does one new node cost in a large graph?", ["torch", "numpy", "numba"])
    rows = []
    for name, make in (("even", even), ("hubs", hubs)):
        graph = make(arguments.edges)
        sizes = [f"{count:,}" for count in (graph.num_nodes, graph.num_edges, int(np.diff(graph.indptr).max()))]
        for num_steps in (2, 3):
            rows += [[name, *sizes, num_steps, *cells] for cells in measured(predictor_of(graph, num_steps), arguments.repeats)]
    report.table(["graph", "nodes", "edges", "most edges of a node", "C", "asked for", "ms, median", "ms, least to most"], rows)
    report.add(
        f"S = {SETTINGS['sample_size']}, rows on demand; a new node has {NUM_EDGES} edges and {NUM_FEATURES} features. The"
    )
    report.add("first call of each is not counted: it makes what later ones share.")
    report.write()


def new_node(predictor: Predictor, generator: Any) -> Any:
    ends = [f"node-{node}" for node in generator.choice(predictor.graph.num_nodes, NUM_EDGES, replace=False)]
    return predictor.embed_new(generator.normal(size=(1, NUM_FEATURES)), (["new"] * NUM_EDGES, ends), ids=["new"])


if __name__ == "__main__":
    main()
