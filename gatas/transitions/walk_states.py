"""`States`: what walks of several targets have reached on a device, and how they go on: expanded, merged, normalised, cut.

All in torch operations on whole tensors. Sums go over sorted states in their order, so that they have the same bits every time.
Shapes follow from the data, so the host reads a few sizes for each step; nothing else of it is waited for.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class DeviceEdges:
    """A graph's edges on a device."""

    num_nodes: int
    num_relations: int
    num_paths: int  # up to C steps
    indptr: Tensor
    neighbour: Tensor  # int32
    edge_type: Tensor
    scale: Tensor  # (N,) float64: what part of a node's mass an edge of weight 1 carries
    weight: Tensor | None
    max_degree: int
    counts: bool  # or probabilities
    revisits: bool


@dataclass(frozen=True)
class States:
    """(row, path, node) reached at one step, ascending, each once."""

    row: Tensor
    path: Tensor
    node: Tensor
    mass: Tensor  # float64

    def part(self, chosen: Tensor) -> "States":
        """Return some of the states, by place."""
        return States(self.row[chosen], self.path[chosen], self.node[chosen], self.mass[chosen])


def sums_by_row(states: States, values: Tensor, num_rows: int) -> Tensor:
    """Add up a value of each state over its row."""
    return torch.segment_reduce(values, "sum", lengths=counts_by_row(states, num_rows), initial=0.0, unsafe=True)


def counts_by_row(states: States, num_rows: int) -> Tensor:
    """Count the states of each row."""
    rows = torch.arange(num_rows + 1, device=states.row.device)
    return torch.searchsorted(states.row, rows).diff()


def reached_keys(edges: DeviceEdges, visited: Tensor, states: States) -> Tensor:
    """Add what was reached to the visited: (row, node) as one number, ascending."""
    return torch.sort(torch.cat([visited, states.row * edges.num_nodes + states.node])).values


def walked_on(edges: DeviceEdges, states: States, num_rows: int) -> tuple[States, Tensor]:
    """Return those at nodes with few enough edges, and what mass the others of each row would send on."""
    degree = edges.indptr[states.node + 1] - edges.indptr[states.node]
    many = degree > edges.max_degree
    sent = states.mass * degree if edges.counts else states.mass
    stopped = sums_by_row(states, torch.where(many, sent, 0.0), num_rows)
    return states.part(torch.nonzero(~many).flatten()), stopped


def next_states(edges: DeviceEdges, states: States, visited: Tensor, num_rows: int, most: int) -> States:
    """Walk over every edge out of every state, unless it leads to a visited node (eq. 2); at most so many at a time."""
    first = edges.indptr[states.node]
    ends = (edges.indptr[states.node + 1] - first).cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    parts = []
    for begin in range(0, total, most):
        walks = torch.arange(begin, min(begin + most, total), device=ends.device)
        reached = merged(edges, expanded(edges, states, first, ends, walks), num_rows)
        parts.append(unvisited(edges, reached, visited))
    if len(parts) == 1:
        return parts[0]
    columns = ("row", "path", "node", "mass")
    none = States(first[:0], first[:0], first[:0], states.mass[:0])
    return merged(edges, States(*(torch.cat([getattr(part, name) for part in parts or [none]]) for name in columns)), num_rows)


def expanded(edges: DeviceEdges, states: States, first: Tensor, ends: Tensor, walks: Tensor) -> States:
    """Return what some walks reach; they are numbered by the states that they go on from, whose edges begin at `first`."""
    state = torch.searchsorted(ends, walks, right=True)
    origin = states.node[state]
    edge = walks - ends[state] + edges.indptr[origin + 1]
    node = edges.neighbour[edge].long()
    mass = states.mass[state] * edges.scale[origin]
    mass = mass if edges.weight is None else mass * edges.weight[edge]
    path = (states.path[state] + 1) * edges.num_relations + edges.edge_type[edge].long() + 1
    reached = States(states.row[state], path, node, mass)
    if edges.revisits:  # self-edges, whose nodes are not among the visited yet
        return reached.part(torch.nonzero(node != origin).flatten())
    return reached


def merged(edges: DeviceEdges, states: States, num_rows: int) -> States:
    """Make one of equal (row, path, node), and sort them."""
    if not len(states.row):
        return states
    path, num_paths = states.path, edges.num_paths
    if num_rows * num_paths * edges.num_nodes >= 2**63:  # so that one number holds row, path and node
        paths, path = torch.unique(path, return_inverse=True)
        num_paths = len(paths)
    key, order = torch.sort((states.row * num_paths + path) * edges.num_nodes + states.node, stable=True)
    new = torch.ones_like(key, dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    starts = torch.nonzero(new).flatten()
    lengths = torch.cat([starts, starts.new_full((1,), len(key))]).diff()
    mass = torch.segment_reduce(states.mass[order], "sum", lengths=lengths, unsafe=True)
    chosen = order[starts]
    return States(states.row[chosen], states.path[chosen], states.node[chosen], mass)


def unvisited(edges: DeviceEdges, states: States, visited: Tensor) -> States:
    """Leave out what was reached before."""
    key = states.row * edges.num_nodes + states.node
    place = torch.searchsorted(visited, key).clamp_max(len(visited) - 1)
    return states.part(torch.nonzero(visited[place] != key).flatten())


def normalised(states: States, stopped: Tensor) -> tuple[States, Tensor]:
    """Ψ of §3.3: each row's masses and what was stopped of it add up to 1; the latter's shares."""
    mass = states.mass.clamp_min(1e-300)  # as in `kernels.normalise`
    scale = 1.0 / (sums_by_row(states, mass, len(stopped)) + stopped)
    share = torch.where(stopped > 0, stopped * scale, 0.0)
    return States(states.row, states.path, states.node, mass * scale[states.row]), share


def likeliest(states: States, keep: int, num_rows: int) -> tuple[States, Tensor]:
    """Return the likeliest of each row, the first of equals, in order; and the mass of the rest of each row."""
    order = torch.sort(states.mass.float(), descending=True, stable=True).indices
    order = order[torch.sort(states.row[order], stable=True).indices]
    counts = counts_by_row(states, num_rows)
    rank = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[states.row]  # rows lie in order
    chosen = torch.zeros_like(order, dtype=torch.bool)
    chosen[order] = rank < keep
    lost = sums_by_row(states, torch.where(chosen, 0.0, states.mass), num_rows)
    return states.part(torch.nonzero(chosen).flatten()), lost
