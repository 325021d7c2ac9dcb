"""How long does a command take that has little to do, beside `import torch`?

    python -m benchmarks.startup [--repeat 5] [--device cpu]
    python -m benchmarks.startup --device cuda

On a CPU the commands take turns after one round that warms the caches, and medians are compared. On a GPU a first training
compiles its Triton kernels into an empty folder, and others find them there; what each epoch took is in the run's history.
Numba's kernels, for the CPU, are compiled before: they are kept beside the package.
CPU seconds, of all threads, say on a machine that others use too what the seconds would be without them.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from time import perf_counter
from typing import NamedTuple

from benchmarks.report import FOLDER, Report, how_made

PACKAGES = ("torch", "numba", "typer")
TORCH = "python -c 'import torch'"
ONE_EPOCH = ("--set", "training.epochs=1")
NODE = "42"
FIRST_SECONDS = 20.0
"""For a first training on a GPU, in which kernels are compiled."""
TIMES_TORCH = {"help": 0.4, "predict": 2.2, "explain": 2.2, "train": 3.0, "again": 2.5}


@dataclass(frozen=True)
class Measured:
    """A command, how long it took, and how long it may take; `training` is the part that was spent in epochs."""

    command: str
    seconds: float
    cpu_seconds: float
    times_torch: float
    target: str
    met: bool | None
    training: float = 0.0


class Times(NamedTuple):
    """How long a process took, by the clock and of all cores."""

    seconds: float
    cpu_seconds: float


def python(*arguments: str, **environment: str) -> Times:
    """What a Python process takes from its start to its end."""
    started, worked = perf_counter(), cpu_seconds()
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    times = Times(perf_counter() - started, cpu_seconds() - worked)
    if done.returncode:
        raise SystemExit(f"python {' '.join(arguments)} ended with code {done.returncode}:\n{done.stderr}")
    for line in done.stderr.splitlines():
        if line.startswith("compiling"):
            print(f"  {line}", flush=True)
    return times


def cpu_seconds() -> float:
    """What all processes took that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def medians(times: Sequence[Times]) -> Times:
    return Times(*(statistics.median(column) for column in zip(*times, strict=True)))


def train(out: Path, *settings: str, device: str, **environment: str) -> Times:
    """What a training of digits takes into a folder that is not there yet."""
    rmtree(out, ignore_errors=True)
    return python("-m", "gatas", "train", "digits", "--device", device, "--out", str(out), *settings, **environment)


def in_turns(run: Path, scratch: Path, repeat: int) -> dict[str, Times]:
    """Median times of each command, one after another in every round; the first round is not counted."""
    commands = {
        "torch": lambda: python("-c", "import torch"),
        "help": lambda: python("-m", "gatas", "--help"),
        "predict": lambda: python("-m", "gatas", "predict", str(run), NODE, "--device", "cpu"),
        "explain": lambda: python("-m", "gatas", "explain", str(run), NODE, "--device", "cpu", "--out", str(scratch / "why")),
        "train": lambda: train(scratch / "one-epoch", *ONE_EPOCH, device="cpu"),
    }
    rounds = [{name: work() for name, work in commands.items()} for _ in range(repeat + 1)][1:]
    return {name: medians([times[name] for times in rounds]) for name in commands}


def on_cpu(scratch: Path, repeat: int) -> list[Measured]:
    """Commands that have little to do, beside `import torch`."""
    run = scratch / "digits"
    train(run, "--set", "training.epochs=5", device="cpu")
    times = in_turns(run, scratch, repeat)
    commands = {
        "help": "gatas --help",
        "predict": f"gatas predict RUN {NODE}",
        "explain": f"gatas explain RUN {NODE}",
        "train": f"gatas train digits {' '.join(ONE_EPOCH)}",
    }
    rows = [Measured(TORCH, *times["torch"], 1.0, "", None)]
    for name, command in commands.items():
        share, most = times[name].seconds / times["torch"].seconds, TIMES_TORCH[name]
        rows.append(Measured(command, *times[name], share, f"≤ {most} × import torch", share <= most))
    return rows


def on_gpu(scratch: Path, repeat: int, device: str) -> list[Measured]:
    """A first training, which compiles, and later ones, which find what it kept."""
    train(scratch / "digits", *ONE_EPOCH, device="cpu")  # Numba's kernels are compiled, and files are in memory
    torch = medians([python("-c", "import torch") for _ in range(repeat)])
    kernels = {"TRITON_CACHE_DIR": str(scratch / "kernels")}
    out = scratch / "digits"
    first, compiled = train(out, device=device, **kernels), trained_seconds(out)
    again = sorted((train(out, device=device, **kernels), trained_seconds(out)) for _ in range(repeat))
    later, training = again[len(again) // 2]
    most, rest = TIMES_TORCH["again"], (later.seconds - training) / torch.seconds
    share, limit = first.seconds / torch.seconds, f"≤ {FIRST_SECONDS:.0f} s"
    again_limit = f"≤ {most} × import torch + epochs"
    return [
        Measured(TORCH, *torch, 1.0, "", None),
        Measured("gatas train digits, first", *first, share, limit, first.seconds <= FIRST_SECONDS, compiled),
        Measured("gatas train digits, again", *later, later.seconds / torch.seconds, again_limit, rest <= most, training),
    ]


def trained_seconds(run: Path) -> float:
    """Seconds of all epochs, by the run's history; the first, which also loads what it needs, is taken to be like others."""
    first, *others = (float(json.loads(line)["seconds"]) for line in (run / "history.jsonl").read_text().splitlines())
    return min(first, statistics.median(others or [first])) + sum(others)


def show(report: Report, rows: Sequence[Measured]) -> None:
    """All commands in one table; the training and the rest apart where it was measured."""
    said: Mapping[bool | None, str] = {True: "met", False: "**not met**", None: ""}
    torch = rows[0].seconds
    apart = any(row.training for row in rows)
    table = []
    for row in rows:
        cells = [
            f"`{row.command}`" if row.command == TORCH else row.command,
            f"{row.seconds:.2f}",
            f"{row.cpu_seconds:.2f}",
            f"{row.times_torch:.2f}",
        ]
        if apart:
            rest = row.seconds - row.training
            cells += [f"{row.training:.2f}", f"{rest:.2f}", f"{rest / torch:.2f}"] if row.training else ["", "", ""]
        table.append([*cells, row.target, said[row.met]])
    parts = ["epochs, s", "the rest, s", "the rest × import torch"] if apart else []
    report.table(["command", "seconds", "CPU seconds", "× import torch", *parts, "target", ""], table)


def main() -> None:
    arguments = parse()
    gpu = arguments.device != "cpu"
    name = "startup-gpu" if gpu else "startup"
    report = Report(name, "How long commands take that have little to do", PACKAGES)
    report.add(f"- load average {os.getloadavg()[0]:.1f} at the start; medians of {arguments.repeat} in turns, caches warm")
    with tempfile.TemporaryDirectory() as scratch:
        rows = on_gpu(Path(scratch), arguments.repeat, arguments.device) if gpu else on_cpu(Path(scratch), arguments.repeat)
    show(report, rows)
    folder = arguments.out
    stem = f"{datetime.now(UTC):%Y-%m-%d}-{name}"
    report.write(folder / f"{stem}.md")
    content = {"made": how_made(PACKAGES), "device": arguments.device, "rows": [asdict(row) for row in rows]}
    (folder / f"{stem}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="rounds whose median is taken")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for a first and a second training")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the report")
    return parser.parse_args()


if __name__ == "__main__":
    main()
