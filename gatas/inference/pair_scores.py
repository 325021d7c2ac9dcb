"""`PairScores`: links scored in float64 by the paper's head, of single pairs and of all nodes at once."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.inference.exact import ExactEncoder
from gatas.inference.part_scores import NodeVectors
from gatas.nn import PairHead

FIRST, SECOND, OUTPUT = "pair.hidden.0", "pair.hidden.1", "pair.output"
"""Layers of the head."""


class PairScores:
    """Scores links between nodes given by index by a layer over each end, and layers over both.

    Between one node and all others, the first layer over both is linear in what is known about the others, so that nothing is
    put side by side.
    """

    def __init__(self, exact: ExactEncoder) -> None:
        head = exact.model.head
        assert isinstance(head, PairHead)
        self.exact, self.products, self.weights = exact, head.products, exact.head_weights

    @property
    def size(self) -> int:
        """Return how many numbers are known about a node."""
        return len(self.weights["dense.bias"])

    @torch.no_grad()
    def known_about(self, nodes: Tensor | None, encoded: Tensor | None) -> NodeVectors:
        """Return what scores need to know about nodes, from what the encoder says of them."""
        assert encoded is not None
        return {"layer": F.elu(F.linear(encoded, self.weights["dense.weight"], self.weights["dense.bias"]))}

    @torch.no_grad()
    def of_pairs(self, source: Tensor, edge_type: Tensor, target: Tensor, sources: NodeVectors, targets: NodeVectors) -> Tensor:
        """Return (n,) log-odds of links; `sources` and `targets` are what is known about their ends."""
        one, other = sources["layer"], targets["layer"]
        both = torch.cat([one, other, one * other] if self.products else [one, other], dim=-1)
        logits = self._linear(OUTPUT, F.elu(self._linear(SECOND, F.elu(self._linear(FIRST, both)))))
        return logits.gather(1, edge_type[:, None]).squeeze(1)

    @torch.no_grad()
    def of_all(
        self, query: Tensor, edge_type: int, own: NodeVectors, blocks: Iterable[NodeVectors], *, backward: bool
    ) -> Tensor:
        """Return (B, N) log-odds of all nodes as targets of links from the queries; as their sources if `backward`.

        `own` is what is known about the queries, `blocks` about all nodes, some at a time.
        """
        layers = [self._layer_beside(one, backward) for one in own["layer"]]
        output = self.weights[f"{OUTPUT}.weight"][edge_type], self.weights[f"{OUTPUT}.bias"][edge_type]
        found = []
        for block in blocks:
            hidden = (F.elu(F.linear(block["layer"], *layer)) for layer in layers)
            found.append(torch.stack([F.elu(self._linear(SECOND, one)) @ output[0] + output[1] for one in hidden]))
        return torch.cat(found, dim=-1)

    def _layer_beside(self, own: Tensor, backward: bool) -> tuple[Tensor, Tensor]:
        """Return weight and bias of the first layer over both, as a layer over the other node alone."""
        weight, bias = self.weights[f"{FIRST}.weight"], self.weights[f"{FIRST}.bias"]
        parts = torch.split(weight, len(own), dim=1)
        mine, others = (parts[1], parts[0]) if backward else (parts[0], parts[1])
        return others + parts[2] * own if self.products else others, bias + mine @ own

    def _linear(self, layer: str, inputs: Tensor) -> Tensor:
        return F.linear(inputs, self.weights[f"{layer}.weight"], self.weights[f"{layer}.bias"])
