"""How fast are exact typed transitions, beside SciPy's products and beside enumerating walks, and how do they grow?

    python -m benchmarks.transitions [--data-dir FOLDER] [--repeats 3]

Twitter needs its files (--data-dir or $GATAS_DATA); without them a synthetic graph of the same size takes its place, and
the report says so.
"""

import argparse
import json
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
from numba import njit, types
from numba.typed import Dict
from scipy import sparse

from benchmarks.report import Report, median_seconds, peak_memory, resident_memory
from gatas import DatasetError, Graph, OnDemand, Transitions, load_dataset
from gatas.transitions import readable_bytes

PACKAGES = ("numpy", "numba", "scipy", "torch")


def main() -> None:
    arguments = parse()
    graph, name = benchmark_graph(arguments.data_dir)
    if arguments.memory_of:
        print(json.dumps(memory_of(arguments.memory_of, graph)))
        return
    Transitions.build(small_graph(), 2)  # compiled before anything is timed
    report = Report("transitions", "Exact typed transitions: beside SciPy, beside walks, and as graphs grow", PACKAGES)
    compare(report, graph, name, arguments)
    grow(report, arguments.repeats)
    on_demand(report, arguments.repeats)
    if arguments.device:
        on_device(report, arguments)
    report.write()


def compare(report: Report, graph: Graph, name: str, arguments: argparse.Namespace) -> None:
    report.add(f"\n## {name}, C = 2 with inverse types: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges")
    self_edges = int((graph.source == graph.neighbour).sum())
    table = Transitions.build(graph, 2)
    entries, table_bytes = table.num_entries, table.num_bytes
    expected = table.shards[0].probability.sum(dtype=np.float64)
    del table
    ours = median_seconds(lambda: Transitions.build(graph, 2), arguments.repeats)
    one = median_seconds(lambda: Transitions.build(graph, 2, num_threads=1), arguments.repeats)
    products = median_seconds(lambda: check(typed_products(graph), expected, graph), arguments.repeats)
    enumerate_walks(*walk_arrays(small_graph()))
    walks = median_seconds(lambda: enumerate_walks(*walk_arrays(graph)), 1)
    peaks = {who: measured_memory(who, arguments) for who in ("ours", "scipy")}
    report.add(
        f"\nEntries: {entries:,} ({readable_bytes(table_bytes)}), self-loops included; "
        f"the {self_edges} self-edges are never walked."
    )
    report.table(
        ["method", "seconds", "ours is faster by", "peak memory above start", "× table"],
        [
            ["gatas, 2 threads", f"{ours:.2f}", "", readable_bytes(peaks["ours"]), f"{peaks['ours'] / table_bytes:.2f}"],
            ["gatas, 1 thread", f"{one:.2f}", f"{one / ours:.1f}×", "", ""],
            ["typed SciPy products, visited nodes masked, normalised, one table", f"{products:.2f}",
             f"{products / ours:.1f}×", readable_bytes(peaks["scipy"]), f"{peaks['scipy'] / table_bytes:.2f}"],
            ["every walk on its own, counted in a dictionary (numba, 1 thread, as the reference code)", f"{walks:.2f}",
             f"{walks / ours:.1f}×", "", ""],
        ],
    )  # fmt: skip
    report.add(f"Medians of {arguments.repeats} runs in one process (walks: one run); memory in processes of their own.")


