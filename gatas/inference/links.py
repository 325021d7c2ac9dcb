"""Links: how likely given ones are, and which are the likeliest from a node."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatas.datasets import LinkTargets
from gatas.graph.inputs import Ints
from gatas.inference.ids import ids_of, indices_of, types_of
from gatas.inference.prediction import LinkPrediction
from gatas.inference.trained import TrainedModel
from gatas.progress import ProgressCallback

PAIRS = 8192
"""Pairs that are scored together."""


def score_pairs(
    trained: TrainedModel, source: Ints, edge_type: Ints, target: Ints, progress: ProgressCallback
) -> LinkPrediction:
    """Score links between nodes given by index, of types given by number; each node is represented once."""
    nodes, place = np.unique(np.concatenate([source, target]), return_inverse=True)
    total = torch.zeros(len(source), dtype=torch.float64, device=trained.device)
    for number, draw in enumerate(trained.draws):
        seen = represented(trained, nodes, draw, share_of(progress, number, len(trained.draws)))
        for rows in np.array_split(np.arange(len(source)), max(1, len(source) // PAIRS)):
            pairs = seen[place[rows]], seen[place[len(source) + rows]]
            total[rows] += _probabilities(trained, *pairs, torch.from_numpy(edge_type[rows]).to(trained.device))
    probabilities = (total / len(trained.draws)).float().cpu().numpy()
    names = [trained.names[number] for number in edge_type]
    return LinkPrediction(ids_of(trained.graph, source), names, ids_of(trained.graph, target), probabilities)


def rank_targets(trained: TrainedModel, sources: Any, edge_type: str, top: int, progress: ProgressCallback) -> LinkPrediction:
    """Find, for each source, the `top` likeliest links of a type; all nodes are represented, some at a time.

    Known links are left out: the graph's edges of that type, and the links that were trained on.
    """
    source = indices_of(trained.graph, sources)
    kind = int(types_of(trained.names, edge_type, 1, "type of link")[0])
    known = [_known_targets(trained, node, kind) for node in source]
    own = [represented(trained, source, draw) for draw in trained.draws]
    best = [(np.empty(0, np.int64), np.empty(0))] * len(source)
    for batch in trained.batches(everyone := np.arange(trained.graph.num_nodes)):
        seen = [trained.exact.represent(batch, trained.mode, draw) for draw in trained.draws]
        kinds = torch.full((len(batch),), kind, device=trained.device)
        for row in range(len(source)):
            chances = [_probabilities(trained, a[row].expand_as(b), b, kinds) for a, b in zip(own, seen, strict=True)]
            mean = torch.stack(chances).mean(0).cpu().numpy()
            best[row] = _merged(best[row], (batch, mean), known[row], top)
        progress((batch[-1] + 1) / len(everyone))
    counts = [len(nodes) for nodes, _ in best]
    targets = np.concatenate([nodes for nodes, _ in best]) if best else np.empty(0, np.int64)
    chances32 = np.concatenate([chance for _, chance in best]).astype(np.float32) if best else np.empty(0, np.float32)
    types, sources = [trained.names[kind]] * len(targets), ids_of(trained.graph, np.repeat(source, counts))
    return LinkPrediction(sources, types, ids_of(trained.graph, targets), chances32)


def _merged(best: tuple[Ints, Any], more: tuple[Ints, Any], known: Ints, top: int) -> tuple[Ints, Any]:
    """Keep the likeliest of both; among equals the first node."""
    wanted = ~np.isin(more[0], known)
    nodes, chances = np.concatenate([best[0], more[0][wanted]]), np.concatenate([best[1], more[1][wanted]])
    order = np.argsort(-chances, kind="stable")[:top]
    return nodes[order], chances[order]


def _known_targets(trained: TrainedModel, node: int, kind: int) -> Ints:
    """Return where links of a type are known to lead from a node, and the node itself."""
    targets = trained.dataset.targets
    assert isinstance(targets, LinkTargets)
    graph, train, found = trained.graph, targets.splits.get("train"), [np.array([node])]
    if train is not None:
        found.append(train.target[(train.source == node) & (train.edge_type == kind) & (train.label == 1)])
    if trained.names[kind] in graph.edge_type_names:
        edges = graph.edges_from(np.array([node]))
        found.append(edges.target[edges.edge_type == graph.edge_type_names.index(trained.names[kind])])
    return np.concatenate(found).astype(np.int64)


def represented(trained: TrainedModel, nodes: Ints, draw: int, progress: ProgressCallback = lambda share: None) -> Tensor:
    """Return (n, K·F'') float64 representations of nodes given by index, all at once."""
    parts = []
    for batch in trained.batches(nodes):
        parts.append(trained.exact.represent(batch, trained.mode, draw))
        progress(sum(map(len, parts)) / len(nodes))
    return torch.cat(parts) if parts else torch.empty(0, trained.embedding_size, dtype=torch.float64)


def share_of(progress: ProgressCallback, number: int, count: int) -> ProgressCallback:
    """Report the progress of one of several rounds."""
    return lambda share: progress((number + share) / count)


def _probabilities(trained: TrainedModel, source: Tensor, target: Tensor, kind: Tensor) -> Tensor:
    """Return (n,) probabilities of links of these types."""
    return trained.exact.apply_head(source, target).gather(1, kind[:, None]).squeeze(1).sigmoid()
