"""What graphs of 10⁹ and 10¹¹ edges need, and what slow machines and failures do to it, from the rates that were measured.

    python -m benchmarks.simulate [--measured benchmarks/…-scale.json]

Stages are extrapolated from the fit of benchmarks/scale_report.py. The simulation is of `gatas.scale.run_job`: workers take
parts in their order; a part whose machine fails waits again, at the end, up to three times; the first copy of a part counts.
An event queue, nothing else: seeds 0 to 2 give the same table always.
"""

import argparse
import heapq
import json
from collections import deque
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.report import FOLDER, Report
from benchmarks.scale_report import Rate, rates
from gatas.scale.job import ATTEMPTS
from gatas.transitions.cost import readable_bytes

CORES = 8
"""Of a machine, one worker each."""
SEEDS = 3
SPREAD = 0.3
"""Standard deviation of the logarithm of a part's seconds over the plan's, where none was measured."""


@dataclass(frozen=True)
class Fleet:
    """Machines, and what befalls them."""

    machines: int
    workers: int = CORES
    slow: float = 0.0  # share of machines
    slowness: float = 4.0  # how many times slower these are
    hours: float = float("inf")  # between failures of one machine, in the mean
    repair: float = 600.0  # seconds until another takes its place, with its copy of the graph
    copies: bool = False  # idle workers begin parts that others have not ended


@dataclass(frozen=True)
class SimulatedRun:
    """What became of a job."""

    seconds: float
    idle_or_lost: float  # share of the fleet's time that made no part
    again: int  # parts begun again after a failure
    failed: int  # parts that failed too often: the command ends with an error, and is given again


class Simulation:
    """One job on one fleet."""

    def __init__(self, seconds: Any, fleet: Fleet, seed: int, attempts: int = ATTEMPTS) -> None:
        self.seconds, self.fleet, self.attempts = seconds, fleet, attempts
        self.generator = np.random.default_rng(seed)
        drawn = self.generator.random(fleet.machines) < fleet.slow
        self.speed = np.where(drawn, 1.0 / fleet.slowness, 1.0)
        self.events: list[tuple[float, int, str, int, int]] = []  # time, order, what, machine, part
        self.order = count()
        self.waiting = deque(range(len(seconds)))
        self.running: list[dict[int, int]] = [{} for _ in range(fleet.machines)]  # order of the event at its end: part
        self.begun: deque[int] = deque()
        self.copies = np.zeros(len(seconds), np.int64)
        self.tried = np.zeros(len(seconds), np.int64)
        self.done = np.zeros(len(seconds), bool)
        self.idle = [0] * fleet.machines
        self.up = [True] * fleet.machines
        self.left, self.again, self.failed, self.now = len(seconds), 0, 0, 0.0

    def run(self) -> SimulatedRun:
        for machine in range(self.fleet.machines):
            self.idle[machine] = self.fleet.workers
            self._fail_some_day(machine)
        self._give()
        while self.left:
            self.now, order, what, machine, part = heapq.heappop(self.events)
            getattr(self, what)(machine, part, order)
        used = float(self.seconds[self.done].sum())
        whole = self.now * self.fleet.workers * self.fleet.machines
        return SimulatedRun(self.now, 1.0 - used / whole, self.again, self.failed)

    def ends(self, machine: int, part: int, order: int) -> None:
        if self.running[machine].pop(order, None) is None:
            return  # its machine had failed
        self.idle[machine] += 1
        self.copies[part] -= 1
        if not self.done[part]:
            self.done[part] = True
            self.left -= 1
        self._give([machine])

    def fails(self, machine: int, part: int, order: int) -> None:
        lost = list(self.running[machine].values())
        self.running[machine].clear()
        self.idle[machine], self.up[machine] = 0, False
        for number in lost:
            self.copies[number] -= 1
            if self.done[number] or self.copies[number]:
                continue
            self.tried[number] += 1
            if self.tried[number] < self.attempts:
                self.again += 1
                self.waiting.append(number)
            else:
                self.failed += 1
                self.left -= 1
        self._push(self.fleet.repair, "returns", machine)
        self._give()

    def returns(self, machine: int, part: int, order: int) -> None:
        self.idle[machine], self.up[machine] = self.fleet.workers, True
        self._fail_some_day(machine)
        self._give([machine])

    def _fail_some_day(self, machine: int) -> None:
        if np.isfinite(self.fleet.hours):
            self._push(self.generator.exponential(3600 * self.fleet.hours), "fails", machine)

    def _push(self, after: float, what: str, machine: int, part: int = -1) -> int:
        order = next(self.order)
        heapq.heappush(self.events, (self.now + after, order, what, machine, part))
        return order

    def _give(self, machines: Any = None) -> None:
        for machine in range(self.fleet.machines) if machines is None else machines:
            while self.up[machine] and self.idle[machine]:
                part = self._next()
                if part is None:
                    return
                self.idle[machine] -= 1
                self.copies[part] += 1
                self.begun.append(part)
                self.running[machine][self._push(self.seconds[part] / self.speed[machine], "ends", machine, part)] = part

    def _next(self) -> int | None:
        if self.waiting:
            return self.waiting.popleft()
        while self.fleet.copies and self.begun:  # the one that was begun first, once
            part = self.begun.popleft()
            if not self.done[part] and self.copies[part] == 1:
                return part
        return None


