"""How long do the rows of 1,000 targets take where a GPU makes them, beside the host?

    python -m benchmarks.rows_on_device [--device cuda] [--edges 10000000] [--repeats 9] [--to FILE.md]

A graph with hubs and two edge types, each with its inverse. What the device makes is compared with the host's rows before
anything is timed: node by node, but for rows that are cut, where rounding may decide which of equals are kept.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from benchmarks.report import Report, median_seconds
from benchmarks.transitions import max_degree, power_law
from gatas import OnDemand
from gatas.sampling.on_demand import RowsOnDevice

NUM_TARGETS = 1_000
KEPT = ((1, None), (2, None), (2, 256))
"""Steps, and the candidates kept of each."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--edges", type=int, default=10**7)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--to", type=Path, help="the report; else a dated file beside this one")
    args = parser.parse_args()
    report = Report("rows-on-device", "Rows on demand: made by a GPU, and by the host", ("torch", "numba", "numpy"))
    graph = power_law(args.edges // 10, args.edges, seed=1)
    report.add(
        f"\n{NUM_TARGETS:,} targets of a graph with {graph.num_nodes:,} nodes and {graph.num_edges:,} edges with hubs, "
        f"of which the largest has {max_degree(graph)}. Medians of {args.repeats}."
    )
    rows = []
    for steps, keep in KEPT:
        source = OnDemand(graph, steps, max_candidates=keep)
        entries, host, made = measured(source, torch.device(args.device), args.repeats)
        rows.append([steps, keep or "all", f"{entries:,}", f"{1000 * host:.1f}", f"{1000 * made:.2f}", f"{host / made:.1f}×"])
    report.table(["steps C", "candidates kept", "entries", "by the host, ms", f"by {args.device}, ms", "faster by"], rows)
    report.write(args.to)


def measured(source: OnDemand, device: torch.device, repeats: int) -> tuple[int, float, float]:
    """The entries of some targets, and the seconds that the host and the device take for them."""
    maker, generator = RowsOnDevice(source, device), np.random.default_rng(0)
    targets = np.sort(generator.choice(source.setting.num_nodes, NUM_TARGETS, replace=False))
    wanted = torch.from_numpy(targets).to(device)
    host, made = source.rows(targets), maker.table(wanted)
    if source.setting.max_candidates is None:
        for name in ("indptr", "node", "path"):
            np.testing.assert_array_equal(getattr(made, name).cpu().numpy(), getattr(host, name), name)
    np.testing.assert_allclose(np.sort(made.probability.cpu().numpy()), np.sort(host.probability), rtol=1e-5)

    def on_device() -> None:
        maker.last = None  # or the rows that were made last are given again
        maker.table(wanted).probability[:1].cpu()

    on_device()
    return len(host.node), median_seconds(lambda: source.rows(targets), repeats), median_seconds(on_device, repeats)


if __name__ == "__main__":
    main()
