"""One cell of `benchmarks.peers`: what 1,000 targets cost one model on one graph, measured in another process."""

import ctypes
import gc
import resource
import statistics
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.report import data_memory, resident_memory
from benchmarks.sampled_sage import SampledSAGE
from gatas import Dataset, Graph, NodeClassifier, OnDemand, Transitions
from gatas.errors import TooLargeError
from gatas.experiments.baselines.gat import GAT
from gatas.experiments.measuring import NUM_TARGETS, PeakMemory
from gatas.sampling.table import stored_table
from gatas.tasks import NodeTask
from gatas.tasks.batches import cut, fill
from gatas.tasks.learnable import Learnable
from gatas.training.config import TrainingConfig
from gatas.training.learner import Learner

Cell = dict[str, Any]

SETTINGS: dict[str, Any] = {
    "batch_size": 500, "sample_size": 100, "num_steps": 2, "max_candidates": 256, "fan_outs": [25, 10], "num_heads": 8,
    "head_size": 8, "feature_size": 64, "num_classes": 10, "dropout": 0.5, "edges_per_node": 10,
}  # fmt: skip
FEWEST_EDGES = 10_000
"""Of a graph that has 1,000 targets."""
PASSES, ENOUGH = 5, 5.0
"""So many measurements of 1,000 targets, or fewer once these seconds are spent: one, if it alone takes longer."""


def hubs(num_edges: int, seed: int = 0) -> Dataset:
    """A graph whose edges have one end drawn with density ∝ x^-0.6, so there are hubs; features and classes are noise."""
    generator, num_nodes = np.random.default_rng(seed), num_edges // SETTINGS["edges_per_node"]
    popular = (num_nodes * generator.random(num_edges // 2) ** 2.5).astype(np.int64)
    others = generator.integers(num_nodes, size=num_edges // 2)
    proper = popular != others
    graph = Graph.from_edges(others[proper], popular[proper], num_nodes=num_nodes, undirected=True)
    features = generator.standard_normal((num_nodes, SETTINGS["feature_size"]), dtype=np.float32)
    labels = generator.integers(SETTINGS["num_classes"], size=num_nodes)
    splits = {"test": np.sort(generator.choice(num_nodes, NUM_TARGETS, replace=False))}
    names = tuple(f"class {number}" for number in range(SETTINGS["num_classes"]))
    return Dataset.for_nodes(graph, labels, splits, class_names=names, features=features, name="hubs")


def make_model(name: str, dataset: Dataset, device: torch.device) -> Learnable:
    dropout, steps, keep = SETTINGS["dropout"], SETTINGS["num_steps"], SETTINGS["max_candidates"]
    heads, size = SETTINGS["num_heads"], SETTINGS["head_size"]
    if name == "gat":
        return GAT(dataset, hidden_sizes=(size,), num_heads=(heads, 1), dropout=dropout)
    if name == "sage":
        return SampledSAGE(dataset, hidden_size=heads * size, fan_outs=tuple(SETTINGS["fan_outs"]), dropout=dropout)
    widths = {} if name == "wide" else {"hidden_size": heads * size, "neighbour_size": size, "head_size": size}
    settings = {"num_steps": steps, "sample_size": SETTINGS["sample_size"], "num_heads": heads, "dropout": dropout, **widths}
    if name == "stored":
        table = Transitions.build(dataset.graph, steps, max_candidates=keep)
        stored_table(table, device)
        return NodeClassifier(dataset, transitions=table, **settings)
    return NodeClassifier(dataset, transitions=OnDemand(dataset.graph, steps, max_candidates=keep), **settings)


def measure(name: str, num_edges: int, device: torch.device, passes: int = PASSES) -> Cell:
    """Seconds and bytes of one cell."""
    before = held(device)
    dataset = hubs(num_edges)
    degrees = np.diff(dataset.graph.indptr)
    cell: Cell = {"edges": dataset.graph.num_edges, "nodes": len(degrees), "largest_degree": int(degrees.max())}
    started = perf_counter()
    model = make_model(name, dataset, device)
    cell["making_seconds"] = perf_counter() - started
    task, config = NodeTask(dataset, SETTINGS["batch_size"]), TrainingConfig(batch_size=SETTINGS["batch_size"])
    learner = Learner.of([model], task, config, device)
    del dataset
    cell["held_bytes"] = held(device) - before
    generator = np.random.default_rng(1)

    def train(first: int = 0) -> None:
        targets = generator.choice(len(degrees), NUM_TARGETS, replace=False)
        learner.train(fill(cut(targets, config.batch_of(NUM_TARGETS)), task.columns), first)

    def embed() -> None:
        learner.predict("test")

    last = NUM_TARGETS // config.batch_of(NUM_TARGETS) - 1
    for what, work, warm_up in (("train", train, lambda: train(last)), ("embed", embed, embed)):
        seconds, peak = timed(work, warm_up, device, passes)
        cell |= {f"{what}_seconds": seconds, f"{what}_bytes": peak}
    return cell


def timed(work: Callable[[], Any], warm_up: Callable[[], Any], device: torch.device, passes: int) -> tuple[float, int]:
    """The median of some passes after one to warm up, and the peak of memory above what was held before all of them."""
    held(device)
    peak, times = PeakMemory(device), list[float]()
    warm_up()
    synchronise(device)
    while len(times) < passes and sum(times) < ENOUGH:
        started = perf_counter()
        work()
        synchronise(device)
        times.append(perf_counter() - started)
    return statistics.median(times), peak.taken()


def held(device: torch.device) -> int:
    """Bytes that are in use, on a GPU by tensors; what was freed is given back first."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated()
    ctypes.CDLL(None).malloc_trim(0)
    return resident_memory()


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def answer(connection: Connection, device: str, memory: float) -> None:
    """Send a cell for each that is asked for, or why there is none. A small graph comes first: all is compiled and loaded."""
    torch.set_float32_matmul_precision("high")
    gc.freeze()  # what was imported stays
    if device == "cpu":
        resource.setrlimit(resource.RLIMIT_DATA, (data_memory() + int(memory),) * 2)
    where = torch.device(device, 0) if device == "cuda" else torch.device(device)
    while True:
        try:
            name, num_edges = connection.recv()
        except EOFError:
            return
        try:
            measure(name, FEWEST_EDGES, where, passes=1)
            connection.send(measure(name, num_edges, where))
        except Exception as error:
            connection.send({"failed": reason(error)})


def reason(error: Exception) -> str:
    """Why a cell failed; what nobody expects is also shown."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError | TooLargeError) or "allocate memory" in str(error):
        return "out of memory"
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
