"""Transition rows computed with torch, for a graph on a GPU: expand, mask, sort, add up; on a CPU for testing."""

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

WALKS_PER_BLOCK = {"cuda": 1 << 26, "cpu": 1 << 22}
BLOCK_VISITED = 1 << 30
"""Bytes for the (target, node) table of a block that says what was reached before."""

TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Edges:
    """The graph's edges on the device; `share` is what part of a node's mass an edge carries."""

    num_nodes: int
    num_relations: int
    max_degree: int
    counts: bool  # or probabilities
    revisits: bool
    indptr: Tensor
    neighbour: Tensor
    edge_type: Tensor
    share: Tensor  # float64


@dataclass(frozen=True)
class States:
    """(row, path, node) reached at one step, ascending, each once."""

    row: Tensor
    path: Tensor
    node: Tensor
    mass: Tensor  # float64


def build_rows(graph: Graph, walks: Walks, targets: Ints, device: str, report: ProgressCallback) -> Rows:
    """Rows as `Builder.rows` makes them, to float32 precision; block by block, so that memory on the device is bounded."""
    try:
        where = torch.device(device)
        torch.zeros(1, device=where).cpu()
        edges = _to_device(graph, walks, where)
    except (RuntimeError, AssertionError) as error:
        raise TransitionError(f"the device {device!r} cannot be used: {str(error).splitlines()[0]}") from error
    num_steps = walks.num_steps
    cost = estimate_cost(graph, num_steps, targets, walks.max_candidates, walks.max_degree)
    refuse_if_too_large(cost.num_entries, cost.num_bytes, "up to")
    wanted = torch.from_numpy(targets).to(where)
    paths = torch.from_numpy(np.empty(0, path_dtype(graph.num_relations, num_steps))).dtype
    caps = caps_by_step(walks.max_candidates, num_steps)
    parts = []
    for first, last in _blocks(cost.walks, graph.num_nodes, where.type):
        parts.append(_block_rows(edges, wanted[first:last], num_steps, caps, paths))
        report(last / len(targets))
    counts, node, path, probability, dropped = (
        (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else _nothing(num_steps)
    )
    return Rows(num_steps, np.concatenate([[0], np.cumsum(counts)]), node, path, probability, dropped)


def _to_device(graph: Graph, walks: Walks, device: torch.device) -> Edges:
    scale = inverse_degree(graph, 0, graph.num_nodes) if walks.kind == "walk" else np.ones(graph.num_nodes)
    share = scale[graph.source] * (1.0 if graph.weight is None else graph.weight.astype(np.float64))
    arrays = (graph.indptr, graph.neighbour.astype(np.int64), graph.edge_type.astype(np.int64), share)
    tensors = [torch.from_numpy(array.copy()).to(device) for array in arrays]
    most = walks.max_degree or NO_LIMIT
    return Edges(graph.num_nodes, graph.num_relations, most, walks.kind == "count", walks.revisits, *tensors)


def _blocks(walks: NDArray[np.float64], num_nodes: int, kind: str) -> list[tuple[int, int]]:
    """Ranges of targets within the limits on walks and on the table of visited nodes."""
    most_rows = max(1, BLOCK_VISITED // num_nodes)
    total = np.cumsum(walks)
    blocks, first = [], 0
    while first < len(walks):
        before = total[first - 1] if first else 0.0
        last = int(np.searchsorted(total, before + WALKS_PER_BLOCK.get(kind, 1 << 22), side="right"))
        last = min(max(last, first + 1), first + most_rows, len(walks))
        blocks.append((first, last))
        first = last
    return blocks


def _block_rows(edges: Edges, targets: Tensor, num_steps: int, caps: Ints, paths: torch.dtype) -> tuple[NDArray[Any], ...]:
    """Counts by (row, step), nodes, paths, probabilities and dropped mass of one block, as numpy arrays."""
    rows = torch.arange(len(targets), device=targets.device)
    visited = torch.zeros(len(targets) * edges.num_nodes, dtype=torch.bool, device=targets.device)
    states = States(rows, torch.full_like(rows, -1), targets, torch.ones_like(rows, dtype=torch.float64))
    levels = [States(rows, torch.zeros_like(rows), targets, states.mass)]
    dropped = torch.zeros(len(targets), num_steps + 1, dtype=torch.float64, device=targets.device)
    before = states
    for step in range(1, num_steps + 1):
        reached = before if edges.revisits else states
        visited[reached.row * edges.num_nodes + reached.node] = True
        before = states
        stopped = torch.zeros_like(dropped[:, step])
        if step > 1 and edges.max_degree < NO_LIMIT:
            states = _walked_on(edges, states, stopped)
        states = _merged(_expanded(edges, states, visited), edges.num_nodes)
        states, dropped[:, step] = _normalised(states, stopped)
        kept = states
        if caps[step] < NO_LIMIT:
            kept, lost = _likeliest(states, int(caps[step]))
            dropped[:, step].index_add_(0, lost.row, lost.mass)
        levels.append(kept)
    counts = torch.stack([torch.bincount(level.row, minlength=len(targets)) for level in levels], dim=1)
    order = torch.sort(torch.cat([level.row for level in levels]), stable=True).indices
    node, path, mass = (torch.cat([getattr(level, name) for level in levels])[order] for name in ("node", "path", "mass"))
    columns = (counts.flatten(), node.int(), path.to(paths), mass.float().clamp_min(TINY), dropped.float())
    return tuple(column.cpu().numpy() for column in columns)


def _walked_on(edges: Edges, states: States, stopped: Tensor) -> States:
    """Those at nodes with few enough edges; what mass the others would send on is added to what is stopped of their rows."""
    degree = edges.indptr[states.node + 1] - edges.indptr[states.node]
    many = degree > edges.max_degree
    sent = states.mass * degree if edges.counts else states.mass
    stopped.index_add_(0, states.row[many], sent[many])
    return States(states.row[~many], states.path[~many], states.node[~many], states.mass[~many])


def _expanded(edges: Edges, states: States, visited: Tensor) -> States:
    """Every edge out of every state, unless it leads to a visited node (eq. 2)."""
    first = edges.indptr[states.node]
    degree = edges.indptr[states.node + 1] - first
    state = torch.repeat_interleave(torch.arange(len(degree), device=degree.device), degree)
    begin = torch.cumsum(degree, 0) - degree
    edge = torch.arange(len(state), device=degree.device) - begin[state] + first[state]
    row, node = states.row[state], edges.neighbour[edge]
    new = ~visited[row * edges.num_nodes + node]
    if edges.revisits:  # self-edges, whose nodes are not among the visited yet
        new &= node != states.node[state]
    state, edge, row, node = state[new], edge[new], row[new], node[new]
    path = (states.path[state] + 1) * edges.num_relations + edges.edge_type[edge] + 1
    return States(row, path, node, states.mass[state] * edges.share[edge])


def _merged(states: States, num_nodes: int) -> States:
    """Equal (row, path, node) become one. Stable sorts and sums in order: the same bits every time."""
    if not len(states.row):
        return states
    paths, path = torch.unique(states.path, return_inverse=True)  # few, so that one key holds row, path and node
    key = (states.row * len(paths) + path) * num_nodes + states.node
    key, order = torch.sort(key, stable=True)
    key, counts = torch.unique_consecutive(key, return_counts=True)
    mass = torch.segment_reduce(states.mass[order], "sum", lengths=counts)
    rest = torch.div(key, num_nodes, rounding_mode="floor")
    row = torch.div(rest, len(paths), rounding_mode="floor")
    return States(row, paths[rest - row * len(paths)], key - rest * num_nodes, mass)


def _normalised(states: States, stopped: Tensor) -> tuple[States, Tensor]:
    """Ψ of §3.3: each row's masses and what was stopped of it add up to 1; the latter's shares."""
    counts = torch.bincount(states.row, minlength=len(stopped))
    mass = states.mass.clamp_min(1e-300)  # as in `kernels.normalise`
    total = torch.segment_reduce(mass, "sum", lengths=counts, initial=0.0) + stopped
    share = torch.where(stopped > 0, stopped / total, 0.0)
    return States(states.row, states.path, states.node, mass / total[states.row]), share


def _likeliest(states: States, keep: int) -> tuple[States, States]:
    """The likeliest of each row, the first of equals, and the rest; both in order."""
    order = torch.sort(states.mass.float(), descending=True, stable=True).indices
    order = order[torch.sort(states.row[order], stable=True).indices]
    row = states.row[order]
    counts = torch.bincount(row)
    rank = torch.arange(len(row), device=row.device) - (torch.cumsum(counts, 0) - counts)[row]
    chosen = torch.zeros_like(row, dtype=torch.bool)
    chosen[order] = rank < keep
    columns = (states.row, states.path, states.node, states.mass)
    return States(*(column[chosen] for column in columns)), States(*(column[~chosen] for column in columns))


def _nothing(num_steps: int) -> tuple[NDArray[Any], ...]:
    return (
        np.empty(0, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.int16),
        np.empty(0, np.float32),
        np.empty((0, num_steps + 1), np.float32),
    )
