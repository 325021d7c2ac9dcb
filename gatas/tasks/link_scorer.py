"""`PartsScorer`: every node as the other end of links, scored by the parts of a model at once."""

import torch
from torch import Tensor

from gatas.tasks.links import LinkPredictor


class PartsScorer:
    """Scores all nodes as ends of links, by what each node is represented by.

    Args:
        model: A model whose score is a sum of parts.
        representations: (N, …) what `represent` returns for all nodes.
    """

    def __init__(self, model: LinkPredictor, representations: Tensor) -> None:
        self.model, self.nodes = model, representations
        self.slot = torch.arange(len(representations), dtype=torch.int32, device=representations.device)

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) log-odds of every node as the target of (source, type, ?)."""
        return self._together(source, edge_type, backward=False)

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) log-odds of every node as the source of (?, type, target)."""
        return self._together(target, edge_type, backward=True)

    def parts(self, query: Tensor, edge_type: Tensor, *, backward: bool) -> list[Tensor]:
        """Return (B, N) scores by each part."""
        return self.model.candidate_scores(query, edge_type, self.nodes[query], self.nodes, self.slot, backward=backward)

    @torch.no_grad()
    def _together(self, query: Tensor, edge_type: Tensor, *, backward: bool) -> Tensor:
        return self.model.link_head.together(self.parts(query, edge_type, backward=backward), edge_type)
