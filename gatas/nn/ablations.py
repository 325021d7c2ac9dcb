"""The variations of the paper's §4.4, as settings of the same modules.

Of "GATAS w/o trans" the paper says that "all nodes within C = 3 steps can be sampled with uniform probability and the
transition probabilities are not part of the attention weights". `without_transitions` does both. Two other readings stand
beside it: `without_prior` draws by P as ever, `uniform_steps` uniformly within each step, and steps by q; neither attends to P.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ablation:
    """What a variation takes away."""

    immediate: bool = False  # only neighbours one step away
    uniform: bool = False  # every candidate alike likely, and no ln P in the attention
    uniform_steps: bool = False  # the candidates of each step alike likely, so that T is 1 / their number
    without_prior: bool = False  # no ln P in the attention, however neighbours are drawn
    without_embeddings: bool = False
    without_paths: bool = False

    def transitions(self, num_steps: int) -> dict[str, Any]:
        """Return the arguments for `Transitions.build`."""
        return {"num_steps": 1 if self.immediate else num_steps}

    def sampler(self) -> dict[str, Any]:
        """Return the arguments for `NeighbourSampler`."""
        return {"uniform": self.uniform, "uniform_steps": self.uniform_steps}

    def encoder(self, **settings: Any) -> dict[str, Any]:
        """Return the arguments for `Encoder`, from those of the whole model."""
        if self.immediate:
            settings["num_steps"] = 1
        if self.without_prior:
            settings["prior"] = False
        if self.without_embeddings:
            settings["node_embedding_size"] = 0
        if self.without_paths:
            settings["path_attention"] = "none"
        return settings


ABLATIONS = {
    "none": Ablation(),
    "base": Ablation(immediate=True, uniform=True, without_embeddings=True, without_paths=True),
    "without_transitions": Ablation(uniform=True),
    "without_prior": Ablation(without_prior=True),
    "uniform_steps": Ablation(uniform_steps=True, without_prior=True),
    "without_embeddings": Ablation(without_embeddings=True),
    "without_paths": Ablation(without_paths=True),
}
