"""`CandidateTable`: rows of transitions as tensors, on the device that draws from them."""

import warnings
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.errors import TransitionError
from gatas.ops.torch_private import assert_on_device, unwrapped
from gatas.transitions import Rows, Transitions


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """The columns of `Rows` on one device, and whose rows they are."""

    num_levels: int  # C + 1
    longest: int  # entries in the longest row
    indptr: Tensor
    node: Tensor
    path: Tensor
    probability: Tensor
    targets: Tensor | None  # ascending; None: every node has a row

    @property
    def num_rows(self) -> int:
        return (len(self.indptr) - 1) // self.num_levels

    def positions(self, targets: Tensor) -> Tensor:
        """The row of each target, or -1, which is an error: raised here, or by the GPU when it gets there.

        Nothing is checked while a CUDA graph is captured: in its replays a target without a row has no neighbours.
        """
        positions = self._search(targets)
        if not positions.is_cuda:
            self._refuse_missing(targets, positions)
        elif not torch.cuda.is_current_stream_capturing():
            found = unwrapped(positions >= 0).all()
            assert_on_device(found, "a target has no row in the table, or is not a node at all")
        return positions

    def counts(self, positions: Tensor) -> Tensor:
        """(B, C + 1) how many entries each step of a row has."""
        levels = positions.clamp(min=0)[:, None] * self.num_levels + torch.arange(self.num_levels, device=positions.device)
        return self.indptr[levels + 1] - self.indptr[levels]

    def longest_of(self, positions: Tensor) -> int:
        """Entries in the longest of some rows, at least 1. Waits for the device."""
        sizes = unwrapped(self.counts(positions).sum(-1))
        return max(1, int(sizes.max())) if sizes.numel() else 1

    def _refuse_missing(self, targets: Tensor, positions: Tensor) -> None:
        if unwrapped(positions < 0).any():
            node = int(unwrapped(torch.where(positions < 0, targets, -1)).max())
            raise TransitionError(
                f"node {node} has no row: the table was built for {self.num_rows} nodes. "
                "Build it with that node among `targets`."
            )

    def _search(self, targets: Tensor) -> Tensor:
        if self.num_rows == 0:
            return torch.full_like(targets, -1)
        if self.targets is None:
            return torch.where((targets >= 0) & (targets < self.num_rows), targets, -1)
        compact = targets.clone(memory_format=torch.contiguous_format)  # `contiguous` looks at one model's part only
        places = torch.searchsorted(self.targets, compact).clamp(max=self.num_rows - 1)
        return torch.where(self.targets[places] == targets, places, -1)


def stored_table(source: Transitions, device: torch.device) -> CandidateTable:
    """A whole table: its own memory on a CPU, on a GPU a copy, made once and kept for as long as the source."""
    tables = _stored.setdefault(source, {})
    if device not in tables:
        try:
            tables[device] = make_table(source.shards, source.targets, device)
        except torch.OutOfMemoryError as error:
            raise TransitionError(
                f"the table has {source.num_bytes / 1e9:.1f} GB, which do not fit on {device}. Build it with max_candidates, "
                "or pass OnDemand, which makes the rows of a batch."
            ) from error
    return tables[device]


def uniform_table(table: CandidateTable) -> CandidateTable:
    """The same candidates, those of each step alike likely; made once for a table that is kept."""
    if table not in _uniform:
        counts = table.indptr.diff()
        shares = (1 / counts).to(table.probability.dtype)
        probability = torch.repeat_interleave(shares, counts, output_size=len(table.node))
        _uniform[table] = replace(table, probability=probability)
    return _uniform[table]


_uniform: WeakKeyDictionary[CandidateTable, CandidateTable] = WeakKeyDictionary()
_stored: WeakKeyDictionary[Transitions, dict[torch.device, CandidateTable]] = WeakKeyDictionary()


def make_table(shards: tuple[Rows, ...], targets: NDArray[np.int64] | None, device: torch.device) -> CandidateTable:
    """Shards, one after another; `targets` are ascending."""
    num_levels = shards[0].num_steps + 1
    starts = np.cumsum([0, *(len(shard.node) for shard in shards)])
    later = [shard.indptr[1:] + start for shard, start in zip(shards[1:], starts[1:-1], strict=True)]
    return CandidateTable(
        num_levels,
        max(int(np.diff(shard.indptr[::num_levels]).max(initial=0)) for shard in shards),
        _joined([shards[0].indptr, *later], device),
        _joined([shard.node for shard in shards], device),
        _joined([shard.path for shard in shards], device),
        _joined([shard.probability for shard in shards], device),
        None if targets is None else _joined([targets], device),
    )


def _joined(pieces: list[NDArray[Any]], device: torch.device) -> Tensor:
    """Arrays one after another on a device; a single one on a CPU is not copied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # mapped files are read-only, and nothing here writes
        tensors = [torch.from_numpy(piece) for piece in pieces]
    if len(tensors) == 1:
        return tensors[0].to(device)
    sizes = [len(tensor) for tensor in tensors]
    joined = tensors[0].new_empty(sum(sizes), device=device)
    for part, tensor in zip(torch.split(joined, sizes), tensors, strict=True):
        part.copy_(tensor)
    return joined
