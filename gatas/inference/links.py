"""`predict_links`: how likely links are; `likeliest_targets`: where a node's links most likely lead."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.errors import GatasError
from gatas.graph.inputs import Ints
from gatas.inference.embed import as_view
from gatas.inference.ids import names_of, nodes_of, types_of
from gatas.inference.view import View, all_nodes
from gatas.progress import ProgressCallback
from gatas.tasks import LinkPredictor, Model

PAIRS = 8192
"""Pairs that are scored together."""


@dataclass(frozen=True, eq=False)
class Links:
    """Asked-for or likely links, with their probabilities."""

    sources: Any  # columns of ids
    edge_types: list[str]
    targets: Any
    probabilities: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.probabilities)

    def table(self) -> Any:
        """Columns `source`, `type`, `target` and `probability`."""
        columns = {"source": self.sources, "type": pa.array(self.edge_types, pa.string()), "target": self.targets}
        return pa.table({**columns, "probability": pa.array(self.probabilities)})


def predict_links(asked: Model | View, sources: Any, edge_types: Any, targets: Any) -> NDArray[np.float32]:
    """(n,) probabilities of links between nodes by their ids; one type for all, or one for each."""
    return score_pairs(asked, sources, edge_types, targets).probabilities


def score_pairs(
    asked: Model | View, sources: Any, edge_types: Any, targets: Any, *, progress: ProgressCallback = lambda share: None
) -> Links:
    """The same, with what was asked for beside it."""
    view = as_view(asked)
    _check_predicts_links(view.model)
    source, target = nodes_of(view.graph, sources), nodes_of(view.graph, targets)
    if len(source) != len(target):
        raise GatasError(f"{len(source)} sources and {len(target)} targets were given. Give one of each per link.")
    return score_nodes(view, source, types_of(view.model.names, edge_types, len(source), "type of link"), target, progress)


def score_nodes(view: View, source: Ints, kind: Ints, target: Ints, progress: ProgressCallback = lambda share: None) -> Links:
    """The same by their numbers."""
    nodes, place = np.unique(np.concatenate([source, target]), return_inverse=True)
    total = torch.zeros(len(source), dtype=torch.float64, device=view.device)
    for number, draw in enumerate(view.draws):
        seen = _represented(view, nodes, draw, _share(progress, number, len(view.draws)))
        for rows in np.array_split(np.arange(len(source)), max(1, len(source) // PAIRS)):
            pairs = seen[place[rows]], seen[place[len(source) + rows]]
            total[rows] += _scored(view, *pairs, torch.from_numpy(kind[rows]).to(view.device))
    probabilities = (total / len(view.draws)).float().cpu().numpy()
    names = [view.model.names[number] for number in kind]
    return Links(names_of(view.graph, source), names, names_of(view.graph, target), probabilities)


def likeliest_targets(
    asked: Model | View, sources: Any, edge_type: str, top: int = 10, *, progress: ProgressCallback = lambda share: None
) -> Links:
    """For each source the `top` likeliest links of a type, likeliest first; none that is known, and none to itself.

    Known are the graph's edges of that type and the links that were trained on. All nodes are represented, some at a time.
    """
    view = as_view(asked)
    _check_predicts_links(view.model)
    source = nodes_of(view.graph, sources)
    kind = int(types_of(view.model.names, edge_type, 1, "type of link")[0])
    known = [_known_targets(view, node, kind) for node in source]
    own = [_represented(view, source, draw) for draw in view.draws]
    best = [(np.empty(0, np.int64), np.empty(0))] * len(source)
    for batch in view.batches(everyone := all_nodes(view.graph)):
        seen = [view.represent(batch, draw) for draw in view.draws]
        kinds = torch.full((len(batch),), kind, device=view.device)
        for row in range(len(source)):
            chances = [_scored(view, a[row].expand_as(b), b, kinds) for a, b in zip(own, seen, strict=True)]
            mean = torch.stack(chances).mean(0).cpu().numpy()
            best[row] = _merged(best[row], (batch, mean), known[row], top)
        progress((batch[-1] + 1) / len(everyone))
    counts = [len(nodes) for nodes, _ in best]
    targets = np.concatenate([nodes for nodes, _ in best]) if best else np.empty(0, np.int64)
    chances32 = np.concatenate([chance for _, chance in best]).astype(np.float32) if best else np.empty(0, np.float32)
    types = [view.model.names[kind]] * len(targets)
    return Links(names_of(view.graph, np.repeat(source, counts)), types, names_of(view.graph, targets), chances32)


def _merged(best: tuple[Ints, Any], more: tuple[Ints, Any], known: Ints, top: int) -> tuple[Ints, Any]:
    """The likeliest of both; of equals the first node."""
    wanted = ~np.isin(more[0], known)
    nodes, chances = np.concatenate([best[0], more[0][wanted]]), np.concatenate([best[1], more[1][wanted]])
    order = np.argsort(-chances, kind="stable")[:top]
    return nodes[order], chances[order]


def _known_targets(view: View, node: int, kind: int) -> Ints:
    """Where links of a type are known to lead from a node, and the node itself."""
    assert isinstance(view.model, LinkPredictor)
    graph, train, found = view.graph, view.model.trained_on, [np.array([node])]
    if train is not None:
        found.append(train.target[(train.source == node) & (train.edge_type == kind) & (train.label == 1)])
    if view.model.names[kind] in graph.edge_type_names:
        edges = graph.edges_from(np.array([node]))
        found.append(edges.target[edges.edge_type == graph.edge_type_names.index(view.model.names[kind])])
    return np.concatenate(found).astype(np.int64)


def _represented(view: View, nodes: Ints, draw: int, progress: ProgressCallback = lambda share: None) -> Tensor:
    """(n, K·F'') float64 of all nodes at once."""
    parts = []
    for batch in view.batches(nodes):
        parts.append(view.represent(batch, draw))
        progress(sum(map(len, parts)) / len(nodes))
    return torch.cat(parts) if parts else torch.empty(0, view.model.encoder.output_size, dtype=torch.float64)


def _share(progress: ProgressCallback, number: int, count: int) -> ProgressCallback:
    """For one of several rounds."""
    return lambda share: progress((number + share) / count)


def _scored(view: View, source: Tensor, target: Tensor, kind: Tensor) -> Tensor:
    """(n,) probabilities."""
    return view.headed(source, target).gather(1, kind[:, None]).squeeze(1).sigmoid()


def _check_predicts_links(model: Model) -> None:
    if not isinstance(model, LinkPredictor):
        raise GatasError("the model predicts classes of nodes, not links. Ask it for classes: predict, or `gatas predict RUN`.")
