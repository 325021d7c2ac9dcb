"""Rows on demand, made on the device that draws from them: the graph's edges are copied there once."""

import warnings
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.errors import GatasWarning
from gatas.sampling.table import CandidateTable
from gatas.transitions import OnDemand, TransitionSource
from gatas.transitions.ahead import ReadAhead
from gatas.transitions.on_device import DeviceBuilder

MAKES_ROWS = {"cuda"}
"""Kinds of devices that make rows on demand themselves; a CPU has kernels for them."""

MOST_WALKS = 1 << 24
"""Walks that are looked at together, some 100 bytes each: 1.7 GB beside the model; those of hubs come in pieces."""


class RowsOnDevice:
    """The rows of batches of targets, made on a device; the last are kept for the next draw."""

    def __init__(self, source: OnDemand, device: torch.device) -> None:
        setting, builder = source.setting, source.builder
        self.builder = DeviceBuilder(builder.graph, setting, device, builder.adjacency.scale, MOST_WALKS)
        walks: NDArray[np.float32] = np.zeros(setting.num_nodes, np.float32)
        for of_step in source.walks:
            walks += of_step
        self.num_walks, self.num_nodes = torch.from_numpy(walks).to(device), setting.num_nodes
        self.last: CandidateTable | None = None

    def table(self, targets: Tensor) -> CandidateTable:
        """Return a table of the rows of some targets, which may repeat; those that are no nodes have none."""
        wanted = torch.unique(targets)
        wanted = wanted[(wanted >= 0) & (wanted < self.num_nodes)]
        if self.last is None or self.last.targets is None or not torch.equal(self.last.targets, wanted):
            self.last = None  # before the next are made, so that there is room
            self.last = self._made(wanted)
        return self.last

    def _made(self, wanted: Tensor) -> CandidateTable:
        rows = self.builder.rows(wanted, self.num_walks[wanted].cpu().numpy())
        num_levels = rows.num_steps + 1
        sizes = rows.indptr[::num_levels].diff()
        longest = int(sizes.max()) if len(sizes) else 0
        return CandidateTable(num_levels, longest, rows.indptr, rows.node, rows.path, rows.probability, wanted)


def rows_on(source: TransitionSource, device: torch.device) -> RowsOnDevice | None:
    """Return what makes the rows of a source on a device; None where they are stored, or made by the host.

    The edges are copied at the first call, and stay for as long as the source does. Where they do not fit, the host goes on
    making rows, and a warning says so.
    """
    demand = source.source if isinstance(source, ReadAhead) else source
    if device.type not in MAKES_ROWS or not isinstance(demand, OnDemand):
        return None
    known = _known.setdefault(demand, {})
    if device not in known:
        known[device] = _copied(demand, device)
    return known[device]


def _copied(source: OnDemand, device: torch.device) -> RowsOnDevice | None:
    try:
        return RowsOnDevice(source, device)
    except torch.OutOfMemoryError:
        graph = source.builder.graph
        size = (graph.neighbour.nbytes + graph.edge_type.nbytes) / 1e9
        warnings.warn(
            f"the graph's edges take {size:.1f} GB, which do not fit on {device}: rows are made by the host, which is slower.",
            GatasWarning,
            stacklevel=2,
        )
        return None


_known: WeakKeyDictionary[OnDemand, dict[torch.device, RowsOnDevice | None]] = WeakKeyDictionary()
