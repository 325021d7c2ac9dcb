"""How far walks go where settings leave it open: as far as the rows of all nodes stay within bounds.

First fewer steps, then walks past hubs, then only the likeliest candidates; where even these do not fit into memory, rows of
nodes are made on demand.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gatas.graph import Graph
from gatas.tasks.config import Degree, ModelConfig
from gatas.tasks.link_paths import MOST_PATHS, count_paths
from gatas.transitions import Transitions
from gatas.transitions.cost import Caps, caps_by_step, entry_bytes, estimate_cost, total_memory, walks_by_step
from gatas.transitions.paths import num_paths

MOST_WALKS = {3: 1e9, 2: 3e8}
"""For links: walks from all nodes together, by the number of their steps, which are some seconds for the table of a fold."""
MOST_LINK_ENTRIES = 1e8
"""For links: entries of a table of three steps, which is read in whole. Walks over the same path to the same node are one."""
SAMPLE, SAMPLED_WALKS = 200, 1e8
"""Nodes whose rows are built to tell how many entries all have, and walks from them together: some tenths of a second."""
PATHS_BY_LINK = 4
"""Typed paths of three steps for each link that their weights are learned from. UMLS has 27, and gets worse by a third step."""
MANY_EDGE_TYPES, FEWEST_EDGES = 32, 64
"""Of so many types of edges three steps say more than two, even if walks stop at nodes with more edges than that."""
MOST_TYPED_PATHS = {3: 1e7, 2: 1e8}
"""For links: pairs of a type of link and a typed path, each of which has three weights in every step of the training."""
LINK_TABLES, SHARE_OF_MEMORY = 3, 0.5
"""Tables of links held at once (of the whole graph, of a fold, of the next); the share of the machine's memory for tables."""
MOST_ENTRIES, MOST_LOOKS = 2e8, 4e9
"""For nodes: entries of one table, some 2 GB, and edges that are looked at to build it, some 10 s."""
DEGREES: tuple[int, ...] = tuple(1 << power for power in range(16, 3, -1))
"""Limits on the edges of nodes that walks go on through, from the largest on."""
CANDIDATES: tuple[int, ...] = tuple(1 << power for power in range(10, 5, -1))
"""Limits on what is kept of each step, from the largest on, where no limit on degrees is enough."""


@dataclass(frozen=True)
class WalkLimits:
    """How many steps the rows of a graph may have; of `links` there are more tables, and less room for each.

    Typed paths have weights for each of `num_types` types of link, learned from `num_links`; 0 types where links are not scored
    by paths.
    """

    graph: Graph
    links: bool
    num_types: int = 0
    num_links: int | None = None
    _entries: dict[tuple[int, int | None], float] = field(default_factory=dict, init=False, compare=False, repr=False)

    def fits(self, num_steps: int, max_degree: int | None) -> bool:
        """Whether the rows of all nodes stay within bounds."""
        if self.links:
            few = count_walks(self.graph, num_steps, max_degree) <= MOST_WALKS.get(num_steps, MOST_WALKS[2])
            few = few and (num_steps < 3 or self.entries(num_steps, max_degree) <= MOST_LINK_ENTRIES)
        else:
            cost = estimate_cost(self.graph, num_steps, max_degree=max_degree)
            few = cost.num_entries <= MOST_ENTRIES and cost.num_walks <= MOST_LOOKS
        return few and self.fits_memory(num_steps, max_degree)

    def fits_memory(self, num_steps: int, max_degree: int | None, max_candidates: Caps = None) -> bool:
        """Whether tables of all rows have room in their share of the machine's memory."""
        if self.links:
            entries = self.entries(num_steps, max_degree)
            if max_candidates is not None:
                entries = min(entries, count_walks(self.graph, num_steps, max_degree, max_candidates))
            needed = LINK_TABLES * entries * entry_bytes(self.graph.num_relations, num_steps)
        else:
            needed = estimate_cost(self.graph, num_steps, None, max_candidates, max_degree).num_bytes
        return needed <= SHARE_OF_MEMORY * total_memory()

    def entries(self, num_steps: int, max_degree: int | None) -> float:
        """Return how many entries rows have: at most as many as walks; of many walks, estimated by the rows of some nodes."""
        asked = num_steps, max_degree
        if asked not in self._entries:
            walks = count_walks(self.graph, num_steps, max_degree)
            if num_steps > 2 and walks > MOST_LINK_ENTRIES:
                walks = min(walks, sampled_entries(self.graph, num_steps, max_degree))
            self._entries[asked] = walks
        return self._entries[asked]

    def fits_paths(self, num_steps: int, *, on_demand: bool = False) -> bool:
        """Whether typed paths are few enough to have weights for each type; rows made `on_demand` may have any of them."""
        return not self.num_types or (self._has_weights(num_steps, on_demand) and self._has_links(num_steps, on_demand))

    def _has_weights(self, num_steps: int, on_demand: bool) -> bool:
        every = num_paths(self.graph.num_relations, num_steps)
        most = MOST_TYPED_PATHS.get(num_steps, MOST_TYPED_PATHS[2])
        if every <= MOST_PATHS and every * self.num_types <= most:
            return True
        if every > MOST_PATHS or on_demand:
            return False
        return self._num_paths[num_steps] * self.num_types <= most

    def _has_links(self, num_steps: int, on_demand: bool) -> bool:
        if num_steps < 3 or self.num_links is None or on_demand:
            return True
        most = PATHS_BY_LINK * self.num_links
        return num_paths(self.graph.num_relations, num_steps) <= most or self._num_paths[num_steps] <= most

    @cached_property
    def _num_paths(self) -> dict[int, int]:
        return {steps: count_paths(self.graph, steps) for steps in (1, 2, 3)}

    def steps(self, max_degree: Degree) -> int:
        """Return three steps where these fit, else two; one where typed paths of two are too many.

        Where the limit on degrees is open, three also fit if they do past hubs, in graphs of many types of edges.
        """
        limit = None if max_degree == "auto" else max_degree
        if self.fits_paths(3) and (self.fits(3, limit) or (max_degree == "auto" and self._fits_past_hubs())):
            return 3
        return 2 if self.fits_paths(2) else 1

    def _fits_past_hubs(self) -> bool:
        typed = self.links and self.num_types and self.graph.num_edge_types >= MANY_EDGE_TYPES
        return bool(typed) and self.fits(3, FEWEST_EDGES)

    def steps_on_demand(self) -> int:
        """Return how many steps rows have that are made when they are needed: three unless typed paths are too many."""
        return next((steps for steps in (3, 2) if self.fits_paths(steps, on_demand=True)), 1)

    def reason(self, steps: int, max_degree: Degree) -> str:
        """Return why walks have so many steps, in words."""
        limit = None if max_degree == "auto" else max_degree
        if steps == 3:
            return "three fit" if self.fits(3, limit) else "three fit past hubs, and edges have many types"
        if steps == 2 and self.num_types and not self._has_links(3, on_demand=False):
            return f"typed paths of three are too many for {self.num_links:,} links to learn their weights from"
        if steps == 2 and not self.fits(3, limit):
            return "the walks of three are too many"
        return f"typed paths of {('two', 'three')[steps - 1]} are too many for {self.num_types:,} types of links"

    def degree(self, num_steps: int) -> int | None:
        """Return the limit on degrees that keeps rows within bounds; None where they are without one."""
        if self.fits(num_steps, None):
            return None
        return next((degree for degree in DEGREES if self.fits(num_steps, degree)), DEGREES[-1])

    def candidates(self, num_steps: int, max_degree: int | None) -> int | None:
        """Return how many of each step make a table that memory has room for; None where there is no such number."""
        return next((most for most in CANDIDATES if self.fits_memory(num_steps, max_degree, most)), None)


