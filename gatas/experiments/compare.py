"""`compare`: models side by side on the same data, splits and seeds. What is missing is run, the rest is read."""

import gc
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from scipy import stats

from gatas.datasets import Dataset, load_dataset, open_dataset
from gatas.errors import ConfigError, TrainingError
from gatas.experiments.contenders import OURS, Contender, check_models, contender, data_of
from gatas.experiments.measuring import PeakMemory, seconds_to_answer
from gatas.experiments.results import UNIMPORTANT, commit, hardware, rounded, spread, summarised, values, versions
from gatas.training.checkpoint import write_whole
from gatas.training.config import Config, load_config
from gatas.training.loop import chosen_device, fit_models

FOLDER = "peers"
COLUMNS = ("seeds", "against gatas (95 %)", "parameters", "s / epoch", "s to best", "peak memory", "s / 1,000 targets")
NOTE = (
    "Mean ± standard deviation over seeds; the difference is paired by seed. Seconds are the share of one seed where several "
    "are trained as one program; memory is that of the whole program, with how many seeds it trained."
)


def compare(
    data: Sequence[str],
    models: Sequence[str],
    folder: Path,
    *,
    seeds: int = 10,
    at_once: int = 100,
    data_dir: str | Path | None = None,
    device: str = "auto",
    begin: Callable[[str], None] = lambda name: None,
) -> str:
    """Run what is missing, one JSON for each model and data set, and render a table for each data set.

    `data` are names, or YAML files as `gatas train` takes them, whose settings are then those of ours.
    """
    datasets = {name: loaded(name, data_dir) for name in data}
    check_models(models, [dataset.name for dataset, _ in datasets.values()])
    for dataset, _ in datasets.values():
        if dataset.task == "link prediction":
            raise ConfigError(f"{dataset.name} is for link prediction; models are compared on node classification.")
    for dataset, config in datasets.values():
        for model in chosen(models, dataset.name):
            begin(f"{model} on {dataset.name}")
            run_model(model, dataset, range(seeds), folder / FOLDER, config=config, at_once=at_once, device=device)
    return "\n".join(render(dataset, models, folder) for dataset, _ in datasets.values())


def loaded(named: str, data_dir: str | Path | None) -> tuple[Dataset, Config | None]:
    """A data set by its name; or that of a YAML file, and the file's settings."""
    path = Path(named)
    if path.suffix not in (".yaml", ".yml") and not path.is_file():
        return load_dataset(named, data_dir), None
    config = load_config(path)
    return open_dataset(config.data, data_dir), config


def chosen(models: Sequence[str], data: str) -> list[str]:
    """Those for a data set: a recipe is for its own."""
    return [model for model in dict.fromkeys(models) if data_of(model) in (None, data)]


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
    device: str = "auto",
) -> dict[str, Any]:
    """Train the seeds that the model's JSON does not have yet. What it raises is kept there, for others to go on."""
    path, where = path_of(folder, dataset.name, name), chosen_device(device)
    found: dict[str, Any] = {
        "model": name,
        "data": dataset.name,
        "note": dataset.note,
        "settings": {},
        "runs": [],
        "sessions": [],
    }
    try:
        given = contender(name, dataset, config)
        found = stored(path, {**found, "settings": plain(given.settings)})
        missing = [seed for seed in seeds if seed not in {run["seed"] for run in found["runs"]}]
        for runs, session in in_parts(given, missing, at_once, where):
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
    given: Contender, seeds: Sequence[int], at_once: int, device: torch.device
) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Some seeds in one program after another; half as many from where they do not fit into memory."""
    size = at_once if seeds and given.vmaps else 1
    while seeds:
        size, result = min(size, len(seeds)), None
        try:
            result = trained(given, seeds[:size], device)
        except torch.OutOfMemoryError:
            if size == 1:
                raise
        if result is None:  # only here is nothing held by the exception any more
            size //= 2
            free(device)
            continue
        yield result
        seeds = seeds[size:]


def free(device: torch.device) -> None:
    """Give back what a failed training has held."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def trained(given: Contender, seeds: Sequence[int], device: torch.device) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Some seeds in one program: what came of each, and what it took."""
    peak = PeakMemory(device)
    with torch.random.fork_rng():  # dropout of others draws from torch's own generator
        torch.manual_seed(seeds[0])
        runs = fit_models(given.models(seeds), given.dataset, given.config, seeds, device=str(device))
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
        "peak_bytes": peak.taken(),
        "seconds_for_1000": seconds_to_answer(runs[0].model, given.dataset, given.config.training, device),
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


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives them back, without what changes no numbers."""
    training = {name: value for name, value in settings["training"].items() if name not in UNIMPORTANT}
    return dict(json.loads(json.dumps({**settings, "training": training})))


def write(path: Path, found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())


def render(dataset: Dataset, models: Sequence[str], folder: Path) -> str:
    """The table of a data set in Markdown, from what is in the folder."""
    metric = "micro_f1" if dataset.task == "multi-label node classification" else "accuracy"
    split = "test" if "test" in dataset.splits else "valid"
    found = {model: read(path_of(folder / FOLDER, dataset.name, model)) for model in chosen(models, dataset.name)}
    return rendered(dataset.name, found, f"{split}.{metric}", dataset.note)


def rendered(data: str, found: Mapping[str, dict[str, Any]], metric: str, note: str) -> str:
    """The table of a data set in Markdown, from results by model."""
    ours = scores(found.get(OURS, {}), metric)
    rows = [row(model, result, metric, ours) for model, result in found.items()]
    notes = [f"{model} stopped: {one['error']}" for model, one in found.items() if one.get("error") and one["runs"]]
    name = metric.rpartition(".")[2].replace("_", "-")
    head = " | ".join(["| model", name, *COLUMNS]) + " |", "|---|---" + "|---" * len(COLUMNS) + "|"
    said = [line for line in (note, *notes) if line]
    return "\n".join([f"### {data}", "", *head, *rows, "", NOTE, *said, ""])


def read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"runs": []}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def scores(result: dict[str, Any], metric: str) -> dict[int, float]:
    """In percent, by seed."""
    runs = result.get("runs", [])
    return {run["seed"]: 100 * value for run, value in zip(runs, values({"runs": runs}, metric), strict=True)}


def row(model: str, result: dict[str, Any], metric: str, ours: dict[int, float]) -> str:
    if not result["runs"]:
        reason = result.get("error", "not run yet").replace("|", "¦")
        return f"| {model} | {reason} |" + " – |" * len(COLUMNS)
    own, session = scores(result, metric), result["sessions"][-1]
    numbers = list(own.values())
    cells = [
        f"{statistics.fmean(numbers):.2f} ± {spread(numbers):.2f}",
        str(len(numbers)),
        "–" if model == OURS else difference(own, ours),
        f"{session['parameters']:,}",
        f"{statistics.median(run['seconds_per_epoch'] for run in result['runs']):.3g}",
        f"{statistics.median(run['seconds_to_best'] for run in result['runs']):.3g}",
        f"{readable(session['peak_bytes'])} ({len(session['seeds'])})",
        f"{session['seconds_for_1000']:.3g}",
    ]
    return " | ".join([f"| {model}", *cells]) + " |"


def difference(own: dict[int, float], ours: dict[int, float]) -> str:
    """The mean difference over the seeds that both have, with its 95 % interval (Student's t)."""
    both = [own[seed] - ours[seed] for seed in own if seed in ours]
    if len(both) < 2:
        return "–"
    mean, half = statistics.fmean(both), stats.t.ppf(0.975, len(both) - 1) * spread(both) / math.sqrt(len(both))
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"


def readable(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
