"""What hubs cost, and what it costs to keep only the likeliest candidates, or not to walk on through hubs.

    python -m benchmarks.hubs --hub 1000000                                       # rows beside a hub: seconds, memory, mass
    python -m benchmarks.hubs --hub 0 --data pubmed,twitter --seeds 5 --device cuda    # what it does to validation data

Hyper-parameters are those of the paper's recipes. Test data is never looked at.
"""

import argparse
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import psutil

from benchmarks.report import Report
from gatas.datasets import Dataset, load_dataset
from gatas.datasets.settings import parsed_setting
from gatas.experiments.recipes import recipe
from gatas.graph import Graph
from gatas.tasks import Model
from gatas.training import Config
from gatas.training.loop import fit_models, make_model
from gatas.transitions import OnDemand, Transitions, estimate_cost, readable_bytes

CAPS = "all,1024,256,64,16,256@1000"
ASKED = 100
METRIC = {"node classification": "accuracy", "link prediction": "roc_auc"}

NOTES = """`256@1000`: max_candidates 256, max_degree 1,000. `dropped`: the mass of T⁽ᵗ⁾ that both left out at each step t
from 1 on, the mean over targets. A cap is on the candidates of each (target, step); rows beside a hub are still walked in full,
so it saves memory and not walking, which max_degree does. Metrics are the best of validation data, mean ± standard deviation
over seeds."""


class Limits(NamedTuple):
    """Of candidates and of walks."""

    text: str
    max_candidates: int | None
    max_degree: int | None

    @classmethod
    def parsed(cls, text: str) -> "Limits":
        cap, _, degree = text.partition("@")
        return cls(text, None if cap == "all" else int(cap), int(degree) if degree else None)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--hub", type=int, default=1_000_000, help="its degree; 0: leave this part out")
    arguments.add_argument("--data", default="", help="data sets, with commas between")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--caps", default=CAPS)
    arguments.add_argument("--set", action="append", default=[], help="a setting of the recipes, as training.epochs=200")
    arguments.add_argument("--device", default="auto")
    arguments.add_argument("--to", type=Path, help="the report; else a dated file beside this one")
    given = arguments.parse_args()
    caps = [Limits.parsed(text) for text in given.caps.split(",")]
    report = Report("hubs", "What do hubs cost, and what do caps on candidates?", ("torch", "numba", "numpy"))
    report.add(f"\n{NOTES}")
    if given.hub:
        measure_hub(report, given.hub, caps)
    for name in filter(None, given.data.split(",")):
        measure_accuracy(report, name, caps, given)
    report.write(given.to)


def measure_hub(report: Report, degree: int, caps: list[Limits]) -> None:
    """A hub with `degree` leaves, which have a few edges among themselves."""
    generator = np.random.default_rng(0)
    leaves = np.arange(1, degree + 1)
    source = np.concatenate([np.zeros(degree, np.int64), generator.integers(1, degree + 1, 2 * degree)])
    target = np.concatenate([leaves, generator.integers(1, degree + 1, 2 * degree)])
    graph = Graph.from_edges(source, target, undirected=True)
    wanted = np.concatenate([[0], generator.choice(leaves, ASKED - 1, replace=False)])
    rows: list[list[Any]] = []
    for cap in caps:
        limits: Any = {"max_candidates": cap.max_candidates, "max_degree": cap.max_degree}
        cost, on_demand = estimate_cost(graph, 2, **limits), OnDemand(graph, 2, **limits)
        if cap.max_candidates is None:
            rows.append(["all", readable_bytes(cost.num_bytes), f"{cost.num_walks:.1e}", *["not made"] * 4])
            continue
        on_demand.rows(wanted[:2])  # compiled, if it was not
        before, started = psutil.Process().memory_info().rss, perf_counter()
        made = on_demand.rows(wanted)
        seconds = perf_counter() - started
        held = psutil.Process().memory_info().rss - before
        dropped = " ".join(f"{mass:.2f}" for mass in made.dropped_mass.mean(0)[1:])
        rows.append([cap.text, readable_bytes(cost.num_bytes), f"{cost.num_walks:.1e}", f"{seconds:.2f} s",
                     readable_bytes(sum(c.nbytes for c in (made.node, made.path, made.probability))),
                     readable_bytes(max(held, 0)), dropped])  # fmt: skip
    report.add(f"\n## A hub of degree {degree:,}: C = 2, {ASKED} targets, the hub among them\n")
    header = ("limits", "table of all nodes, at most", "walks", "their rows", "take", "memory grew by", "dropped")
    report.table(header, rows)


def measure_accuracy(report: Report, name: str, caps: list[Limits], given: Any) -> None:
    dataset = load_dataset(name)
    measured = {split: rows for split, rows in dataset.splits.items() if split != "test"}
    dataset = dataset.with_splits(measured)
    rows = []
    for cap in caps:
        settings = dict(parsed_setting(setting) for setting in given.set)
        config = recipe(name).with_settings(
            {"model.max_candidates": cap.max_candidates, "model.max_degree": cap.max_degree, **settings}
        )
        started = perf_counter()
        first = make_model(dataset, config, 0)
        found, epochs = best_of_validation(dataset, config, first, given.seeds, given.device)
        seconds = perf_counter() - started
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        table = first.transitions
        assert isinstance(table, Transitions)
        dropped = np.concatenate([shard.dropped_mass for shard in table.shards]).mean(0)[1:]
        rows.append([cap.text, f"{statistics.fmean(found):.4f} ± {spread:.4f}", " ".join(f"{mass:.3f}" for mass in dropped),
                     f"{table.num_entries:,}", readable_bytes(table.num_bytes), epochs, f"{seconds:.0f} s"])  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    report.add(f"\n## {name}: validation {METRIC.get(dataset.task, 'micro_f1')}, {given.seeds} seeds\n")
    report.table(("limits", "validation", "dropped", "entries", "table", "epochs", "seconds"), rows)


def best_of_validation(dataset: Dataset, config: Config, first: Model, seeds: int, device: str) -> tuple[list[float], int]:
    """The validation metric of each seed, and the epochs of the longest."""
    models = [first, *(make_model(dataset, config, seed, first) for seed in range(1, seeds))]
    runs = fit_models(models, dataset, config, range(seeds), device=device)
    metric = METRIC.get(dataset.task, "micro_f1")
    return [run.metrics["valid"][metric] for run in runs], max(len(run.history) for run in runs)


if __name__ == "__main__":
    main()
