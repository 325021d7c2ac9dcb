"""`compare`: models side by side on the same data, splits and seeds. What is missing is run, the rest is read."""

import json
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from gatas.datasets import Dataset, load_dataset, open_dataset
from gatas.errors import ConfigError, TrainingError
from gatas.experiments.compare_table import PROTOCOLS, rendered, views
from gatas.experiments.contenders import LINKS, Contender, check_models, contender, is_for
from gatas.experiments.measuring import PeakMemory, free, seconds_to_answer, wake
from gatas.experiments.results import UNIMPORTANT, commit, hardware, rounded, summarised, versions
from gatas.training.checkpoint import write_whole
from gatas.training.config import Config, load_config
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device

FOLDER = "peers"


def compare(
    data: Sequence[str],
    models: Sequence[str],
    folder: Path,
    *,
    seeds: int = 10,
    at_once: int = 100,
    protocol: str | None = None,
    limit: Limit | None = None,
    data_dir: str | Path | None = None,
    device: str = "auto",
    begin: Callable[[str], None] = lambda name: None,
) -> str:
    """Run what is missing, one JSON for each model and data set, and render a table for each data set.

    `data` are names, or YAML files as `gatas train` takes them, whose settings are then those of ours. Links are measured by
    every protocol, from one training, and have a table for each, or for the one that is asked for.
    """
    if protocol is not None and protocol not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {protocol!r}; expected {' or '.join(PROTOCOLS)}.")
    datasets = {name: loaded(name, data_dir) for name in data}
    check_models(models, [dataset for dataset, _ in datasets.values()])
    if protocol is not None and all(dataset.task != LINKS for dataset, _ in datasets.values()):
        raise ConfigError(f"protocol is {protocol!r}, but none of the data is for links: {', '.join(datasets)}. Leave it out.")
    for dataset, config in datasets.values():
        for model in chosen(models, dataset):
            begin(f"{model} on {dataset.name}")
            settings: Any = {"config": config, "at_once": at_once, "limit": limit, "device": device}
            run_model(model, dataset, range(seeds), folder / FOLDER, **settings)
    return "\n".join(render(dataset, models, folder, protocol) for dataset, _ in datasets.values())


def loaded(named: str, data_dir: str | Path | None) -> tuple[Dataset, Config | None]:
    """A data set by its name; or that of a YAML file, and the file's settings."""
    path = Path(named)
    if path.suffix not in (".yaml", ".yml") and not path.is_file():
        return load_dataset(named, data_dir), None
    config = load_config(path)
    return open_dataset(config.data, data_dir), config


def chosen(models: Sequence[str], dataset: Dataset) -> list[str]:
    """Those for a data set."""
    return [model for model in dict.fromkeys(models) if is_for(model, dataset)]


def path_of(folder: Path, data: str, model: str) -> Path:
    return folder / f"{data}-{re.sub(r'[^A-Za-z0-9._-]', '_', model)}.json"


def run_model(
    name: str,
    dataset: Dataset,
    seeds: Sequence[int],
    folder: Path,
    *,
    config: Config | None = None,
    at_once: int = 100,
    limit: Limit | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """Train the seeds that the model's JSON does not have yet. What it raises is kept there, for others to go on."""
    path, where, limit = path_of(folder, dataset.name, name), chosen_device(device), limit or Limit()
    found: dict[str, Any] = {
        "model": name,
        "data": dataset.name,
        "task": dataset.task,
        "note": dataset.note,
        "settings": {},
        "runs": [],
        "sessions": [],
    }
    try:
        given = contender(name, dataset, config)
        found = stored(path, {**found, "settings": plain(given.settings)})
        missing = [seed for seed in seeds if seed not in {run["seed"] for run in found["runs"]}]
        check_limit(path, found, missing, limit)
        for runs, session in in_parts(given, missing, at_once, where, limit):
            found.pop("error", None)
            found["runs"] += runs
            found["sessions"].append(session)
            write(path, found)
    except StaleError:
        raise
    except Exception as error:  # whatever a model of others raises: out of memory, shapes, a loss that is no number
        found["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        write(path, found)
        free(where)
    return found


def in_parts(
    given: Contender, seeds: Sequence[int], at_once: int, device: torch.device, limit: Limit
) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Some seeds in one program after another; half as many from where they do not fit into memory."""
    size = at_once if seeds and given.vmaps else 1
    while seeds:
        size, result = min(size, len(seeds)), None
        try:
            result = trained(given, seeds[:size], device, limit)
        except torch.OutOfMemoryError:
            if size == 1:
                raise
        if result is None:  # only here is nothing held by the exception any more
            size //= 2
            free(device)
            continue
        yield result
        seeds = seeds[size:]


def trained(
    given: Contender, seeds: Sequence[int], device: torch.device, limit: Limit
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Some seeds in one program: what came of each, and what it took."""
    free(device)
    wake(device)
    peak = PeakMemory(device)
    with torch.random.fork_rng():  # dropout of others draws from torch's own generator
        torch.manual_seed(seeds[0])
        runs = given.fit(seeds, str(device), limit)
    results = []
    for run in runs:
        seconds = [entry["seconds"] / len(seeds) for entry in run.history]
        times = {
            "seconds_per_epoch": statistics.median(seconds),
            "seconds_to_best": sum(seconds[: run.metrics["best_epoch"] + 1]),
        }
        results.append({**summarised(run), **rounded(times)})
    session = {
        "seeds": list(seeds),
        "limit": asdict(limit),
        "peak_bytes": peak.taken(),
        "seconds_for_1000": seconds_to_answer(runs[0].model, given.dataset, runs[0].config.training, device),
        "parameters": sum(parameter.numel() for parameter in runs[0].model.parameters()),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(device),
        "versions": versions(),
        "commit": commit(),
    }
    return results, rounded(session)


class StaleError(TrainingError):
    """A result of other settings, which is never added to."""


def stored(path: Path, fresh: dict[str, Any]) -> dict[str, Any]:
    """What is there already."""
    if not path.exists():
        return fresh
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not found["runs"]:
        return fresh
    if found["settings"] != fresh["settings"]:
        raise StaleError(f"{path} was made with other settings than {fresh['model']} has now. Move it away to run it anew.")
    return found


def check_limit(path: Path, found: dict[str, Any], missing: Sequence[int], limit: Limit) -> None:
    """Seeds that were cut have none beside them that were not, or elsewhere."""
    cut = next((run["cut"] for run in found["runs"] if "cut" in run), None)
    if missing and cut is not None and found["sessions"][-1]["limit"] != asdict(limit):
        raise StaleError(f"{path} has seeds that were cut at {cut}. Give the same limit, or move it away to run it anew.")


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives them back, without what changes no numbers."""
    training = {name: value for name, value in settings["training"].items() if name not in UNIMPORTANT}
    return dict(json.loads(json.dumps({**settings, "training": training})))


def write(path: Path, found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())


def render(dataset: Dataset, models: Sequence[str], folder: Path, protocol: str | None = None) -> str:
    """The tables of a data set in Markdown, from what is in the folder."""
    found = {model: read(path_of(folder / FOLDER, dataset.name, model)) for model in chosen(models, dataset)}
    split = "test" if "test" in dataset.splits else "valid"
    asked = views(dataset.name, dataset.task, split, [protocol] if protocol else list(PROTOCOLS))
    return "\n".join(rendered(view, found, dataset.note) for view in asked)


def read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"runs": []}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