def grow(report: Report, repeats: int) -> None:
    report.add("\n## Cost grows with the entries: C = 2, two edge types and their inverses, hubs, 10 edges per node")
    rows = []
    for num_edges in (10**4, 10**5, 10**6):
        graph = power_law(num_edges // 10, num_edges, seed=num_edges)
        table = Transitions.build(graph, 2)
        entries, num_bytes = table.num_entries, table.num_bytes
        del table
        seconds = median_seconds(partial(Transitions.build, graph, 2), repeats)
        rate = entries / seconds
        rows.append(
            [
                f"{graph.num_edges:,}",
                max_degree(graph),
                f"{entries:,}",
                readable_bytes(num_bytes),
                f"{seconds:.3f}",
                f"{rate:.3g}",
            ]
        )
    report.table(["edges", "largest degree", "entries", "table", "seconds", "entries/s"], rows)


def on_demand(report: Report, repeats: int) -> None:
    graph = power_law(10**6, 10**7, seed=1)
    report.add(
        f"\n## On demand: 1,000 targets of a graph with {graph.num_nodes:,} nodes and {graph.num_edges:,} edges with hubs"
    )
    targets = np.random.default_rng(0).choice(graph.num_nodes, 1_000, replace=False)
    rows = []
    for steps, keep in ((1, None), (2, None), (2, 256)):
        source = OnDemand(graph, steps, max_candidates=keep)
        entries = len(source.rows(targets).node)
        seconds = median_seconds(partial(source.rows, targets), repeats)
        rows.append([steps, keep or "all", max_degree(graph), f"{entries:,}", f"{seconds:.3f}", f"{entries / seconds:.3g}"])
    report.table(["steps C", "candidates kept", "largest degree", "entries", "seconds", "entries/s"], rows)


def on_device(report: Report, arguments: argparse.Namespace) -> None:
    report.add(f"\n## With torch on {device_name(arguments.device)}, the table copied back to the host")
    rows = []
    for name, steps in (("twitter", 2), ("ppi", 3)):
        graph = load_dataset(name, arguments.data_dir).graph
        here, there = (Transitions.build(graph, steps, device=device).shards[0] for device in (None, arguments.device))
        assert all((getattr(here, column) == getattr(there, column)).all() for column in ("indptr", "node", "path"))
        worst = float(np.max(np.abs(here.probability - there.probability) / here.probability))
        times = [median_seconds(partial(Transitions.build, graph, steps, device=device), arguments.repeats)
                 for device in (None, arguments.device)]  # fmt: skip
        rows.append([name, steps, f"{len(here.node):,}", *(f"{seconds:.2f}" for seconds in times), f"{worst:.1e}"])
    report.table(["graph", "steps C", "entries", "numba, all cores, s", "torch, s", "largest relative difference"], rows)


def device_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def typed_products(graph: Graph) -> tuple[Any, Any, Any]:
    """T⁽²⁾ by SciPy: a product for each pair of types, nodes reached before masked, rows normalised, one table."""
    num_nodes, source, target = graph.num_nodes, graph.source, graph.neighbour
    proper = source != target
    share = 1.0 / np.maximum(np.bincount(source[proper], minlength=num_nodes), 1)[source]
    seen = np.eye(num_nodes, dtype=bool)
    seen[source, target] = True
    steps = []
    for kind in range(graph.num_edge_types):
        chosen = proper & (graph.edge_type == kind)
        steps.append(sparse.csr_array((share[chosen], (source[chosen], target[chosen])), shape=(num_nodes, num_nodes)))
    products = [masked(first @ second, seen) for first in steps for second in steps]
    both = sparse.hstack(products, format="csr")
    total = np.asarray(both.sum(axis=1)).ravel()
    probability = (both.data / np.repeat(total, np.diff(both.indptr))).astype(np.float32)
    return (both.indices % num_nodes).astype(np.int32), (both.indices // num_nodes).astype(np.int16), probability


def masked(product: Any, seen: Any) -> Any:
    row = np.repeat(np.arange(product.shape[0], dtype=np.int32), np.diff(product.indptr))
    keep = ~seen[row, product.indices]
    counts = np.bincount(row[keep], minlength=product.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((product.data[keep], product.indices[keep], indptr), shape=product.shape)


def check(result: tuple[Any, Any, Any], expected: float, graph: Graph) -> None:
    """The products give the same step 2: as many entries' worth of probability as ours, less steps 0 and 1."""
    _, _, probability = result
    with_edges = np.unique(graph.source[graph.source != graph.neighbour]).size
    assert abs(probability.sum(dtype=np.float64) - (expected - graph.num_nodes - with_edges)) < 1e-2 * graph.num_nodes


def walk_arrays(graph: Graph) -> tuple[Any, ...]:
    return graph.indptr, graph.neighbour, graph.edge_type.astype(np.int64), graph.num_relations, 2


KEY = types.UniTuple(types.int64, 3)


@njit(cache=True)
def enumerate_walks(indptr, neighbour, edge_type, num_relations, num_steps):
    """Every walk of every node, one after another; equal ends are counted in a dictionary, as the reference code does."""
    all_nodes, all_paths, all_shares = [], [], []
    for start in range(indptr.size - 1):
        counts = Dict.empty(KEY, types.int64)
        step_of = Dict.empty(types.int64, types.int64)
        walks = np.zeros(num_steps + 1)
        queue = [(np.int64(start), np.int64(-1), np.int64(0))]
        at = 0
        while at < len(queue):
            node, path, step = queue[at]
            at += 1
            if node in step_of and step_of[node] < step:
                continue
            step_of[node] = step
            key = (node, path, step)
            counts[key] = counts.get(key, 0) + 1
            walks[step] += 1
            if step < num_steps:
                for edge in range(indptr[node], indptr[node + 1]):
                    queue.append(  # noqa: PERF401 - numba
                        (np.int64(neighbour[edge]), (path + 1) * num_relations + edge_type[edge] + 1, step + 1)
                    )
        for (node, path, step), count in counts.items():
            all_nodes.append(node)
            all_paths.append(path)
            all_shares.append(count / walks[step])
    return np.array(all_nodes), np.array(all_paths), np.array(all_shares)


def measured_memory(who: str, arguments: argparse.Namespace) -> int:
    """Peak memory of one build in a process of its own, above what it held before."""
    command = [sys.executable, "-m", "benchmarks.transitions", "--memory-of", who]
    if arguments.data_dir:
        command += ["--data-dir", arguments.data_dir]
    return int(json.loads(subprocess.check_output(command, text=True).splitlines()[-1]))


def memory_of(who: str, graph: Graph) -> int:
    Transitions.build(small_graph(), 2)
    typed_products(small_graph())
    before = resident_memory()
    result: Any = Transitions.build(graph, 2) if who == "ours" else typed_products(graph)
    peak = peak_memory()
    del result
    return peak - before


def benchmark_graph(data_dir: str | None) -> tuple[Graph, str]:
    try:
        return load_dataset("twitter", data_dir).graph, "Twitter (GATNE)"
    except DatasetError:
        return power_law(9_990, 564_230, seed=0), "Synthetic, as Twitter's files are not here"


def power_law(num_nodes: int, num_edges: int, *, seed: int) -> Graph:
    """Two edge types and their inverses; one end of each edge is drawn with density ∝ x^-0.6, so there are hubs."""
    generator = np.random.default_rng(seed)
    popular = (num_nodes * generator.random(num_edges // 2) ** 2.5).astype(np.int64)
    others, kinds = generator.integers(num_nodes, size=num_edges // 2), generator.integers(2, size=num_edges // 2)
    return Graph.from_edges(others, popular, kinds, num_nodes=num_nodes, num_edge_types=2, inverse=True)


def max_degree(graph: Graph) -> str:
    return f"{np.diff(graph.indptr).max():,}"


def small_graph() -> Graph:
    return Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3], [0, 1, 0, 1], inverse=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", help="also compute with torch on this device, such as cuda")
    parser.add_argument("--memory-of", choices=("ours", "scipy"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
