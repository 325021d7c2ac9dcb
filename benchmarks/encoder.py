"""How long does a whole training step take: sampling, encoder, head, loss, gradients, optimiser? And where does it go?

    python -m benchmarks.encoder [--data-dir FOLDER] [--device cuda] [--repeats 15]

Cora and PPI need their files (--data-dir or $GATAS_DATA). On a CPU also: 1,000 targets embedded from stored transitions of
graphs of 10⁴, 10⁵ and 10⁶ nodes. On a GPU the step is captured once and replayed.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.report import Report, gpu_milliseconds, median_seconds
from gatas import Dataset, Encoder, Graph, NeighbourSampler, Transitions, load_dataset
from gatas.nn import NodeHead
from gatas.training import NAdam

SETTINGS: dict[str, dict[str, Any]] = {
    "cora": {"sample": 100, "heads": 8, "relation": 10, "embedding": 10, "noise": 0.9, "dropout": 0.5, "hidden": ()},
    "ppi": {"sample": 500, "heads": 10, "relation": 5, "embedding": 0, "noise": 0, "dropout": 0, "hidden": (256, 256)},
}
STAGES = ("sample", "forward", "backward", "optimiser")


class Trainer:
    """One model with its optimiser and a way to draw batches."""

    def __init__(
        self, dataset: Dataset, table: Transitions, name: str, batch_size: int, device: str, *, by_graph: bool
    ) -> None:
        torch.manual_seed(0)
        settings, graph = SETTINGS[name], dataset.graph
        self.dataset, self.batch_size, self.device, self.by_graph = dataset, batch_size, device, by_graph
        self.features = torch.tensor(np.asarray(dataset.features), device=device)
        labels = torch.tensor(np.asarray(dataset.node_targets.labels), device=device)
        self.labels = labels.float() if labels.ndim == 2 else labels
        self.loss = nn.BCEWithLogitsLoss() if labels.ndim == 2 else nn.CrossEntropyLoss()
        self.sampler = NeighbourSampler(table, settings["sample"]).to(device)
        self.encoder = Encoder(
            self.features.shape[1],
            graph.num_relations,
            num_nodes=graph.num_nodes,
            node_embedding_size=settings["embedding"],
            relation_embedding_size=settings["relation"],
            num_heads=settings["heads"],
            input_noise=settings["noise"],
            dropout=settings["dropout"],
        ).to(device)
        self.head = NodeHead(self.encoder.output_size, len(dataset.names), settings["hidden"]).to(device)
        self.optimiser = NAdam(nn.ModuleList([self.sampler, self.encoder, self.head]).parameters(), 0.001, max_norm=5.0)
        self.generator = np.random.default_rng(0)
        self.sizes = np.bincount(np.asarray(dataset.nodes.graph_id)) if by_graph else None
        self.window: tuple[torch.Tensor, int] | None = None
        self.next_batch()

    def next_batch(self) -> None:
        train = self.dataset.splits["train"]
        if self.sizes is not None:
            graph_id = np.asarray(self.dataset.nodes.graph_id)
            chosen = self.generator.choice(np.unique(graph_id[train]))
            train = train[graph_id[train] == chosen]
            self.window = (torch.tensor(int(self.sizes[:chosen].sum()), device=self.device), int(self.sizes.max()))
        targets = np.sort(self.generator.choice(train, min(self.batch_size, len(train)), replace=False))
        self.targets = torch.from_numpy(targets).to(self.device)

    def until(self, last: str, clock: dict[str, float] | None = None) -> None:
        """A step up to one of its stages."""
        clock, started = {} if clock is None else clock, perf_counter()
        neighbourhood = self.sampler(self.targets)
        clock["sample"], started = perf_counter() - started, perf_counter()
        if last == "sample":
            return
        representations = self.encoder(self.targets, neighbourhood, self.features, window=self.window)
        loss = self.loss(self.head(representations), self.labels[self.targets])
        clock["forward"], started = perf_counter() - started, perf_counter()
        if last == "forward":
            return
        self.optimiser.zero_grad()
        loss.backward()
        clock["backward"], started = perf_counter() - started, perf_counter()
        if last == "backward":
            return
        self.optimiser.step()
        clock["optimiser"] = perf_counter() - started

    def step(self, clock: dict[str, float] | None = None) -> None:
        self.next_batch()
        self.until(STAGES[-1], clock)


def steps_on_cpu(report: Report, arguments: argparse.Namespace) -> None:
    rows = []
    for name, batch_size, by_graph in (("cora", 140, False), ("ppi", 100, False), ("ppi", 100, True)):
        dataset = load_dataset(name, arguments.data_dir)
        trainer = Trainer(dataset, Transitions.build(dataset.graph, 3), name, batch_size, "cpu", by_graph=by_graph)
        for _ in range(5):
            trainer.step()
        seconds = median_seconds(partial(trainer.step), arguments.repeats)
        clocks: list[dict[str, float]] = [{} for _ in range(arguments.repeats)]
        for clock in clocks:
            trainer.step(clock)
        stages = [f"{1e3 * statistics.median(clock[stage] for clock in clocks):.1f}" for stage in STAGES]
        rows.append([described(name, batch_size, by_graph), f"{1e3 * seconds:.1f}", *stages])
    report.table(["data", "step, ms", "sample", "forward", "backward", "clip and optimiser"], rows)
    report.add(f"Medians of {arguments.repeats} steps after five to warm up, each with a batch of its own.")


def steps_on_gpu(report: Report, arguments: argparse.Namespace) -> None:
    """Each stage's time is what it adds to a graph that ends with it."""
    torch.set_float32_matmul_precision("high")
    dataset = load_dataset("ppi", arguments.data_dir)
    table, rows = Transitions.build(dataset.graph, 3), []
    for batch_size in (100, 500):
        trainer = Trainer(dataset, table, "ppi", batch_size, "cuda", by_graph=True)
        ends = [1e3 * gpu_milliseconds(partial(trainer.until, stage), arguments.repeats) for stage in STAGES]
        stages = [f"{ends[0]:.0f}", *(f"{later - sooner:.0f}" for sooner, later in pairwise(ends))]
        epoch = -(-len(dataset.splits["train"]) // batch_size)
        label = described("ppi", batch_size, True)
        rows.append([label, f"{ends[-1]:.0f}", *stages, f"{ends[-1] * epoch / 1e6:.3f}"])
    report.table(["data", "step, µs", "sample", "forward", "backward", "clip and optimiser", "epoch, s"], rows)
    report.add(
        f"Replays of one captured step, medians of {arguments.repeats}; an epoch is as many replays as it has batches. "
        "TF32 on the tensor cores, keys and values stored in float16, everything else in float32."
    )


def described(name: str, batch_size: int, by_graph: bool) -> str:
    return f"{name}, B={batch_size}, S={SETTINGS[name]['sample']}" + (", a batch from one graph" if by_graph else "")


def scaling(report: Report, repeats: int) -> None:
    """1,000 targets, embedded from stored transitions of ever larger graphs with the same degree."""
    timed: dict[int, Callable[[], Any]] = {}
    with TemporaryDirectory() as folder:
        for num_nodes in (10_000, 100_000, 1_000_000):
            generator = np.random.default_rng(0)
            graph = Graph.from_edges(
                *generator.integers(num_nodes, size=(2, 5 * num_nodes)), num_nodes=num_nodes, undirected=True
            )
            targets = np.sort(generator.choice(num_nodes, 1_000, replace=False))
            store = Path(folder) / str(num_nodes)
            Transitions.build(graph, 2, targets=targets).save(store)
            sampler = NeighbourSampler(Transitions.open(store), 50)
            encoder = Encoder(32, graph.num_relations, num_steps=2).eval()
            timed[num_nodes] = partial(embed, sampler, encoder, torch.from_numpy(targets), torch.randn(num_nodes, 32))
            timed[num_nodes]()
        seconds: dict[int, list[float]] = {num_nodes: [] for num_nodes in timed}
        for _ in range(repeats):  # in turn, so that all meet the same noise
            for num_nodes, work in timed.items():
                started = perf_counter()
                work()
                seconds[num_nodes].append(perf_counter() - started)
    medians = {num_nodes: statistics.median(times) for num_nodes, times in seconds.items()}
    rows = [[f"{n:,}", f"{1e3 * m:.1f}", f"{m / medians[10_000]:.2f}×"] for n, m in medians.items()]
    report.table(["nodes", "1,000 targets, ms", "to the smallest"], rows)
    report.add(
        f"Ten edges a node, C=2, S=50, 32 features, evaluation, 100 targets a batch; medians of {repeats}, graphs in turn."
    )


@torch.no_grad()
def embed(sampler: NeighbourSampler, encoder: Encoder, targets: torch.Tensor, features: torch.Tensor) -> None:
    for batch in targets.split(100):
        encoder(batch, sampler(batch, draw=0), features)


def main() -> None:
    arguments = parse()
    if arguments.device == "cuda":
        report = Report("encoder-gpu", "A whole training step on a GPU, at the paper's settings", ("torch", "triton", "numpy"))
        steps_on_gpu(report, arguments)
    else:
        report = Report("encoder", "A whole training step on the CPU, at the paper's settings", ("torch", "numba", "numpy"))
        report.add(f"- threads: {torch.get_num_threads()}")
        steps_on_cpu(report, arguments)
        scaling(report, arguments.repeats)
    report.write()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeats", type=int, default=15)
    return parser.parse_args()


if __name__ == "__main__":
    main()
