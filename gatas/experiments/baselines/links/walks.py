"""Uniform random walks along the edges of one type each, and the pairs of nodes that stand near each other in them.

Vectorised: all walks of all types take a step at once, on whatever device the edges are.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gatas.experiments.baselines.links.edges import TypedEdges


class Layers(NamedTuple):
    """Edges by (type, node), on a device."""

    indptr: Tensor  # (T·N + 1,)
    neighbour: Tensor
    num_nodes: int
    num_types: int

    @classmethod
    def of(cls, edges: TypedEdges, device: torch.device) -> "Layers":
        indptr, neighbour = torch.from_numpy(edges.indptr).to(device), torch.from_numpy(edges.target).to(device)
        return cls(indptr, neighbour, edges.num_nodes, edges.num_types)

    def degree(self) -> Tensor:
        """(T·N,)"""
        return self.indptr[1:] - self.indptr[:-1]

    def drawn(self, row: Tensor, generator: torch.Generator) -> Tensor:
        """A random neighbour for each row, which is type · N + node and has one."""
        degree = self.indptr[row + 1] - self.indptr[row]
        chance = torch.rand(row.shape, generator=generator, device=row.device, dtype=torch.float64)
        return self.neighbour[self.indptr[row] + (chance * degree).long().clamp(max=degree - 1)]


def walk(layers: Layers, num_walks: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(W, length) nodes and the (W,) type of each walk: `num_walks` from each node of each type that has an edge of it."""
    starts = layers.degree().nonzero().squeeze(1).repeat(num_walks)
    edge_type, node = starts // layers.num_nodes, starts % layers.num_nodes
    nodes = [node]
    for _ in range(length - 1):
        nodes.append(layers.drawn(edge_type * layers.num_nodes + nodes[-1], generator))
    return torch.stack(nodes, dim=1), edge_type


def pairs_within(nodes: Tensor, edge_type: Tensor, reach: int) -> Tensor:
    """(3, P) centre, type and context for any two places of a walk at most `reach` apart, either being the centre once."""
    found = []
    for distance in range(1, min(reach, nodes.shape[1] - 1) + 1):
        one, other = nodes[:, :-distance].flatten(), nodes[:, distance:].flatten()
        kind = edge_type.repeat_interleave(nodes.shape[1] - distance)
        found += [torch.stack([one, kind, other]), torch.stack([other, kind, one])]
    return torch.cat(found, dim=1)
