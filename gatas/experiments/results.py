"""One JSON per recipe under results/: what was run, on what, and what came of it for every seed."""

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from pydantic import ValidationError

from gatas.datasets import Dataset, open_dataset
from gatas.errors import TrainingError
from gatas.experiments.recipes import recipe
from gatas.training.checkpoint import write_whole
from gatas.training.config import Config
from gatas.training.loop import Entry, chosen_device, fit_many
from gatas.training.run import Run

PACKAGES = ("torch", "triton", "numpy", "numba", "scikit-learn", "torchmetrics", "torch-geometric")
UNIMPORTANT = {"checkpoint_seconds", "keep_checkpoints"}


def run_recipe(
    name: str,
    seeds: Sequence[int],
    folder: Path,
    *,
    at_once: int = 100,
    data_dir: str | Path | None = None,
    device: str = "auto",
    report: Callable[[Entry], None] | None = None,
) -> dict[str, Any]:
    """Train the seeds that the recipe's JSON does not have yet, `at_once` in one program, and add them to it."""
    config, path = recipe(name), folder / f"{name}.json"
    result = stored(path, config)
    missing = [seed for seed in seeds if seed not in {run["seed"] for run in result["runs"]}]
    dataset: Dataset | None = None
    for start in range(0, len(missing), at_once):
        chosen = missing[start : start + at_once]
        dataset = dataset or open_dataset(config.data, data_dir)
        started = perf_counter()
        runs = fit_many(config, chosen, dataset=dataset, device=device, report=report)
        session = {
            "seeds": chosen,
            "seconds": round(perf_counter() - started, 2),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "hardware": hardware(chosen_device(device)),
            "versions": versions(),
            "commit": commit(),
        }
        result["runs"] += [summarised(run) for run in runs]
        result["curves"] |= {str(run.seed): curve(run) for run in runs if run.seed == 0}
        result["sessions"].append(session)
        result["note"] = dataset.note
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())
    return result


def stored(path: Path, config: Config) -> dict[str, Any]:
    """What is there already; a result of other settings is never added to."""
    settings = config.model_dump(mode="json")
    settings["training"] = {name: value for name, value in settings["training"].items() if name not in UNIMPORTANT}
    if not path.exists():
        return {"config": settings, "note": "", "runs": [], "sessions": [], "curves": {}}
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if _completed(result["config"]) != _completed(settings):
        raise TrainingError(f"{path} was made with other settings than the recipe has now. Move it away to run it anew.")
    return result


def _completed(settings: dict[str, Any]) -> Config | None:
    """With what has been added to configs since, as it is by default; None where there is no such config any more.

    Of data that gatas knows only the name matters; what defaults of other settings were then does not.
    """
    data = settings["data"]
    if data.get("edges") is None and data.get("store") is None:
        settings = {**settings, "data": {"name": data["name"]}}
    try:
        return Config.model_validate(settings)
    except ValidationError:
        return None


def summarised(run: Run) -> dict[str, Any]:
    """One seed: metrics, the depth it learned, and how long an epoch took."""
    metrics = {name: rounded(value) for name, value in run.metrics.items()}
    best = run.history[max(0, run.metrics["best_epoch"])]
    return {"seed": run.seed, **metrics, **({"depth": rounded(best["depth"])} if "depth" in best else {})}


def curve(run: Run) -> dict[str, list[Any]]:
    """A run epoch by epoch."""
    return {name: [rounded(entry[name]) for entry in run.history] for name in run.history[0] if name != "epoch"}


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(own) for name, own in value.items()}
    if isinstance(value, list):
        return [rounded(own) for own in value]
    return round(value, 5) if isinstance(value, float) else value


def values(result: dict[str, Any], metric: str) -> list[float]:
    """A metric of every seed."""
    found = []
    for run in result["runs"]:
        value: Any = run
        for part in metric.split("."):
            value = value[part]
        found.append(float(value))
    return found


def spread(numbers: list[float]) -> float:
    return statistics.stdev(numbers) if len(numbers) > 1 else 0.0


def hardware(device: torch.device) -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    gpu = f"{torch.cuda.get_device_name()}; " if device.type == "cuda" else ""
    return f"{gpu}{name}, {len(os.sched_getaffinity(0))} cores"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Of the code that ran; $GATAS_COMMIT where the code is a copy without its history."""
    given = os.environ.get("GATAS_COMMIT")
    if given:
        return given
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
