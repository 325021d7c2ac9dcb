"""What do the further ways to spread labels add where edges have several types? On validation data, halved.

    python -m benchmarks.spreading GRAPH… [--splits split20,split60] [--seeds 1] --log results/choose-spreading.jsonl

A graph is a YAML file, the name of a data set, or a folder with edges.parquet and nodes.parquet. Settings are those that follow
from the data; test splits are taken away before anything is trained. Weights of spread labels are fitted to one half of the
validation nodes, and accuracies are of the other half: means over both ways of ten random halves.
"""

import argparse
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.nodes import named
from gatas.datasets import Dataset
from gatas.experiments.comparison_data import loaded
from gatas.experiments.recording import commit, hardware
from gatas.tasks import NodeClassifier
from gatas.tasks.config import checked
from gatas.tasks.label_spreading import STRENGTHS, fit_spreading, spread_labels, weighted_evidence
from gatas.training.config import Config, NamedData
from gatas.training.loop import chosen_device, fit_models, make_model

HALVES = 10
NODES_AT_ONCE = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--splits", default="")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for graph in args.graphs:
            splits = args.splits.split(",") if args.splits else ()
            for _, whole, config in loaded(named(graph, Path(folder)), args.data_dir, splits):
                for seed in range(args.seeds):
                    line = {"data": whole.name, "seed": seed, **measured(whole, config, seed)}
                    print(json.dumps(line), flush=True)
                    with args.log.open("a", encoding="utf-8") as log:
                        log.write(json.dumps(line) + "\n")


def measured(whole: Dataset, config: Config | None, seed: int) -> dict[str, Any]:
    """Train what follows from the data, and compare what spread labels add to it."""
    dataset = whole.with_splits({split: whole.splits[split] for split in ("train", "valid")})
    given = (config or checked(Config, {"data": NamedData(name=dataset.name)})).for_data(dataset)
    device = chosen_device("cpu")
    (run,) = fit_models([make_model(dataset, given, seed)], dataset, given, [seed], device=str(device))
    nodes = np.sort(np.asarray(dataset.splits["valid"]))
    labels = torch.from_numpy(np.asarray(dataset.node_targets.labels)[nodes].copy())
    assert isinstance(run.model, NodeClassifier)
    logits, spread = logits_of(run.model, nodes), spread_labels(dataset)[:, nodes]
    return {
        "nothing": halved(logits, spread[:0], labels),
        "over the whole graph": halved(logits, spread[: len(STRENGTHS)], labels),
        "in all ways": halved(logits, spread, labels),
        "ways": len(spread),
        "nodes": len(nodes),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(device),
        "commit": commit(),
    }


@torch.no_grad()
def logits_of(model: NodeClassifier, nodes: np.ndarray[Any, Any]) -> Tensor:
    """Logits of nodes without what spread labels add, of one draw."""
    model.eval().spreading_weights = None
    parts = torch.from_numpy(nodes).split(NODES_AT_ONCE)
    return torch.cat([model(part, draw=torch.tensor(0)) for part in parts])


def halved(logits: Tensor, spread: Tensor, labels: Tensor) -> float:
    """Accuracy in percent on one half of the nodes with weights that are fitted to the other."""
    found = []
    for number in range(HALVES):
        order = torch.from_numpy(np.random.default_rng(number).permutation(len(labels)))
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        for fitted, tried in ((first, second), (second, first)):
            weights = fit_spreading(logits[fitted], spread[:, fitted], labels[fitted])
            sums = logits[tried] + weighted_evidence(weights, spread[:, tried])
            found.append(float((sums.argmax(1) == labels[tried]).float().mean()))
    return round(100 * float(np.mean(found)), 2)


if __name__ == "__main__":
    main()
