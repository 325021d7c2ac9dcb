"""What it costs to hide the links asked for exactly: a table for each fold, or rows on demand for each batch.

    python -m benchmarks.hiding --data twitter

Both give the same rows: those of the graph without the links. A fold's table has the rows of all nodes and serves every batch
of the fold; on demand, each batch has a graph of its own, which is made ready for walking before the rows of its ends are.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.report import Report, peak_memory
from gatas.datasets import LinkTargets, load_dataset
from gatas.graph import Graph
from gatas.transitions import HiddenFolds, OnDemand, Transitions, assign_folds, link_edges, readable_bytes
from gatas.transitions.build import Walks

NOTES = """Seconds are the median of {repeats}; kernels are compiled beforehand. The machine's cores were shared with other
work while this was measured. `whole epoch`: all folds built once (kept tables serve later epochs for nothing), or all batches.
`all tables`: if all were kept; `peak memory`: of the process with one. Rows on demand are those of the links' ends alone;
negatives would add theirs."""


TABLE_HEADER = ("folds", "revisits", "by", "graph without", "its table", "whole epoch", "entries", "one table", "all tables",
                "peak memory")  # fmt: skip
BATCH_HEADER = ("links in a batch", "revisits", "graph without", "made ready", "rows", "nodes", "entries", "whole epoch")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", default="twitter")
    arguments.add_argument("--steps", type=int, default=2)
    arguments.add_argument("--folds", default="4,10,20", help="numbers of folds, with commas between")
    arguments.add_argument("--batches", default="500,2000", help="links in a batch, with commas between")
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--device", help="also build tables with torch on this device")
    arguments.add_argument("--to", type=Path, help="the report; else a dated file beside this one")
    given = arguments.parse_args()
    report = Report("hiding", "What does it cost to hide links exactly?", ("torch", "numba", "numpy"))
    report.add("\n" + NOTES.format(repeats=given.repeats))
    links = Links(given.data)
    report.add(f"\n## {given.data}: {links.graph}, {links.count:,} training links, {given.steps} steps\n")
    for revisits in (False, True):
        Transitions.build(Graph.from_edges([0, 1], [1, 2]), given.steps, revisits=revisits)  # compiled, if it was not
    both = [Walks(given.steps, revisits=revisits) for revisits in (False, True)]
    for device in [None, given.device] if given.device else [None]:
        rows = [table_rows(links, both, number, device, given.repeats) for number in numbers(given.folds)]
        report.table(TABLE_HEADER, [row for pair in rows for row in pair])
    rows = [batch_rows(links, both, size, 3 * given.repeats) for size in numbers(given.batches)]
    report.table(BATCH_HEADER, [row for pair in rows for row in pair])
    report.write(given.to)


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


class Links:
    """The training links of a data set, and its graph."""

    def __init__(self, name: str) -> None:
        dataset = load_dataset(name)
        assert isinstance(dataset.targets, LinkTargets)
        pairs, self.graph = dataset.targets.splits["train"], dataset.graph
        there = pairs.label == 1
        self.source, self.kind, self.target = pairs.source[there], pairs.edge_type[there], pairs.target[there]
        names = self.graph.edge_type_names
        self.edge_types = [names.index(kind) if kind in names else -1 for kind in dataset.targets.link_types]
        self.count = len(self.source)


def table_rows(links: Links, both: list[Walks], num_folds: int, device: str | None, repeats: int) -> list[list[Any]]:
    """Tables of some folds, with and without revisits in turn: what else the machine does slows both."""
    fold = assign_folds(links.count, num_folds, seed=0)
    measured: dict[Walks, list[tuple[float, float]]] = {walks: [] for walks in both}
    sizes: dict[Walks, tuple[int, int]] = {}
    for number in range(repeats):
        for walks in both:
            columns = (links.source, links.kind, links.target, fold, links.edge_types)
            folds = HiddenFolds(links.graph, walks, *columns, device=device, kept_bytes=0)
            without, _ = seconds(partial(folds.graph_without, number % num_folds))
            took, table = seconds(partial(folds.table, number % num_folds))
            measured[walks].append((without, took))
            sizes[walks] = table.num_entries, table.num_bytes
            folds.close()
            del table
    rows = []
    for walks in both:
        without, took = np.median(measured[walks], axis=0)
        entries, num_bytes = sizes[walks]
        rows.append([num_folds, "yes" if walks.revisits else "no", device or "kernels", f"{without:.3f} s", f"{took:.2f} s",
                     f"{num_folds * took:.1f} s", f"{entries:,}", readable_bytes(num_bytes),
                     readable_bytes(num_folds * num_bytes), readable_bytes(peak_memory())])  # fmt: skip
    return rows


def batch_rows(links: Links, both: list[Walks], size: int, repeats: int) -> list[list[Any]]:
    """Some batches on demand, each with and without revisits."""
    chance = np.random.default_rng(0)
    measured: dict[Walks, list[tuple[float, float, float, int, int]]] = {walks: [] for walks in both}
    for _ in range(repeats):
        chosen = chance.choice(links.count, size, replace=False)
        source, kind, target = links.source[chosen], links.kind[chosen], links.target[chosen]
        nodes = np.unique(np.concatenate([source, target]))
        for walks in both:
            without, graph = seconds(partial(left_of, links, source, kind, target))
            ready, on_demand = seconds(partial(OnDemand, graph, walks.num_steps, revisits=walks.revisits))
            took, rows = seconds(partial(on_demand.rows, nodes))
            measured[walks].append((without, ready, took, len(nodes), len(rows.node)))
    found = []
    for walks in both:
        *times, num_nodes, entries = np.median(measured[walks], axis=0)
        epoch = sum(times) * links.count / size
        found.append([f"{size:,}", "yes" if walks.revisits else "no", *(f"{1000 * value:.0f} ms" for value in times),
                      f"{num_nodes:,.0f}", f"{entries:,.0f}", f"{epoch:.0f} s"])  # fmt: skip
    return found


def left_of(links: Links, source: Any, kind: Any, target: Any) -> Graph:
    """The graph without some links."""
    return links.graph.without_edges(link_edges(links.graph, links.edge_types, source, kind, target))


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = perf_counter()
    result = work()
    return perf_counter() - started, result


if __name__ == "__main__":
    main()
