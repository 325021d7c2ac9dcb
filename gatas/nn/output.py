"""What an encoder gives out: what a target attends to and, if asked for, what it is by itself."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Output(nn.Module):
    """What was found of neighbours, beside a layer over the target's own inputs, each normalised; both may be left out."""

    def __init__(self, input_size: int, found_size: int, *, skip: bool, norm: bool) -> None:
        super().__init__()
        self.size = (1 + skip) * found_size
        self.own = nn.Linear(input_size, found_size) if skip else None
        self.norms = nn.ModuleList(nn.LayerNorm(found_size) for _ in range(1 + skip)) if norm else None

    def forward(self, found: Tensor, inputs: Tensor) -> Tensor:
        """(B, size) of what was found of neighbours, (B, found_size), and of the targets' inputs, (B, input_size)."""
        parts = [found] if self.own is None else [found, F.elu(self.own(inputs))]
        if self.norms is not None:
            parts = [norm(part) for norm, part in zip(self.norms, parts, strict=True)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
