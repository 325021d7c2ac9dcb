"""Small typed data sets for peers."""

import numpy as np

from gatas.datasets import Dataset
from gatas.graph import Graph
from tests.tasks.toys import thirds

NUM_AUTHORS, NUM_PAPERS = 30, 12


def authors_and_papers(features="authors"):
    """Authors of two camps write papers of their own camp; only authors have features, or nobody has."""
    generator = np.random.default_rng(0)
    camp = np.arange(NUM_AUTHORS) % 2
    written = NUM_AUTHORS + np.stack([2 * generator.integers(0, NUM_PAPERS // 2, NUM_AUTHORS) + camp for _ in range(2)], 1)
    source, target = np.repeat(np.arange(NUM_AUTHORS), 2), written.reshape(-1)
    kind = np.tile([0, 1], NUM_AUTHORS)
    num_nodes = NUM_AUTHORS + NUM_PAPERS
    names = ["wrote", "reviewed"]
    graph = Graph.from_edges(source, target, kind, num_nodes=num_nodes, inverse=True, edge_type_names=names)
    labels = np.concatenate([camp, np.full(NUM_PAPERS, -1)])
    matrix = np.zeros((num_nodes, 4), np.float32)
    matrix[:NUM_AUTHORS] = generator.normal(size=(NUM_AUTHORS, 4))
    matrix[:NUM_AUTHORS, 0] += 2 * camp
    node_type = (np.arange(num_nodes) >= NUM_AUTHORS).astype(int)
    return Dataset.for_nodes(
        graph, labels, thirds(NUM_AUTHORS), features=matrix if features == "authors" else None, node_type=node_type,
        node_type_names=("author", "paper"), name="authors",
    )  # fmt: skip
