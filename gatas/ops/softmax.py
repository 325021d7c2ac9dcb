"""Softmax with holes."""

import torch
from torch import Tensor


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension where `mask` is True; an empty row gives zeros, not NaN."""
    logits = logits.masked_fill(~mask, -torch.inf)
    top = logits.amax(-1, keepdim=True)
    weights = (logits - torch.where(top.isinf(), 0.0, top)).exp()
    return weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(logits.dtype).tiny)
