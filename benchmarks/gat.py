"""PyG's GAT, as its own examples train it, to stand beside ours."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv

from gatas import Dataset
from gatas.tasks.metrics import micro_metric


class CoraGAT(nn.Module):
    """Two layers of 8 heads, dropout 0.6 (Veličković et al., 2018; PyG's examples/gat.py)."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = GATConv(features, 8, heads=8, dropout=0.6)
        self.second = GATConv(64, classes, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.elu(self.first(F.dropout(x, 0.6, self.training), edge_index))
        return self.second(F.dropout(x, 0.6, self.training), edge_index)  # type: ignore[no-any-return]


class PPIGAT(nn.Module):
    """Three layers with linear shortcuts (PyG's examples/ppi.py)."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [GATConv(features, 256, heads=4), GATConv(1024, 256, heads=4), GATConv(1024, classes, heads=6, concat=False)]
        )
        self.shortcuts = nn.ModuleList([nn.Linear(features, 1024), nn.Linear(1024, 1024), nn.Linear(1024, classes)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for number, (layer, shortcut) in enumerate(zip(self.layers, self.shortcuts, strict=True)):
            x = layer(x, edge_index) + shortcut(x)
            x = F.elu(x) if number < 2 else x
        return x


def edges_of(dataset: Dataset) -> Tensor:
    graph = dataset.graph
    return torch.from_numpy(np.stack([np.asarray(graph.source), np.asarray(graph.neighbour)]).astype(np.int64))


def train_ppi(dataset: Dataset, device: str, report: Callable[[int, float, float], bool]) -> None:
    """Two graphs a batch, Adam at 0.005. `report(epoch, seconds of training, validation micro-F1)` says when to stop."""
    torch.manual_seed(0)
    graph_id = np.asarray(dataset.nodes.graph_id)
    x, y = (torch.tensor(np.asarray(part), dtype=torch.float32) for part in (dataset.features, dataset.node_targets.labels))
    source, target = edges_of(dataset)

    def part(graphs: Any) -> tuple[Tensor, Tensor, Tensor]:
        nodes = torch.from_numpy(np.flatnonzero(np.isin(graph_id, graphs)))
        place = torch.full((len(graph_id),), -1).scatter(0, nodes, torch.arange(len(nodes)))
        own = place[source] >= 0
        return x[nodes].to(device), torch.stack([place[source[own]], place[target[own]]]).to(device), y[nodes].to(device)

    graphs = [np.unique(graph_id[dataset.splits[split]]) for split in ("train", "valid")]
    singles, valid = {int(g): part([g]) for g in graphs[0]}, part(graphs[1])
    model = PPIGAT(x.shape[1], y.shape[1]).to(device)
    optimiser, generator, seconds = torch.optim.Adam(model.parameters(), lr=0.005), np.random.default_rng(0), 0.0
    for epoch in range(1000):
        started = perf_counter()
        model.train()
        for pair in generator.permutation(graphs[0]).reshape(-1, 2):
            together = [singles[int(g)] for g in pair]
            shift = len(together[0][0])
            edges = torch.cat([together[0][1], together[1][1] + shift], dim=1)
            optimiser.zero_grad()
            logits = model(torch.cat([one[0] for one in together]), edges)
            F.binary_cross_entropy_with_logits(logits, torch.cat([one[2] for one in together])).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            score = float(micro_metric(model(valid[0], valid[1])[None], valid[2]))
        seconds += perf_counter() - started
        if report(epoch, seconds, score):
            return


def train_cora(dataset: Dataset, seed: int = 0) -> tuple[float, int, float]:
    """Seconds, epochs and test accuracy with early stopping on validation accuracy, patience 100."""
    torch.manual_seed(seed)
    x, y = torch.tensor(np.asarray(dataset.features)), torch.tensor(np.asarray(dataset.node_targets.labels))
    edges, splits = edges_of(dataset), {name: torch.from_numpy(np.array(rows)) for name, rows in dataset.splits.items()}
    model = CoraGAT(x.shape[1], len(dataset.names))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    best, best_epoch, test, started = -1.0, -1, 0.0, perf_counter()
    for epoch in range(1000):
        model.train()
        optimiser.zero_grad()
        F.cross_entropy(model(x, edges)[splits["train"]], y[splits["train"]]).backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            right = model(x, edges).argmax(-1) == y
        score = float(right[splits["valid"]].float().mean())
        if score > best:
            best, best_epoch, test = score, epoch, float(right[splits["test"]].float().mean())
        if epoch - best_epoch >= 100:
            break
    return perf_counter() - started, epoch + 1, test
