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
    """

    def __init__(self, num_paths: int, input_size: int, size: int) -> None:
        super().__init__()
        if not 0 < num_paths <= MOST_PATHS:
            raise GatasError(
                f"path_mean_size is {size}, which needs a layer for each typed path; there are more than {MOST_PATHS} of them. "
                "Use fewer steps (num_steps), or 0."
            )
        self.weight = nn.Parameter(torch.empty(num_paths, input_size, size))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, inputs: Tensor, place: Tensor, path: Tensor, neighbourhood: Neighbourhood) -> Tensor:
        """(B, size) from (V, input_size) of nodes, and which node, (B, S), and path, (B, S), each slot holds."""
        share = neighbourhood.log_probability.detach().exp() * neighbourhood.mask
        of_path = F.one_hot(path, len(self.weight)).to(inputs.dtype) * share[..., None].to(inputs.dtype)  # (B, S, paths)
        total = of_path.sum(1)  # (B, paths)
        sums = torch.einsum("bsp,bsf->bpf", of_path, inputs[place])
        means = sums / total.clamp_min(torch.finfo(inputs.dtype).tiny)[..., None]
        return F.elu(torch.einsum("bpf,pfd->bd", means, self.weight))

    def values(self, inputs: Tensor, place: Tensor, path: Tensor) -> Tensor:
        """(S, size) that the slots of one target put into their paths' means."""
        return torch.einsum("sf,sfd->sd", inputs[place], self.weight.to(inputs.dtype)[path])
