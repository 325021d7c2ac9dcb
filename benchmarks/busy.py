"""How long does a training take beside another one? With threads that sleep between operations, and with threads that spin.

    python -m benchmarks.busy [--rounds 3] [--epochs 60] [--to REPORT.md]

A process trains `digits` alone; then two processes train it side by side, each with a thread for every core. Spinning is what
GNU's OpenMP does where nobody says otherwise; it is asked for by the environment here, which gatas leaves as it is.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.report import Report

TRAIN = """
import time, gatas
from gatas.experiments.recipes import recipe
from gatas.training.loop import fit_models, make_model
dataset, config = gatas.load_dataset("digits"), recipe("digits").with_settings({{"training.epochs": {epochs}}})
model = make_model(dataset, config, 0)
print("ready", flush=True)
input()
wall, own = time.perf_counter(), time.process_time()
fit_models([model], dataset, config, [0], device="cpu")
print(time.perf_counter() - wall, time.process_time() - own)
"""
KINDS: dict[str, dict[str, str]] = {
    "as it is": {},
    "threads that spin": {"GOMP_SPINCOUNT": "300000"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def trained(count: int, epochs: int, variables: dict[str, str]) -> tuple[float, float]:
    """Return seconds of the slowest of some trainings that begin together, and seconds of CPU time that one takes."""
    environment = {**{name: value for name, value in os.environ.items() if "OMP_" not in name}, **variables}
    command = [sys.executable, "-c", TRAIN.format(epochs=epochs)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    processes = [subprocess.Popen(command, **pipes) for _ in range(count)]  # type: ignore[call-overload]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    taken = [tuple(map(float, process.communicate()[0].split())) for process in processes]
    return max(wall for wall, _ in taken), sum(own for _, own in taken) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--to", type=Path)
    args = parser.parse_args()
    report = Report("busy", "How long does a training take beside another one?", ("torch", "numba", "numpy"))
    started, rows = perf_counter(), []
    trained(1, 2, {})  # compiles
    for name, variables in KINDS.items():
        alone, beside = ([trained(count, args.epochs, variables) for _ in range(args.rounds)] for count in (1, 2))
        seconds = [median(one[place] for one in some) for some in (alone, beside) for place in (0, 1)]
        rows.append([name, *(f"{value:.2f}" for value in seconds), f"{seconds[2] / seconds[0]:.2f}"])
    report.add(f"`digits`, {args.epochs} epochs, medians of {args.rounds} rounds, {perf_counter() - started:.0f} s in all.\n")
    report.table(["threads", "alone, s", "CPU s", "beside another, s", "CPU s of each", "beside / alone"], rows)
    report.write(args.to)


if __name__ == "__main__":
    main()
