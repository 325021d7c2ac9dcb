"""Negatives: pairs of nodes without a link, drawn where links could be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GatasError
from gatas.graph.inputs import Ints

ROUNDS = 100


@dataclass(frozen=True)
class Pools:
    """Which nodes may stand at one end of a link, for each type that is asked for."""

    nodes: Ints  # those of all types, one after the other
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, pools: Sequence[Ints]) -> "Pools":
        sizes = np.array([len(pool) for pool in pools], np.int64)
        return cls(np.concatenate([np.empty(0, np.int64), *pools]), np.cumsum(sizes) - sizes, sizes)

    def fit(self, num_nodes: int) -> bool:
        """Return whether every pool is a part of `nodes`, and these are nodes of a graph of this size."""
        count = len(self.nodes)
        inside = self.nodes.min(initial=0) >= 0 and self.nodes.max(initial=-1) < num_nodes
        starts = self.starts.shape == self.sizes.shape and ((self.starts >= 0) & (self.starts <= count)).all()
        return bool(inside and starts and ((self.sizes >= 0) & (self.sizes <= count - self.starts)).all())

    def draw(self, edge_type: Ints, generator: np.random.Generator) -> Ints:
        """Draw a node for each link of these types."""
        place = (generator.random(len(edge_type)) * self.sizes[edge_type]).astype(np.int64)
        drawn: Ints = self.nodes[self.starts[edge_type] + place]
        return drawn


Ends = tuple[Pools, Pools]
"""Sources and targets."""


def pair_keys(source: NDArray[Any], edge_type: Ints, target: NDArray[Any], num_nodes: int) -> Ints:
    """Return one number for each typed pair."""
    numbers: Ints = (edge_type.astype(np.int64) * num_nodes + source) * num_nodes + target
    return numbers


def draw_pairs(
    edge_type: Ints, known: Ints, num_nodes: int, generator: np.random.Generator, ends: Ends | None = None
) -> tuple[Ints, Ints]:
    """Draw a negative for each type: a pair of any nodes, or of the ends, whose key is not among those `known`, sorted.

    Where all pairs of the ends of a type are links, as in knowledge graphs with rare types, a pair of any nodes is drawn.
    """
    source, target = _drawn(edge_type, num_nodes, generator, ends)
    for pools in (None,) if ends is None else (ends, None):
        for _ in range(ROUNDS):
            wrong = _among(pair_keys(source, edge_type, target, num_nodes), known) | (source == target)
            if not wrong.any():
                return source, target
            source[wrong], target[wrong] = _drawn(edge_type[wrong], num_nodes, generator, pools)
    raise GatasError("nearly all pairs of nodes are links; there are no negatives to tell them from.")


def _drawn(edge_type: Ints, num_nodes: int, generator: np.random.Generator, ends: Ends | None) -> tuple[Ints, Ints]:
    """Draw a pair for each type, a link or not."""
    if ends is None:
        source, target = generator.integers(num_nodes, size=(2, len(edge_type)))
        return source, target
    return ends[0].draw(edge_type, generator), ends[1].draw(edge_type, generator)


def _among(numbers: Ints, known: Ints) -> NDArray[np.bool_]:
    """Return which keys are known; np.isin would sort these again for every draw."""
    if not known.size:
        return np.zeros(len(numbers), np.bool_)
    found: NDArray[np.bool_] = known[np.searchsorted(known, numbers).clip(max=len(known) - 1)] == numbers
    return found
