"""What a table of transitions would cost, before it is built: O(C · edges), an upper bound."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from gatas.errors import TooLargeError
from gatas.graph import Graph
from gatas.graph.arrays import collected
from gatas.graph.inputs import Ints
from gatas.graph.summary import components
from gatas.transitions.paths import num_paths

Caps = int | Sequence[int] | None
"""`max_candidates`: of every step, of each from the first on, or none."""

NO_LIMIT = np.iinfo(np.int64).max

COUNTABLE_WALKS = 2e9
"""Up to so many walks (some seconds) rows are counted exactly before a table is refused."""

MOST_OF_MEMORY = 0.9
"""The share of the available memory that a table may take."""

CGROUP_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


@dataclass(frozen=True)
class Cost:
    """At most so much, for each target; what nodes reach over several walks of the same path is counted once for each."""

    walks: NDArray[np.float64]  # (T,) edges that are looked at: the time it takes
    entries: NDArray[np.float64]  # (T, C + 1) by step
    entry_bytes: int

    @property
    def num_walks(self) -> float:
        return float(self.walks.sum())

    @property
    def num_entries(self) -> float:
        return float(self.entries.sum())

    @property
    def num_bytes(self) -> float:
        return table_bytes(self.num_entries, self.entries.size, self.entry_bytes)


def estimate_cost(
    graph: Graph,
    num_steps: int,
    targets: Ints | None = None,
    max_candidates: Caps = None,
    max_degree: int | None = None,
) -> Cost:
    """Bound each row by its walks, and by the nodes of its component times the paths of each length."""
    walks = count_walks(graph, num_steps, max_degree)
    component = components(graph)
    others = (np.bincount(component)[component] - 1).astype(np.float64)
    paths = float(graph.num_edge_types) ** np.arange(num_steps + 1)
    bound = np.minimum(walks, np.maximum(others[:, None] * paths, [1.0] + [0.0] * num_steps))  # step 0: the self-loop
    bound = np.minimum(bound, caps_by_step(max_candidates, num_steps))
    chosen = slice(None) if targets is None else targets
    return Cost(walks.sum(axis=1)[chosen], bound[chosen], entry_bytes(graph.num_relations, num_steps))


def caps_by_step(max_candidates: Caps, num_steps: int) -> Ints:
    """(C + 1,) the most that is kept of each step; of step 0 there is one."""
    if max_candidates is None:
        return np.full(num_steps + 1, NO_LIMIT)
    return np.append(NO_LIMIT, np.broadcast_to(max_candidates, num_steps))


def count_walks(graph: Graph, num_steps: int, max_degree: int | None = None) -> NDArray[np.float64]:
    """(N, C + 1) walks of each length from each node, visited nodes not avoided."""
    return np.stack(walks_by_step(graph, num_steps, max_degree, None), axis=1)


def walks_by_step(graph: Graph, num_steps: int, max_degree: int | None, scratch: Path | None) -> list[NDArray[np.float64]]:
    """Count walks by length, an array for each; in files of a scratch folder, if there is one."""
    walks = [np.broadcast_to(np.ones(1), graph.num_nodes)]
    for step in range(num_steps):
        most = NO_LIMIT if max_degree is None or step == 0 else max_degree
        pieces = ({"walks": longer_walks(graph, walks[-1], most, *ends)} for ends in node_slices(graph))
        walks.append(collected(pieces, {"walks": np.float64}, scratch)["walks"])
    return walks


def longer_walks(graph: Graph, walks: NDArray[np.float64], most: int, first: int, last: int) -> NDArray[np.float64]:
    """Walks of one step more, from nodes `first` to `last`; none that go on through a node with more than `most` edges."""
    start, stop = graph.indptr[first], graph.indptr[last]
    source = np.repeat(np.arange(last - first), np.diff(graph.indptr[first : last + 1]))
    neighbour = graph.neighbour[start:stop]
    through = walks[neighbour]
    if most < NO_LIMIT:
        through = np.where(graph.indptr[neighbour + 1] - graph.indptr[neighbour] > most, 0.0, through)
    return np.bincount(source, through, minlength=last - first).astype(np.float64)


def node_slices(graph: Graph, num_edges: int = 1 << 20) -> Iterator[tuple[int, int]]:
    """Ranges of nodes with about so many edges each, or with one node: what is computed of one is small."""
    first = 0
    while first < graph.num_nodes:
        last = int(np.searchsorted(graph.indptr, graph.indptr[first] + num_edges, side="right")) - 1
        last = min(max(last, first + 1), first + num_edges, graph.num_nodes)
        yield first, last
        first = last


def walks_cost(walks: NDArray[Any], max_candidates: Caps, bytes_per_entry: int) -> Cost:
    """A cost by walks alone, for a few targets at a time."""
    most = caps_by_step(max_candidates, walks.shape[1] - 1).sum(dtype=np.float64)
    total = walks.sum(axis=1, dtype=np.float64)
    return Cost(total, np.minimum(total, most)[:, None], bytes_per_entry)


def path_dtype(num_relations: int, num_steps: int) -> type[np.signedinteger[Any]]:
    """Return the smallest integer type that holds every path id."""
    largest = num_paths(num_relations, num_steps) - 1
    return next(kind for kind in (np.int16, np.int32, np.int64) if largest <= np.iinfo(kind).max)


def entry_bytes(num_relations: int, num_steps: int) -> int:
    """Node, path and probability of one entry."""
    return 4 + np.dtype(path_dtype(num_relations, num_steps)).itemsize + 4


def table_bytes(num_entries: float, num_levels: int, bytes_per_entry: int) -> float:
    """A table with the offset and the dropped mass of each (target, step)."""
    return num_entries * bytes_per_entry + 12 * num_levels


def available_memory() -> int:
    """Return the bytes that this process may still take: what the machine has left, or its container."""
    free = [psutil.virtual_memory().available]
    for limit, used in CGROUP_LIMITS:
        try:
            free.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such limit, or "max"
            continue
    return max(0, min(free))


def total_memory() -> int:
    """Return the bytes that the machine has, or its container: the same whatever else runs."""
    found = [psutil.virtual_memory().total]
    for limit, _ in CGROUP_LIMITS:
        try:
            found.append(int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such limit, or "max"
            continue
    return min(found)


def fits(num_bytes: float) -> bool:
    """Whether there is memory for so many bytes, and some to spare."""
    return num_bytes <= MOST_OF_MEMORY * available_memory()


def refuse_if_too_large(num_entries: float, num_bytes: float, what: str) -> None:
    """Say what would be needed, what there is, and what can be done."""
    free = available_memory()
    if num_bytes > MOST_OF_MEMORY * free:
        raise TooLargeError(
            f"the transitions would have {what} {num_entries:.3g} entries and take {readable_bytes(num_bytes)}, but "
            f"{readable_bytes(free)} of memory are available. Use fewer steps (num_steps), keep fewer candidates "
            "(max_candidates), build only the rows you need (targets), or compute rows when they are asked for "
            "(gatas.OnDemand)."
        )


def readable_bytes(count: float) -> str:
    """Return 1,536 as `1.5 KiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError


def readable_seconds(seconds: float) -> str:
    """Return seconds as `1:02:03`, or `2:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
