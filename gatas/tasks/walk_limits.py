"""How far walks go where settings leave it open: as far as the rows of all nodes stay within bounds."""

from dataclasses import dataclass

from gatas.graph import Graph
from gatas.tasks.config import ModelConfig
from gatas.transitions.cost import entry_bytes, estimate_cost, total_memory, walks_by_step

MOST_WALKS = {3: 1e8, 2: 3e8}
"""For links: walks from all nodes together, by the number of their steps. There is a table for every fold, read in whole."""
LINK_TABLES, SHARE_OF_MEMORY = 3, 0.5
"""Tables of links held at once (of the whole graph, of a fold, of the next), and their share of the machine's memory."""
MOST_ENTRIES, MOST_LOOKS = 2e8, 4e9
"""For nodes: entries of one table, some 2 GB, and edges that are looked at to build it, some 10 s."""
DEGREES: tuple[int, ...] = tuple(1 << power for power in range(16, 3, -1))
"""Limits on the edges of nodes that walks go on through, from the largest on."""


@dataclass(frozen=True)
class WalkLimits:
    """How many steps the rows of a graph may have; of `links` there are more tables, and less room for each."""

    graph: Graph
    links: bool

    def fits(self, num_steps: int, max_degree: int | None) -> bool:
        """Whether the rows of all nodes stay within bounds."""
        if self.links:
            walks = count_walks(self.graph, num_steps, max_degree)
            needed = LINK_TABLES * walks * entry_bytes(self.graph.num_relations, num_steps)
            return walks <= MOST_WALKS.get(num_steps, MOST_WALKS[2]) and needed <= SHARE_OF_MEMORY * total_memory()
        cost = estimate_cost(self.graph, num_steps, max_degree=max_degree)
        return cost.num_entries <= MOST_ENTRIES and cost.num_walks <= MOST_LOOKS

    def steps(self, max_degree: int | None) -> int:
        """Return three steps where these fit, else two."""
        return 3 if self.fits(3, max_degree) else 2

    def degree(self, num_steps: int) -> int | None:
        """Return the limit on degrees that keeps rows within bounds; None where they are without one."""
        if self.fits(num_steps, None):
            return None
        return next((degree for degree in DEGREES if self.fits(num_steps, degree)), DEGREES[-1])


def resolved(config: ModelConfig, graph: Graph, *, links: bool) -> tuple[ModelConfig, list[str]]:
    """Return settings with numbers in place of `auto`, and why: three steps where they fit, else two, past fewer hubs."""
    limits, changed, reasons = WalkLimits(graph, links), dict[str, int | None](), list[str]()
    if config.num_steps == "auto":
        steps = limits.steps(None if config.max_degree == "auto" else config.max_degree)
        changed["num_steps"] = steps
        reasons.append(f"num_steps: {steps}, since {'three fit' if steps == 3 else 'the walks of three are too many'}")
    if config.max_degree == "auto":
        steps = changed.get("num_steps") or config.num_steps  # type: ignore[assignment]
        degree = changed["max_degree"] = limits.degree(steps)
        if degree is not None:
            reasons.append(f"max_degree: {degree}, since walks through all nodes are too many")
    return config.model_copy(update=changed), reasons


def count_walks(graph: Graph, num_steps: int, max_degree: int | None) -> float:
    """Return how many walks of up to `num_steps` steps leave all nodes together."""
    return float(sum(of_step.sum() for of_step in walks_by_step(graph, num_steps, max_degree, None)))
