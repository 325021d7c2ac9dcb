"""Learning from nodes without labels: what a model says of a node should not depend on which neighbours were drawn.

Every step looks at its nodes several times, each with a draw and noise of its own, and is pulled towards the mean of what it
says, sharpened (as in GRAND, Feng et al. 2020, with sampled neighbourhoods in place of dropped nodes).
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Consistency:
    """How strongly draws are pulled together (`weight`), how many there are, on how many unlabelled nodes, and how sharp."""

    weight: float
    draws: int
    nodes: int
    temperature: float

    def loss(self, logits: Tensor, weight: Tensor, whole: Tensor | None = None) -> Tensor:
        """Return the mean squared distance of (R, B, classes) logits to their sharpened mean.

        Where the nodes are a part of a batch, `whole` has the weights of all of it.
        """
        chance = logits.softmax(-1)
        sharp = chance.detach().mean(0).pow(1 / self.temperature)
        sharp = sharp / sharp.sum(-1, keepdim=True)
        distance = (chance - sharp).square().sum(-1).mean(0)  # (B,)
        return self.weight * (distance * weight).sum() / (weight if whole is None else whole).sum()