class Resolved(NamedTuple):
    """Settings with numbers in place of `auto`, and why; whether rows are better made when they are needed."""

    config: ModelConfig
    reasons: list[str]
    on_demand: bool = False


ON_DEMAND = "transitions: made on demand for each batch, since a table of them does not fit into memory"


def resolved(config: ModelConfig, limits: WalkLimits) -> Resolved:
    """Settle what is `auto`: three steps where they fit, else two, past fewer hubs, and of these the likeliest candidates."""
    changed, reasons = dict[str, int | None](), list[str]()
    if config.num_steps == "auto":
        changed["num_steps"] = steps = limits.steps(config.max_degree)
        reasons.append(f"num_steps: {steps}, since {limits.reason(steps, config.max_degree)}")
    if config.max_degree != "auto":
        return Resolved(config.model_copy(update=changed), reasons)
    steps = changed.get("num_steps") or config.num_steps  # type: ignore[assignment]
    degree = changed["max_degree"] = limits.degree(steps)
    on_demand = False
    if degree is None:
        reasons.append("max_degree: null, since walks through all nodes fit")
    else:
        reasons.append(f"max_degree: {degree}, since walks through all nodes are too many")
        if config.max_candidates is None and not limits.fits_memory(steps, degree):
            changed["max_candidates"] = most = limits.candidates(steps, degree)
            if most is not None:
                reasons.append(f"max_candidates: {most}, since a table of all does not fit into memory")
            on_demand = most is None and not limits.links
    if on_demand:
        reasons.append(ON_DEMAND)
    return Resolved(config.model_copy(update=changed), reasons, on_demand)


def scored_by_paths(config: ModelConfig) -> bool:
    """Whether typed paths are a part of the score of links."""
    return config.link_score == "auto" or "paths" in config.link_score


def sampled_entries(graph: Graph, num_steps: int, max_degree: int | None) -> float:
    """Estimate how many entries the rows of all nodes have, by those of some: as many with few walks as with many."""
    walks = np.sum(walks_by_step(graph, num_steps, max_degree, None), axis=0)
    count = int(np.clip(SAMPLED_WALKS / walks.mean(), 1, min(SAMPLE, graph.num_nodes)))
    places = ((np.arange(count) + 0.5) * graph.num_nodes / count).astype(np.int64)
    targets = np.sort(np.argsort(walks, kind="stable")[places])
    limits: Any = {"max_degree": max_degree, "revisits": True, "progress": lambda share: None}
    table = Transitions.build(graph, num_steps, targets=targets, **limits)
    return table.num_entries / count * graph.num_nodes


def count_walks(graph: Graph, num_steps: int, max_degree: int | None, max_candidates: Caps = None) -> float:
    """Return how many walks of up to `num_steps` steps leave all nodes together; of each step so many at most."""
    caps = caps_by_step(max_candidates, num_steps)
    walks = walks_by_step(graph, num_steps, max_degree, None)
    return float(sum(np.minimum(of_step, cap).sum() for of_step, cap in zip(walks, caps, strict=True)))
