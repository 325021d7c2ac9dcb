"""From a `Run` to what is kept of it, and what it was run on."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from gatas.experiments.results import Curve, SeedRun, TrainingSession
from gatas.training.run import TrainedRun

PACKAGES = ("torch", "triton", "numpy", "numba", "scikit-learn", "torch-geometric", "pykeen")


def seed_run(run: TrainedRun, **times: int | float) -> SeedRun:
    """One seed: metrics, the depth it learned, and how long it took."""
    best = run.history[max(0, run.metrics["best_epoch"])]
    depth = {"depth": best["depth"]} if "depth" in best else {}
    metrics = {name: _of_all(value) if isinstance(value, dict) else value for name, value in run.metrics.items()}
    return SeedRun.model_validate(rounded({"seed": run.seed, **metrics, **depth, **times}))


def _of_all(measured: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of a split without those of every class, which results of many seeds have no use for."""
    return {name: value for name, value in measured.items() if name not in ("by_class", "calibration")}


def curve(run: TrainedRun) -> Curve:
    """A run epoch by epoch."""
    return {name: [rounded(entry[name]) for entry in run.history] for name in run.history[0] if name != "epoch"}


def session(seeds: list[int], device: torch.device, **more: Any) -> TrainingSession:
    """A session of today, of this machine and this code."""
    return TrainingSession(
        seeds=seeds,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        hardware=hardware(device),
        versions=versions(),
        commit=commit(),
        command=command_of(sys.argv),
        **rounded(more),
    )


def command_of(words: Sequence[str]) -> str:
    """The command of gatas that runs, with files and folders by their last names alone; nothing where it is no command."""
    program = Path(words[0])
    if (program.parent.name if program.name == "__main__.py" else program.stem) != "gatas":
        return ""
    return shlex.join(["gatas", *(without_folders(word) for word in words[1:])])


def without_folders(word: str) -> str:
    """A word of a command, or what is after its `=`, without the folders of a path."""
    name, equals, value = word.rpartition("=")
    return f"{name}{equals}{Path(value).name if '/' in value or os.sep in value else value}"


def rounded(value: Any) -> Any:
    """Floats to five digits after the point, wherever they are."""
    if isinstance(value, dict):
        return {name: rounded(own) for name, own in value.items()}
    if isinstance(value, list):
        return [rounded(own) for own in value]
    return round(value, 5) if isinstance(value, float) else value


def hardware(device: torch.device) -> str:
    """The GPU where one is used, the processor, and how many of its cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    gpu = f"{torch.cuda.get_device_name()}; " if device.type == "cuda" else ""
    return f"{gpu}{name}, {len(os.sched_getaffinity(0))} cores"


def versions() -> dict[str, str]:
    """Python's version and those of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of the code that runs; $GATAS_COMMIT where the code is a copy without its history."""
    given = os.environ.get("GATAS_COMMIT")
    if given:
        return given
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
