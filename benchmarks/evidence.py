"""How fast are the operators of path evidence?

    python -m benchmarks.evidence [--device cuda] [--repeats 7]

Tables are made at random: like Twitter's, where rows have few paths with long runs of entries, and like those of knowledge
graphs, where nearly every entry has a path of its own.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.report import Report, gpu_milliseconds, median_seconds
from gatas.ops.evidence import EvidenceInputs, path_evidence
from gatas.ops.mark_known import KnownInputs, mark_known
from gatas.ops.pair_evidence import PairInputs, pair_evidence

ROWS_TOGETHER = 500


class Shape(NamedTuple):
    num_rows: int
    row_size: int
    num_paths: int
    num_nodes: int
    num_types: int
    batch: int


SHAPES = {
    "Twitter-like": Shape(10_000, 9_300, 70, 10_000, 4, 1_000),
    "knowledge graph": Shape(2_000, 5_000, 5_000, 2_000, 50, 1_000),
}
KNOWN_LINKS = 50
"""Known links of each node and type."""


def random_table(shape: Shape, generator: torch.Generator, device: str) -> list[Tensor]:
    """Rows of distinct (path, node) in ascending order: sums of random steps."""
    step = max(1, int(0.95 * (shape.num_paths - 1) * shape.num_nodes / shape.row_size))
    node = torch.empty(shape.num_rows, shape.row_size, dtype=torch.int32, device=device)
    path = torch.empty(shape.num_rows, shape.row_size, dtype=torch.int16, device=device)
    for first in range(0, shape.num_rows, ROWS_TOGETHER):
        rows = node[first : first + ROWS_TOGETHER].shape
        key = torch.randint(1, 2 * step, rows, generator=generator, device=device).cumsum(1) + shape.num_nodes
        key.clamp_(max=shape.num_paths * shape.num_nodes - 1)
        node[first : first + ROWS_TOGETHER] = key % shape.num_nodes
        path[first : first + ROWS_TOGETHER] = key // shape.num_nodes
    path[:, 0] = 0
    probability = torch.rand(node.numel(), generator=generator, device=device).pow_(4).clamp_(min=1e-6)
    indptr = torch.arange(shape.num_rows + 1, device=device) * shape.row_size
    return [indptr, node.view(-1), path.view(-1), probability]


def problem(shape: Shape, device: str) -> tuple[EvidenceInputs, PairInputs, KnownInputs]:
    generator = torch.Generator(device).manual_seed(0)
    settings: Any = {"generator": generator, "device": device}
    weights = torch.randn(shape.num_types, shape.num_paths, 3, **settings).requires_grad_()
    unreached = torch.randn(shape.num_types, **settings).requires_grad_()
    link_type = torch.randint(shape.num_types, (shape.batch,), **settings)
    query = torch.randint(shape.num_rows, (shape.batch,), **settings)
    other = torch.randint(shape.num_nodes, (shape.batch,), **settings)
    slot, places = (torch.arange(count, dtype=torch.int32, device=device) for count in (shape.num_nodes, shape.num_paths))
    log_degree = torch.randint(1, 100, (shape.num_nodes,), **settings).log()
    indptr, node, path, probability = random_table(shape, generator, device)
    rest = (places, log_degree, indptr, node, path, probability, 1)
    links = torch.arange(shape.num_types * shape.num_nodes + 1, device=device) * KNOWN_LINKS
    known = torch.randint(shape.num_nodes, (int(links[-1]),), **settings)
    return (
        EvidenceInputs(weights, unreached, link_type, query, query, slot, *rest, shape.num_nodes, False),
        PairInputs(weights, unreached, link_type, query, other, query, *rest, False),
        KnownInputs(links, known, link_type, query, slot, shape.num_nodes),
    )


def both_ways(operator: Callable[[Any], Tensor], given: Any, gradient: Tensor) -> None:
    torch.autograd.grad(operator(given), (given.weights, given.unreached), gradient)


def cases(shape: Shape, device: str) -> dict[str, tuple[Callable[[], Any], int]]:
    """What is measured, and how many entries or pairs or marks it has."""
    evidence, pairs, known = problem(shape, device)
    entries = shape.batch * shape.row_size
    slots = torch.randn(shape.batch, shape.num_nodes, device=device)
    return {
        "all candidates, forward": (partial(path_evidence, evidence), entries),
        "all candidates, forward and backward": (partial(both_ways, path_evidence, evidence, slots), entries),
        "pairs, forward": (partial(pair_evidence, pairs), shape.batch),
        "pairs, forward and backward": (partial(both_ways, pair_evidence, pairs, slots[:, 0].contiguous()), shape.batch),
        "known links": (partial(mark_known, *known), slots.numel()),
    }


def measure(report: Report, name: str, device: str, repeats: int) -> None:
    rows = []
    for case, (work, count) in cases(SHAPES[name], device).items():
        if device == "cuda":
            seconds = 1e-3 * gpu_milliseconds(work, repeats)
        else:
            work()  # compiled and warm
            seconds = median_seconds(work, repeats)
        rows.append([case, f"{count:,}", f"{1e3 * seconds:.3g}", f"{1e9 * seconds / count:.3g}"])
    report.add()
    shape = ", ".join(f"{field.replace('_', ' ')} {value:,}" for field, value in SHAPES[name]._asdict().items())
    report.add(f"{name} ({shape}):")
    report.table(["operator", "entries, pairs or marks", "ms", "ns each"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, help="on a CPU; as many as torch takes, unless given")
    arguments = parser.parse_args()
    on_gpu = arguments.device == "cuda"
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    packages = ("torch", "triton" if on_gpu else "numba", "numpy")
    report = Report("evidence-gpu" if on_gpu else "evidence", "The operators of path evidence", packages)
    if not on_gpu:
        report.add(f"- threads: {torch.get_num_threads()}; load of the machine before: {os.getloadavg()[0]:.1f}")
    for name in SHAPES:
        measure(report, name, arguments.device, arguments.repeats)
    report.add(f"Medians of {arguments.repeats}" + (" replays of a captured call." if on_gpu else " runs."))
    report.write()


if __name__ == "__main__":
    main()
