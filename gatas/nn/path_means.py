"""What stands at the end of each typed path, on average, beside attention, which has one layer for all paths."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.errors import GatasError
from gatas.sampling import Neighbourhood

MOST_PATHS = 256
"""Paths that may have a layer each."""


class PathMeans(nn.Module):
    """A layer for each typed path, over the mean of the sampled neighbours that it leads to, weighted by P; their sum.

    What a path leads to may say much although it is a small part of a neighbourhood, as the venues of an author's papers do.
    Where known labels are inputs, the shares of labels at the end of each path stand beside the mean.
    """

    def __init__(self, num_paths: int, input_size: int, size: int, num_labels: int = 0) -> None:
        super().__init__()
        if not 0 < num_paths <= MOST_PATHS:
            raise GatasError(
                f"path_mean_size is {size}, which needs a layer for each typed path; there are more than {MOST_PATHS} of them. "
                "Use fewer steps (num_steps), or 0."
            )
        self.weight = nn.Parameter(torch.empty(num_paths, input_size, size))
        nn.init.xavier_uniform_(self.weight)
        self.label_weight = nn.Parameter(torch.zeros(num_paths, num_labels, size)) if num_labels else None

    def forward(
        self, inputs: Tensor, place: Tensor, path: Tensor, neighbourhood: Neighbourhood, known: Tensor | None = None
    ) -> Tensor:
        """(B, size) from (V, input_size) of nodes, and which node, (B, S), and path, (B, S), each slot holds.

        `known` has the labels of slots, (B, S, num_labels), where they are inputs.
        """
        share = neighbourhood.log_probability.detach().exp() * neighbourhood.mask
        of_path = F.one_hot(path, len(self.weight)).to(inputs.dtype) * share[..., None].to(inputs.dtype)  # (B, S, paths)
        total = of_path.sum(1).clamp_min(torch.finfo(inputs.dtype).tiny)[..., None]  # (B, paths, 1)
        means = torch.einsum("bsp,bsf->bpf", of_path, inputs[place]) / total
        found = torch.einsum("bpf,pfd->bd", means, self.weight)
        if self.label_weight is not None:
            assert known is not None
            shares = torch.einsum("bsp,bsl->bpl", of_path, known) / total
            found = found + torch.einsum("bpl,pld->bd", shares, self.label_weight)
        return F.elu(found)

    def values(self, inputs: Tensor, place: Tensor, path: Tensor, known: Tensor | None = None) -> Tensor:
        """(S, size) that the slots of one target put into their paths' means."""
        found = torch.einsum("sf,sfd->sd", inputs[place], self.weight.to(inputs.dtype)[path])
        if self.label_weight is None or known is None:
            return found
        return found + torch.einsum("sl,sld->sd", known, self.label_weight.to(inputs.dtype)[path])
