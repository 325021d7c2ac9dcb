"""How far walks go where settings leave it open: as far as the rows of all nodes stay within bounds."""

from gatas.graph import Graph
from gatas.tasks.config import ModelConfig
from gatas.transitions.cost import walks_by_step

MOST_WALKS = {3: 1e8, 2: 3e8}
"""Walks from all nodes together, by the number of their steps; a row of a table has no more entries than walks."""
DEGREES: tuple[int, ...] = tuple(1 << power for power in range(16, 3, -1))
"""Limits on the edges of nodes that walks go on through, from the largest on."""


def resolved(config: ModelConfig, graph: Graph) -> ModelConfig:
    """Return settings with numbers in place of `auto`: three steps where there are few walks, else two, past fewer hubs."""
    changed: dict[str, int | None] = {}
    if config.num_steps == "auto":
        limit = None if config.max_degree == "auto" else config.max_degree
        changed["num_steps"] = 3 if count_walks(graph, 3, limit) <= MOST_WALKS[3] else 2
    if config.max_degree == "auto":
        steps = changed.get("num_steps") or config.num_steps
        assert isinstance(steps, int)
        changed["max_degree"] = largest_degree(graph, steps)
    return config.model_copy(update=changed)


def largest_degree(graph: Graph, num_steps: int) -> int | None:
    """Return the limit on degrees that keeps walks within bounds; None where they are without one."""
    most = MOST_WALKS.get(num_steps, MOST_WALKS[2])
    if count_walks(graph, num_steps, None) <= most:
        return None
    fitting = [degree for degree in DEGREES if count_walks(graph, num_steps, degree) <= most]
    return fitting[0] if fitting else DEGREES[-1]


def count_walks(graph: Graph, num_steps: int, max_degree: int | None) -> float:
    """Return how many walks of up to `num_steps` steps leave all nodes together."""
    return float(sum(of_step.sum() for of_step in walks_by_step(graph, num_steps, max_degree, None)))
