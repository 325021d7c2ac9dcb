"""`LinkScorer`s of peers: every node as the other end of typed links, from representations that are computed once."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gatas.experiments.baselines.links.encoders import LinkPeer
from gatas.experiments.baselines.links.skipgram import CosineScorer, SkipGram
from gatas.tasks import LinkPredictor
from gatas.tasks.link_scorer import PartsScorer
from gatas.tasks.ranking import LinkScorer

PAIRS_AT_ONCE = 1 << 18
"""Pairs that a decoder which is known by its scores alone is asked for at a time."""


@torch.no_grad()
def scorer_of(model: Any, num_nodes: int, device: torch.device, **given: Any) -> LinkScorer:
    """The scorer of a trained model; itself where it is one. `given` is what `represent` of ours takes besides nodes."""
    model.to(device).eval()
    if hasattr(model, "score_targets") and hasattr(model, "score_sources"):
        scorer: LinkScorer = model
        return scorer
    if isinstance(model, LinkPeer):
        return DecoderScorer(model.encode(), model.decoder)
    if isinstance(model, SkipGram):
        return CosineScorer(model, num_nodes, device)
    nodes = torch.arange(num_nodes, device=device)
    batches = nodes.split(min(num_nodes, model.evaluation_batch(device)))  # type: ignore[no-untyped-call]
    representations = torch.cat([model.represent(batch, **given) for batch in batches])
    if isinstance(model, LinkPredictor) and model.parts:
        return PartsScorer(model, representations)
    return PairScorer(representations, model.score)


class DecoderScorer:
    """A decoder whose scores are products: one product of matrices scores all nodes."""

    def __init__(self, representations: Tensor, decoder: Any) -> None:
        self.representations, self.decoder = representations, decoder

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        vectors: Tensor = self.decoder.as_target_of(self.representations[source], edge_type)
        return vectors @ self.representations.T

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        vectors: Tensor = self.decoder.as_source_of(self.representations[target], edge_type)
        return vectors @ self.representations.T


class PairScorer:
    """Any model with `score`, of pairs of representations: all pairs are scored, in blocks."""

    def __init__(self, representations: Tensor, score: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        self.representations, self.score = representations, score

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        return self._scores(source, edge_type, lambda own, others, kind: self.score(own, others, kind))

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        return self._scores(target, edge_type, lambda own, others, kind: self.score(others, own, kind))

    def _scores(self, node: Tensor, edge_type: Tensor, score: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        count, rows = len(self.representations), []
        for start in range(0, len(node), size := max(1, PAIRS_AT_ONCE // count)):
            own, kind = node[start : start + size], edge_type[start : start + size]
            pairs = (self.representations[own.repeat_interleave(count)], self.representations.repeat(len(own), 1))
            rows.append(score(*pairs, kind.repeat_interleave(count)).view(len(own), count).float())
        return torch.cat(rows)
