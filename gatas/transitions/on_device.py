"""`DeviceBuilder`: transition rows computed with torch, for a graph on a GPU, or on a CPU for testing."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.errors import TransitionError
from gatas.graph import Graph
from gatas.graph.inputs import Ints
from gatas.progress import ProgressCallback
from gatas.transitions.build import Rows, Walks, inverse_degree
from gatas.transitions.cost import NO_LIMIT, caps_by_step, estimate_cost, path_dtype, refuse_if_too_large
from gatas.transitions.paths import num_paths
from gatas.transitions.walk_states import (
    DeviceEdges,
    States,
    counts_by_row,
    likeliest,
    next_states,
    normalised,
    reached_keys,
    walked_on,
)

MOST_WALKS = {"cuda": 1 << 26, "cpu": 1 << 22}
"""Walks that are looked at together in a build, some 100 bytes each; a single target's come in pieces where they are more."""

TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """What `Rows` holds, as tensors on a device."""

    num_steps: int
    indptr: Tensor
    node: Tensor
    path: Tensor
    probability: Tensor
    dropped_mass: Tensor

    def on_host(self) -> Rows:
        """Copy the rows to the host."""
        columns = (self.indptr, self.node, self.path, self.probability, self.dropped_mass)
        return Rows(self.num_steps, *(column.cpu().numpy() for column in columns))


class DeviceBuilder:
    """A graph's edges on a device, to build the rows of any targets there: 6 bytes an edge (10 with weights), 16 a node.

    Args:
        graph: The graph.
        walks: Which walks make a row, and how much is kept of it.
        device: Where rows are built.
        scale: What part of a node's mass an edge of weight 1 carries: of each node.
        most: Walks that are looked at together.
    """

    def __init__(self, graph: Graph, walks: Walks, device: torch.device, scale: NDArray[np.float64], most: int) -> None:
        self.walks, self.device, self.most = walks, device, most
        self.edges = DeviceEdges(
            num_nodes=graph.num_nodes,
            num_relations=graph.num_relations,
            num_paths=num_paths(graph.num_relations, walks.num_steps),
            indptr=_placed(graph.indptr, device),
            neighbour=_placed(graph.neighbour, device),
            edge_type=_placed(graph.edge_type, device),
            scale=_placed(scale, device),
            weight=None if graph.weight is None else _placed(graph.weight, device),
            max_degree=walks.max_degree or NO_LIMIT,
            counts=walks.kind == "count",
            revisits=walks.revisits,
        )
        self.caps = caps_by_step(walks.max_candidates, walks.num_steps).tolist()
        self.path_type = torch.from_numpy(np.empty(0, path_dtype(graph.num_relations, walks.num_steps))).dtype

    def rows(self, targets: Tensor, num_walks: NDArray[np.floating[Any]]) -> DeviceRows:
        """Build the rows of targets on the device, as `Builder.rows` does, to the precision of float32.

        `num_walks` bounds those of each target: so many targets are walked from at once as memory is meant to hold.
        """
        try:
            blocks = [self._block(targets[first:last]) for first, last in self.blocks(num_walks)]
        except torch.OutOfMemoryError as error:
            raise TransitionError(
                f"the rows of {len(targets)} targets do not fit on {self.device}. Set max_degree, so that walks do not go on "
                "through hubs, or max_candidates, or take smaller batches."
            ) from error
        return self.joined(blocks or [self._block(targets)])

    def blocks(self, num_walks: NDArray[np.floating[Any]]) -> Iterator[tuple[int, int]]:
        """Give ranges of targets of about so many walks together as are looked at, or of a single target."""
        total, first = np.cumsum(num_walks, dtype=np.float64), 0
        while first < len(total):
            before = total[first - 1] if first else 0.0
            last = max(int(np.searchsorted(total, before + self.most, side="right")), first + 1)
            yield first, last
            first = last

    def joined(self, blocks: list[DeviceRows]) -> DeviceRows:
        """Put rows after one another."""
        counts = torch.cat([block.indptr.diff() for block in blocks])
        names = ("node", "path", "probability", "dropped_mass")
        columns = (torch.cat([getattr(block, name) for block in blocks]) for name in names)
        return DeviceRows(self.walks.num_steps, _indptr(counts), *columns)

    def _block(self, targets: Tensor) -> DeviceRows:
        count = len(targets)
        levels, dropped = self._levels(targets)
        counts = torch.stack([counts_by_row(level, count) for level in levels], dim=1)
        order = torch.sort(torch.cat([level.row for level in levels]), stable=True).indices
        node, path, mass = (torch.cat([getattr(level, name) for level in levels])[order] for name in ("node", "path", "mass"))
        columns = (node.int(), path.to(self.path_type), mass.float().clamp_min(TINY), dropped.float())
        return DeviceRows(self.walks.num_steps, _indptr(counts.flatten()), *columns)

    def _levels(self, targets: Tensor) -> tuple[list[States], Tensor]:
        """Walk step by step; return what is kept of each, and (rows, C + 1) the mass of what is not."""
        edges, count = self.edges, len(targets)
        rows = torch.arange(count, device=targets.device)
        states = States(rows, torch.full_like(rows, -1), targets, torch.ones_like(rows, dtype=torch.float64))
        levels, before, visited = [States(rows, torch.zeros_like(rows), targets, states.mass)], states, rows[:0]
        nothing = torch.zeros_like(states.mass)
        dropped = [nothing]
        for step, keep in enumerate(self.caps[1:], 1):
            visited = reached_keys(edges, visited, before if edges.revisits else states)
            before, stopped = states, nothing
            if step > 1 and edges.max_degree < NO_LIMIT:
                states, stopped = walked_on(edges, states, count)
            states, share = normalised(next_states(edges, states, visited, count, self.most), stopped)
            kept, lost = (states, nothing) if keep == NO_LIMIT else likeliest(states, keep, count)
            levels.append(kept)
            dropped.append(share + lost)
        return levels, torch.stack(dropped, dim=1)


def build_rows(graph: Graph, walks: Walks, targets: Ints, device: str, report: ProgressCallback) -> Rows:
    """Build rows on a device and copy them to the host, block by block."""
    try:
        where = torch.device(device)
        torch.zeros(1, device=where).cpu()
        scale = inverse_degree(graph, 0, graph.num_nodes) if walks.kind == "walk" else np.ones(graph.num_nodes)
        builder = DeviceBuilder(graph, walks, where, scale, MOST_WALKS.get(where.type, 1 << 22))
    except (RuntimeError, AssertionError) as error:
        raise TransitionError(f"the device {device!r} cannot be used: {str(error).splitlines()[0]}") from error
    cost = estimate_cost(graph, walks.num_steps, targets, walks.max_candidates, walks.max_degree)
    refuse_if_too_large(cost.num_entries, cost.num_bytes, "up to")
    wanted, parts = torch.from_numpy(targets), []
    for first, last in builder.blocks(cost.walks) if len(targets) else [(0, 0)]:
        parts.append(builder.rows(wanted[first:last].to(where), cost.walks[first:last]).on_host())
        report(last / max(len(targets), 1))
    sizes = np.concatenate([np.diff(part.indptr) for part in parts])
    names = ("node", "path", "probability", "dropped_mass")
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return Rows(walks.num_steps, np.concatenate([[0], np.cumsum(sizes)]), *columns)


def _indptr(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _placed(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on a device; on a CPU its own memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # mapped files are read-only, and nothing here writes
        return torch.from_numpy(array).to(device)
