"""What a training costs: memory, and how long answers take afterwards."""

import gc
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import psutil
import torch
from torch import Tensor

from gatas.datasets import Dataset
from gatas.tasks.learnable import Learnable
from gatas.training.config import TrainingConfig

NUM_TARGETS = 1000
STATUS = Path("/proc/self/status")


def free(device: torch.device) -> None:
    """Give back what a training has held that is over, or failed."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def wake(device: torch.device) -> None:
    """Have a GPU started and its libraries loaded, which the first of many models would pay for alone."""
    if device.type == "cuda":
        matrix = torch.ones(64, 64, device=device, requires_grad=True)
        torch.autograd.grad(torch.nn.functional.elu(matrix @ matrix).sum(), matrix)
        torch.cuda.synchronize(device)


class PeakMemory:
    """Bytes taken at most since it was made: of a GPU what torch has allocated, else by how much the process has grown."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self.before = torch.cuda.memory_allocated(device)
            return
        if STATUS.exists():
            Path("/proc/self/clear_refs").write_text("5")  # forgets the highest so far
        self.before = psutil.Process().memory_info().rss

    def taken(self) -> int:
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self.device)) - self.before
        return max(0, self._highest() - self.before)

    def _highest(self) -> int:
        lines = STATUS.read_text().splitlines() if STATUS.exists() else []
        highest = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")]
        return highest[0] if highest else int(psutil.Process().memory_info().rss)


@torch.no_grad()
def seconds_to_answer(model: Learnable, dataset: Dataset, config: TrainingConfig, device: torch.device) -> float:
    """To classify 1,000 nodes that were not trained on, once everything is loaded: the median of three times.

    For links: to represent 1,000 nodes that are asked about.
    """
    split, links = dataset.splits["test" if "test" in dataset.splits else "valid"], dataset.task == "link prediction"
    nodes = np.union1d(split.source, split.target) if links else np.sort(np.asarray(split))
    given: dict[str, Tensor] = {}
    graph_id = None if dataset.nodes.graph_id is None else np.asarray(dataset.nodes.graph_id)
    if config.by_graph and graph_id is not None:
        nodes = nodes[graph_id[nodes] == graph_id[nodes[0]]]
        first = int(np.searchsorted(graph_id, graph_id[nodes[0]]))
        given["first_node"] = torch.full((NUM_TARGETS,), first, device=device)
    batch_size = min(model.evaluation_batch(device), NUM_TARGETS)
    columns = {"target": torch.from_numpy(np.resize(nodes, NUM_TARGETS)).to(device), **given}
    batches = [
        {name: column[start : start + batch_size] for name, column in columns.items()}
        for start in range(0, NUM_TARGETS, batch_size)
    ]
    model.to(device).eval()
    ask: Any = model.represent if links else model
    return median([_answered(ask, batches, config, device) for _ in range(4)][1:])  # the first warms up


def _answered(ask: Any, batches: list[dict[str, Tensor]], config: TrainingConfig, device: torch.device) -> float:
    started = perf_counter()
    for draw in range(config.evaluation_draws):
        for batch in batches:
            ask(**batch, draw=torch.tensor(-1 - draw, device=device), mode=config.evaluation_mode)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter() - started
