"""What a trained model ranks: held-out links among all nodes, at both ends."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatas.graph.inputs import Ints
from gatas.inference.all_nodes import AllNodes
from gatas.inference.links import share_of
from gatas.inference.trained import TrainedModel, silent
from gatas.progress import ProgressCallback
from gatas.tasks import LinkPredictor
from gatas.tasks.link_scorer import PartsScorer
from gatas.tasks.metrics import mean_logit
from gatas.tasks.ranking import LinkRanking, LinkScorer, ranking_metrics

PAIRS = 1 << 14
"""Pairs that the head sees at once."""
REPRESENTING = 0.2
"""The share of progress that is reported while nodes are represented."""


class HeadScorer:
    """Scores all nodes as ends of links by a model's head, over representations of all nodes that are made once."""

    def __init__(self, trained: TrainedModel, progress: ProgressCallback = silent) -> None:
        self.head, nodes = trained.model.head, np.arange(trained.dataset.graph.num_nodes)
        shares = [share_of(progress, number, len(trained.draws)) for number in range(len(trained.draws))]
        self.nodes = [represented(trained, nodes, *one).float() for one in zip(trained.draws, shares, strict=True)]

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) logits of every node as the target of (source, type, ?)."""
        return _mean([self._scores(nodes, source, edge_type, to_targets=True) for nodes in self.nodes])

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) logits of every node as the source of (?, type, target)."""
        return _mean([self._scores(nodes, target, edge_type, to_targets=False) for nodes in self.nodes])

    @torch.no_grad()
    def _scores(self, nodes: Tensor, asked: Tensor, edge_type: Tensor, *, to_targets: bool) -> Tensor:
        scores = nodes.new_empty(len(asked) * len(nodes))
        for first in range(0, len(scores), PAIRS):
            pair = torch.arange(first, min(first + PAIRS, len(scores)), device=nodes.device)
            row, other = pair // len(nodes), nodes.index_select(0, pair % len(nodes))
            own = nodes.index_select(0, asked[row])
            logits = self.head(own, other) if to_targets else self.head(other, own)  # (PAIRS, num_types)
            scores[first : first + PAIRS] = logits.gather(1, edge_type[row, None]).squeeze(1)
        return scores.view(len(asked), len(nodes))


class DrawnPartsScorer:
    """Scores all nodes as ends of links by the parts of a model, over what is known about all nodes, which is made once."""

    def __init__(self, nodes: AllNodes, progress: ProgressCallback = silent) -> None:
        trained, count = nodes.trained, nodes.trained.dataset.graph.num_nodes
        assert isinstance(trained.model, LinkPredictor)
        head, every = trained.model.link_head, torch.arange(count, device=trained.device)
        self.scorers = []
        for number, draw in enumerate(nodes.draws):
            known = nodes.all(draw, share_of(progress, number, len(nodes.draws)))
            joined = head.joined({name: tensor[:count].float() for name, tensor in known.items()}, every)
            self.scorers.append(PartsScorer(trained.model, joined))

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) log-odds of every node as the target of (source, type, ?)."""
        return _mean([scorer.score_targets(source, edge_type) for scorer in self.scorers])

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) log-odds of every node as the source of (?, type, target)."""
        return _mean([scorer.score_sources(target, edge_type) for scorer in self.scorers])


def _mean(logits: list[Tensor]) -> Tensor:
    return logits[0] if len(logits) == 1 else mean_logit(torch.stack(logits))


def represented(trained: TrainedModel, nodes: Ints, draw: int, progress: ProgressCallback = silent) -> Tensor:
    """Return (n, K·F'') float64 representations of nodes given by index, all at once."""
    parts = []
    for batch in trained.batches(nodes):
        parts.append(trained.exact.represent(batch, trained.mode, draw))
        progress(sum(map(len, parts)) / len(nodes))
    return torch.cat(parts) if parts else torch.empty(0, trained.embedding_size, dtype=torch.float64)


def evaluate_ranking(
    nodes: AllNodes, split: str = "test", *, batch_size: int | None = None, progress: ProgressCallback = silent
) -> dict[str, Any]:
    """Rank the links of a split, filtered, at both ends, and return MRR and Hits@1, 3, 10.

    Args:
        nodes: What is known about the nodes of a model of links.
        split: `"train"`, `"valid"` or `"test"`.
        batch_size: Queries that are scored together; changes memory and speed, not ranks.
        progress: Told how much of it is done, from 0 to 1.
    """
    trained = nodes.trained
    ranking = LinkRanking.of_split(trained.dataset, split)
    scorer = ranking_scorer(nodes, lambda share: progress(REPRESENTING * share))
    ranks = ranking.ranks(
        scorer, batch_size, device=trained.device, progress=lambda share: progress(REPRESENTING + (1 - REPRESENTING) * share)
    )
    return ranking_metrics(ranks, trained.names)


def ranking_scorer(nodes: AllNodes, progress: ProgressCallback = silent) -> LinkScorer:
    """Return what scores all nodes as ends of links, by the parts of a model or by its head."""
    return DrawnPartsScorer(nodes, progress) if nodes.trained.exact.parts else HeadScorer(nodes.trained, progress)
