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
from gatas import Dataset, Graph, NodeClassifier, OnDemand

NUM_FEATURES, NUM_EDGES = 32, 5
SETTINGS = {"num_steps": 2, "sample_size": 100, "num_heads": 4, "head_size": 16, "neighbour_size": 32}


def even(num_edges: int) -> Graph:
    """Ends drawn alike: ten edges a node, both directions counted."""
    return graph_of(np.random.default_rng(0).integers(num_edges // 10, size=(2, num_edges // 2)), num_edges // 10)


def hubs(num_edges: int) -> Graph:
    """Ends drawn by a power law: the first nodes have thousands of edges."""
    draws = np.random.default_rng(0).random((2, num_edges // 2))
    return graph_of((num_edges // 10 * draws**3).astype(np.int64), num_edges // 10)


def graph_of(ends: Any, num_nodes: int) -> Graph:
    return Graph.from_edges(
        *ends, num_nodes=num_nodes, undirected=True, node_names=[f"node-{node}" for node in range(num_nodes)]
    )


def model_of(graph: Graph) -> NodeClassifier:
    generator = np.random.default_rng(1)
    features = generator.normal(size=(graph.num_nodes, NUM_FEATURES)).astype(np.float32)
    labels, splits = np.arange(graph.num_nodes) % 4, {"train": np.arange(100)}
    dataset = Dataset("made", graph, features, labels, splits, "node classification", ("a", "b", "c", "d"))
    return NodeClassifier(dataset, transitions=OnDemand(graph, SETTINGS["num_steps"]), **SETTINGS).eval()


def seconds(work: Any, repeats: int) -> tuple[float, float, float]:
    """Median, least and most, after a first call that is not counted."""
    times = []
    for number in range(repeats + 1):
        start = perf_counter()
        work(number)
        times.append(perf_counter() - start)
    return statistics.median(times[1:]), min(times[1:]), max(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=10**6)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    report = Report("one-new-node", "What does one new node cost in a large graph?", ["torch", "numpy", "numba"])
    rows = []
    for name, make in (("even", even), ("hubs", hubs)):
        model = model_of(make(arguments.edges))
        graph, generator = model.graph, np.random.default_rng(2)
        largest = int(np.diff(graph.indptr).max())
        for what, work in (
            ("known node", lambda number, model=model: model.embed([f"node-{number * 37 + 11}"])),
            ("new node", lambda number, model=model, generator=generator: new_node(model, generator)),
        ):
            middle, least, most = (f"{1000 * found:,.1f}" for found in seconds(work, arguments.repeats))
            rows.append(
                [name, f"{graph.num_nodes:,}", f"{graph.num_edges:,}", f"{largest:,}", what, middle, f"{least} to {most}"]
            )
    report.table(["graph", "nodes", "edges", "most edges of a node", "asked for", "ms, median", "ms, least to most"], rows)
    report.add(
        f"C = {SETTINGS['num_steps']}, S = {SETTINGS['sample_size']}, rows on demand; a new node has {NUM_EDGES} edges, drawn"
    )
    report.add("alike among nodes, and 32 features. The first call of each is not counted: it makes what later ones share.")
    report.write()


def new_node(model: NodeClassifier, generator: Any) -> Any:
    ends = [f"node-{node}" for node in generator.choice(model.graph.num_nodes, NUM_EDGES, replace=False)]
    return model.embed_new(generator.normal(size=(1, NUM_FEATURES)), (["new"] * NUM_EDGES, ends), ids=["new"])


if __name__ == "__main__":
    main()
