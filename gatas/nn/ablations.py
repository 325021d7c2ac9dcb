"""The variations of the paper's §4.4, as settings of the same modules."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ablation:
    """What a variation takes away."""

    immediate: bool = False  # only neighbours one step away
    uniform: bool = False  # every candidate alike likely, and no ln P in the attention
    without_embeddings: bool = False
    without_paths: bool = False

    def transitions(self, num_steps: int) -> dict[str, Any]:
        """Return the arguments for `Transitions.build`."""
        return {"num_steps": 1 if self.immediate else num_steps}

    def sampler(self) -> dict[str, Any]:
        """Return the arguments for `NeighbourSampler`."""
        return {"uniform": self.uniform}

    def encoder(self, **settings: Any) -> dict[str, Any]:
        """Return the arguments for `Encoder`, from those of the whole model."""
        if self.immediate:
            settings["num_steps"] = 1
        if self.without_embeddings:
            settings["node_embedding_size"] = 0
        if self.without_paths:
            settings["path_attention"] = "none"
        return settings


ABLATIONS = {
    "none": Ablation(),
    "base": Ablation(immediate=True, uniform=True, without_embeddings=True, without_paths=True),
    "without_transitions": Ablation(uniform=True),
    "without_embeddings": Ablation(without_embeddings=True),
    "without_paths": Ablation(without_paths=True),
}
