"""`Learnable`: what the training loop asks of a model, ours or anyone's."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from gatas.ops.attend_neighbours import Storage


class Learnable(nn.Module):
    """A model that the training loop can train. Its `forward` takes what its task puts into a batch.

    For links it also has `represent`, of nodes, and `score`, of pairs of representations: an evaluation asks these.

    Weights are what `state_dict` holds; several models of one shape may be called as one by torch.func.vmap.
    """

    captures: bool = True
    """Whether a step has fixed shapes and never waits for the host, so that a CUDA graph can hold it."""
    stacks: bool = True
    """Whether several models of one shape can be called as one by torch.func.vmap; else they are trained one by one."""
    randomness: Literal["error", "different"] = "error"
    """What vmap makes of torch's own generator: ours never use it, layers of others do."""

    def reset(self, seed: int) -> None:
        """Draw all weights anew."""
        raise NotImplementedError

    def look_ahead(self, batch: Mapping[str, Tensor]) -> None:
        """Get ready for the next batch in the background, while the present one is at work."""

    def hide(self, fold: int | None, following: int | None = None) -> None:
        """Look at the graph without the links of a fold, or at all of it; the `following` fold comes next."""

    def l2_share(self, name: str) -> float:
        """Return the share of λ that a parameter gets."""
        return 1.0

    def penalty(self) -> Tensor | None:
        """Return what a step adds to the loss of what `forward` has just returned, if anything."""
        return None

    def prepare(self, precision: str, storage: Storage = "auto", *, sparse: bool = False) -> None:
        """Get ready for products in `precision`, for keys and values kept in `storage`, and for `sparse` gradients of
        `num_embeddings`, where there are any.
        """

    @property
    def num_embeddings(self) -> int:
        """Count the nodes that have a learned embedding."""
        return 0

    def evaluation_batch(self, device: torch.device) -> int:
        """Return how many targets one batch of an evaluation has; all of them, if a model looks at all nodes anyway."""
        return 1 << 30

    def depth_of(self, parameters: Mapping[str, Tensor]) -> Tensor | None:
        """Return the (…, C + 1) depth coefficients that weights give, where a model has any."""
        return None
