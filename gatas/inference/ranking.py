"""What a trained model ranks: held-out links among all nodes, at both ends."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatas.inference.links import represented, share_of
from gatas.inference.trained import TrainedModel, silent
from gatas.progress import ProgressCallback
from gatas.tasks.metrics import mean_logit
from gatas.tasks.ranking import LinkRanking, ranking_metrics

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
        return self._mean([self._scores(nodes, source, edge_type, to_targets=True) for nodes in self.nodes])

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) logits of every node as the source of (?, type, target)."""
        return self._mean([self._scores(nodes, target, edge_type, to_targets=False) for nodes in self.nodes])

    @staticmethod
    def _mean(logits: list[Tensor]) -> Tensor:
        return logits[0] if len(logits) == 1 else mean_logit(torch.stack(logits))

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


def evaluate_ranking(
    trained: TrainedModel, split: str = "test", *, batch_size: int | None = None, progress: ProgressCallback = silent
) -> dict[str, Any]:
    """Rank the links of a split, filtered, at both ends, and return MRR and Hits@1, 3, 10.

    Args:
        trained: A model of links.
        split: `"train"`, `"valid"` or `"test"`.
        batch_size: Queries that are scored together; changes memory and speed, not ranks.
        progress: Told how much of it is done, from 0 to 1.
    """
    trained.check_predicts_links()
    ranking = LinkRanking.of_split(trained.dataset, split)
    scorer = HeadScorer(trained, lambda share: progress(REPRESENTING * share))
    ranks = ranking.ranks(
        scorer, batch_size, device=trained.device, progress=lambda share: progress(REPRESENTING + (1 - REPRESENTING) * share)
    )
    return ranking_metrics(ranks, trained.names)