def parts_of(seconds: float, part_seconds: float, spread: float, seed: int) -> Any:
    """Seconds of each part: equal in the plan, and off by a factor in truth."""
    number = max(1, round(seconds / part_seconds))
    factors = np.random.default_rng([seed, 1]).lognormal(0.0, spread, number)
    return seconds * factors / factors.sum()


def add_needs(report: Report, found: dict[str, Rate], degree: int) -> None:
    """What is extrapolated, without faults."""
    rows = []
    for edges in (1e9, 1e11):
        for stage, rate in found.items():
            core_hours = rate.seconds(edges / degree) / 3600
            size = readable_bytes(rate.num_bytes(edges / degree))
            rows.append(
                [power(edges), f"{edges / degree:,.0f}", stage, f"{core_hours:,.1f}", f"{core_hours / CORES:,.1f}", size]
            )
    report.add("\n## Extrapolated, not measured: processor hours, and bytes of the result")
    report.table(("edges", "nodes", "stage", "core hours", f"hours on one machine of {CORES}", "result"), rows)


BEFALLS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "5 % of machines 4 times slower": {"slow": 0.05},
    "a machine fails once in 24 h": {"hours": 24.0},
    "both": {"slow": 0.05, "hours": 24.0},
    "5 % slow, a machine fails once in 2 h": {"slow": 0.05, "hours": 2.0},
}
PARTS = (10, 60, 600)


def add_simulation(report: Report, rate: Rate, stage: str, nodes: float, machines: int, spread: float) -> None:
    seconds = rate.seconds(nodes)
    table = []
    for name, settings in BEFALLS.items():
        for copies in (False, True) if settings else (False,):
            fleet, cells = Fleet(machines, copies=copies, **settings), list[str]()
            for size in PARTS:
                runs = [Simulation(parts_of(seconds, size, spread, seed), fleet, seed).run() for seed in range(SEEDS)]
                hours = [run.seconds / 3600 for run in runs]
                cells.append(f"{median(hours):.2f} ({max(hours):.2f})")
                cells.append(f"{max(run.again for run in runs)}, {max(run.failed for run in runs)}")
            table.append([name, "yes" if copies else "no", *cells])
    report.add(
        f"\n## {stage} of {nodes:,.0f} nodes on {machines} machines of {CORES} workers: "
        f"{seconds / 3600 / machines / CORES:.2f} h, if nothing is ever idle"
    )
    names = [name for size in PARTS for name in (f"parts of {size} s: hours (worst)", "again, failed")]
    report.table(("what happens", "copies", *names), table)


def power(number: float) -> str:
    return f"10^{np.log10(number):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, default=max(FOLDER.glob("*-scale.json"), default=None))
    given = parser.parse_args()
    content = json.loads(given.measured.read_text())
    found = rates(content["rows"])
    spreads = [row["parts"]["spread"] for row in content["rows"] if "spread" in row.get("parts", {})]
    spread = max(spreads, default=SPREAD)
    report = Report("simulate", "Large graphs, slow machines and failures: a simulation from measured rates", ("numpy",))
    report.add(f"- rates: {given.measured.name}")
    add_needs(report, found, content["degree"])
    report.add(
        f"\nSimulated: {SEEDS} seeds, median and worst. A part's seconds are off from the plan's by a factor whose logarithm "
        f"has deviation {spread:.2f} ({'measured, of few parts' if spreads else 'assumed'}). Assumed: how often machines fail, "
        f"and that another takes a failed one's place after {Fleet(1).repair / 60:.0f} minutes. Copies: idle workers begin "
        "parts that others have not ended, which one driver does not do, but a second one at the same job does. Again: parts "
        f"begun again, at most; failed: parts that failed {ATTEMPTS} times, at most: the command then ends with an error and "
        "is given again."
    )
    for stage, edges, machines in (("transitions", 1e11, 64), ("embed", 1e9, 8), ("embed", 1e11, 64)):
        if stage in found:
            add_simulation(report, found[stage], stage, edges / content["degree"], machines, spread)
    report.write()


if __name__ == "__main__":
    main()
