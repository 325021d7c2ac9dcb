"""What does feature noise cost over sparse features? 34,000 nodes with 8,400 words, rows made dense or not.

python -m benchmarks.sparse_features
"""

import json
import subprocess
import sys
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse

import gatas
from benchmarks.report import Report, peak_memory
from gatas.datasets import Dataset
from gatas.nn.inputs import Inputs

NODES, WORDS, ENTRIES, EDGES, CLASSES = 34_000, 8_400, 2_000_000, 245_000, 5
OWN = 300
"""Words that each class has for itself, among which three of ten are."""
WAYS = {"rows made dense": "dense", "rows kept sparse": "sparse", "without noise": "none"}


def main() -> None:
    report = Report("sparse-features", "What does feature noise cost over sparse features?", ("torch", "numba", "scipy"))
    rows = []
    for share in (0.01, 0.5):
        for name, way in WAYS.items():
            command = [sys.executable, "-m", "benchmarks.sparse_features", way, str(share)]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
            rows.append([f"{share:.0%}", found["noise"], name, f"{found['seconds']:.1f}", f"{found['gib']:.2f}"])
    report.add(f"\n{NODES:,} nodes, {WORDS:,} words, {ENTRIES:,} entries; default settings, one epoch, with its evaluation.")
    report.table(("labelled", "noise", "way", "CPU seconds of an epoch", "peak memory in GiB"), rows)
    report.write()


def measured(way: str, share: float) -> dict[str, float]:
    """One epoch in this process, of a second training: kernels are compiled by then."""
    settings: dict[str, Any] = {"input_noise": 0.0} if way == "none" else {}
    dataset = texts(share)
    if way == "dense":
        Inputs._fused_sparse = lambda *_: None  # type: ignore[method-assign]
    warm = gatas.NodeClassifier(dataset, **settings)
    gatas.fit(warm, dataset, epochs=1)
    model = gatas.NodeClassifier(dataset, transitions=warm.transitions, **settings)
    start = process_time()
    gatas.fit(model, dataset, epochs=1)
    seconds = process_time() - start
    return {"seconds": seconds, "gib": peak_memory() / 2**30, "noise": model.config.input_noise}


def texts(share: float) -> Dataset:
    """Nodes of five classes, whose words and neighbours say which; a share of them is labelled."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, CLASSES, NODES)
    node = np.repeat(np.arange(NODES), draw.poisson(ENTRIES / NODES, NODES))
    of_class = labels[node] * OWN + draw.integers(0, OWN, len(node))
    of_all = (WORDS * draw.random(len(node)) ** 2).astype(np.int64)
    word = np.where(draw.random(len(node)) < 0.3, of_class, of_all)
    features = sparse.csr_array((np.ones(len(node), np.float32), (node, word)), shape=(NODES, WORDS))
    features.sum_duplicates()
    source, members = draw.integers(0, NODES, EDGES), [np.flatnonzero(labels == label) for label in range(CLASSES)]
    alike = np.array([draw.choice(members[label]) for label in labels[source]])
    target = np.where(draw.random(EDGES) < 0.8, alike, draw.integers(0, NODES, EDGES))
    graph = gatas.Graph.from_edges(source, target, num_nodes=NODES, undirected=True)
    order, count = draw.permutation(NODES), int(share * NODES)
    splits = {"train": order[:count], "valid": order[count : count + 1000], "test": order[count + 1000 : count + 2000]}
    return Dataset.for_nodes(graph, labels, splits, features=features, name="texts")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measured(sys.argv[1], float(sys.argv[2]))))
    else:
        main()
