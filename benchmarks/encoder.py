"""How long does a whole training step take: sampling, encoder, head, loss, gradients, optimiser? And where does it go?

    python -m benchmarks.encoder [--data-dir FOLDER] [--repeats 15]

Cora and PPI need their files (--data-dir or $GATAS_DATA).
"""

import argparse
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.report import Report, median_seconds
from gatas import Dataset, Encoder, NeighbourSampler, Transitions, load_dataset
from gatas.nn import NodeHead

SETTINGS: dict[str, dict[str, Any]] = {
    "cora": {
        "batch": 140,
        "sample": 100,
        "heads": 8,
        "relation": 10,
        "embedding": 10,
        "noise": 0.9,
        "dropout": 0.5,
        "hidden": (),
    },
    "ppi": {
        "batch": 100,
        "sample": 500,
        "heads": 10,
        "relation": 5,
        "embedding": 0,
        "noise": 0,
        "dropout": 0,
        "hidden": (256, 256),
    },
}


class Trainer:
    """One model with its optimiser and a way to draw batches."""

    def __init__(self, dataset: Dataset, settings: dict[str, Any], *, by_graph: bool) -> None:
        torch.manual_seed(0)
        self.dataset, self.settings, self.by_graph = dataset, settings, by_graph
        graph = dataset.graph
        self.features = torch.tensor(np.asarray(dataset.features))
        labels = torch.tensor(np.asarray(dataset.labels))
        self.labels = labels.float() if labels.ndim == 2 else labels
        self.loss = nn.BCEWithLogitsLoss() if labels.ndim == 2 else nn.CrossEntropyLoss()
        self.sampler = NeighbourSampler(Transitions.build(graph, 3), settings["sample"])
        self.encoder = Encoder(
            self.features.shape[1],
            graph.num_relations,
            num_nodes=graph.num_nodes,
            node_embedding_size=settings["embedding"],
            relation_embedding_size=settings["relation"],
            num_heads=settings["heads"],
            input_noise=settings["noise"],
            dropout=settings["dropout"],
        )
        self.head = NodeHead(self.encoder.output_size, len(dataset.names), settings["hidden"])
        self.parameters = list(nn.ModuleList([self.sampler, self.encoder, self.head]).parameters())
        self.optimiser = torch.optim.NAdam(self.parameters, lr=0.001)
        self.generator = np.random.default_rng(0)

    def batch(self) -> torch.Tensor:
        train = self.dataset.splits["train"]
        if self.by_graph:
            graph_id = np.asarray(self.dataset.graph.graph_id)[train]
            train = train[graph_id == self.generator.choice(np.unique(graph_id))]
        chosen = self.generator.choice(train, min(self.settings["batch"], len(train)), replace=False)
        return torch.from_numpy(np.sort(chosen))

    def step(self, clock: dict[str, float] | None = None) -> None:
        clock = {} if clock is None else clock
        targets = self.batch()
        started = perf_counter()
        neighbourhood = self.sampler(targets)
        clock["sample"], started = perf_counter() - started, perf_counter()
        logits = self.head(self.encoder(targets, neighbourhood, self.features))
        loss = self.loss(logits, self.labels[targets])
        clock["forward"], started = perf_counter() - started, perf_counter()
        self.optimiser.zero_grad()
        loss.backward()
        clock["backward"], started = perf_counter() - started, perf_counter()
        torch.nn.utils.clip_grad_norm_(self.parameters, 5.0)
        self.optimiser.step()
        clock["optimiser"] = perf_counter() - started


def main() -> None:
    arguments = parse()
    report = Report("encoder", "A whole training step on the CPU, at the paper's settings", ("torch", "numba", "numpy"))
    report.add(f"- threads: {torch.get_num_threads()}")
    rows = []
    for name, by_graph in (("cora", False), ("ppi", False), ("ppi", True)):
        dataset, settings = load_dataset(name, arguments.data_dir), SETTINGS[name]
        trainer = Trainer(dataset, settings, by_graph=by_graph)
        for _ in range(3):
            trainer.step()
        seconds = median_seconds(partial(trainer.step), arguments.repeats)
        clocks: list[dict[str, float]] = []
        for _ in range(arguments.repeats):
            clocks.append({})
            trainer.step(clocks[-1])
        stages = [f"{1e3 * float(np.median([clock[stage] for clock in clocks])):.1f}" for stage in clocks[0]]
        label = f"{name}, B={settings['batch']}, S={settings['sample']}" + (", a batch from one graph" if by_graph else "")
        rows.append([label, f"{1e3 * seconds:.1f}", *stages])
    report.table(["data", "step, ms", "sample", "forward", "backward", "clip and optimiser"], rows)
    report.add(f"Medians of {arguments.repeats} steps after three to warm up.")
    report.write()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--repeats", type=int, default=15)
    return parser.parse_args()


if __name__ == "__main__":
    main()
