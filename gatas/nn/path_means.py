"""What stands at the end of each typed path, on average, beside attention, which has one layer for all paths."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.errors import GatasError
from gatas.ops.torch_private import is_mapped
from gatas.sampling import Neighbourhood

MOST_PATHS = 512
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
        if len(self.weight) > path.shape[1] and not _must_be_dense(path):
            return F.elu(self._by_slot(inputs, place, path, share.to(inputs.dtype), known))
        of_path = F.one_hot(path, len(self.weight)).to(inputs.dtype) * share[..., None].to(inputs.dtype)  # (B, S, paths)
        total = of_path.sum(1).clamp_min(torch.finfo(inputs.dtype).tiny)[..., None]  # (B, paths, 1)
        means = torch.einsum("bsp,bsf->bpf", of_path, inputs[place]) / total
        found = torch.einsum("bpf,pfd->bd", means, self.weight)
        if self.label_weight is not None:
            assert known is not None
            shares = torch.einsum("bsp,bsl->bpl", of_path, known) / total
            found = found + torch.einsum("bpl,pld->bd", shares, self.label_weight)
        return F.elu(found)

    def _by_slot(self, inputs: Tensor, place: Tensor, path: Tensor, share: Tensor, known: Tensor | None) -> Tensor:
        """The same sum, of what each slot adds to it: less to compute where there are more paths than slots."""
        row = torch.arange(len(path)).repeat_interleave(path.shape[1])
        pair = row * len(self.weight) + path.flatten()  # (B·S,) a target's path
        total = share.new_zeros(len(path) * len(self.weight)).index_add(0, pair, share.flatten())
        part = share.flatten() / total[pair].clamp_min(torch.finfo(inputs.dtype).tiny)  # of the slot in its path's mean
        used = part.nonzero()[:, 0]
        used = used[path.flatten()[used].argsort(stable=True)]
        counts = path.flatten()[used].bincount(minlength=len(self.weight)).tolist()
        values = _times_own(inputs[place.flatten()[used]], self.weight, counts)
        if self.label_weight is not None:
            assert known is not None
            values = values + _times_own(known.flatten(0, 1)[used], self.label_weight, counts)
        return values.new_zeros(len(path), values.shape[1]).index_add(0, row[used], values * part[used, None])

    def values(self, inputs: Tensor, place: Tensor, path: Tensor, known: Tensor | None = None) -> Tensor:
        """(S, size) that the slots of one target put into their paths' means."""
        found = torch.einsum("sf,sfd->sd", inputs[place], self.weight.to(inputs.dtype)[path])
        if self.label_weight is None or known is None:
            return found
        return found + torch.einsum("sl,sld->sd", known, self.label_weight.to(inputs.dtype)[path])


def _must_be_dense(path: Tensor) -> bool:
    """Whether shapes must not depend on the data: on a GPU to count is to wait, and programs for any data cannot count."""
    return path.device.type != "cpu" or torch.compiler.is_compiling() or is_mapped(path)


def _times_own(rows: Tensor, weight: Tensor, counts: list[int]) -> Tensor:
    """Rows, which come by path, `counts` of each, times the matrix of their path."""
    parts = zip(torch.split(rows, counts), weight.unbind(), strict=True)
    return torch.cat([own @ matrix for own, matrix in parts if len(own)])
