"""Attention over a sample of (neighbour, path) pairs (eqs. 3, 4 before σ): one contract.

B targets, S sampled pairs each, K heads, U distinct pairs. F' neighbour size, F'' head size.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.softmax import masked_softmax


def attend(
    target_terms: Tensor,  # (B, K, F')   u: what g's hidden layer has of the target, bias included
    keys: Tensor,  # (U, K, F')           G: what it has of the pair
    score: Tensor,  # (K, F')             w: g's output layer
    values: Tensor,  # (U, K, F'')        V: d of the pair
    index: Tensor,  # (B, S)              which pair each slot holds
    log_probability: Tensor,  # (B, S)    ln P
    mask: Tensor,  # (B, S)               slots in use
    keep: Tensor | None = None,  # (B, S, K) attention dropout: 0, or 1 / (1 - p)
) -> Tensor:
    """(B, K, F''): Σ α V with α = softmax(w · ELU(u + G) + ln P) over each target's sample; zeros for an empty one."""
    hidden = F.elu(target_terms[:, None] + keys[index])  # (B, S, K, F')
    logits = torch.einsum("bskf,kf->bsk", hidden, score) + log_probability[..., None]  # (B, S, K)
    weights = masked_softmax(logits.transpose(1, 2), mask[:, None]).transpose(1, 2)  # (B, S, K)   α
    if keep is not None:
        weights = weights * keep
    return torch.einsum("bsk,bskf->bkf", weights, values[index])  # (B, K, F'')
