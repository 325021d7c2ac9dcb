"""A search of settings, the same for ours and for peers: so many trials, drawn by a seed, chosen by validation data.

The test split is taken away before anything is trained. Trials are kept in a file, so that a search goes on where it stopped.
"""

import json
import math
import random
from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from pydantic import BaseModel

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.experiments.baselines.peer import PeerSpace
from gatas.experiments.contenders import METRICS, Contender, contender
from gatas.experiments.measuring import free
from gatas.experiments.paper import settings_of_config
from gatas.experiments.results import file_name, fingerprint
from gatas.training.checkpoint import write_whole, writing
from gatas.training.config import Config
from gatas.training.jumps import jumps_unreported
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device

FOLDER = "trials"
SEED = 0
"""Trials are drawn and trained by it."""


class TriedSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings that were tried, and what came of them on validation data; or the error that ended them."""

    settings: dict[str, Any]
    valid: float | None = None  # accuracy, micro-F1 of multi-label data, R² of numbers
    loss: float | None = None
    epochs: int = 0
    cut: str = ""
    seconds: float = 0.0
    error: str = ""

    @property
    def score(self) -> tuple[float, float]:
        """The larger the better; of equal metrics the smaller loss."""
        return (-math.inf, 0.0) if self.valid is None or self.loss is None else (self.valid, -self.loss)


def drawn_settings(space: PeerSpace, count: int, seed: int = SEED) -> list[dict[str, Any]]:
    """`count` different choices from a space, or all there are: first none at all, which leaves a recipe as it is."""
    generator = random.Random(seed)
    found: list[dict[str, Any]] = [{}]
    size = prod(len(values) for values in space.values()) if space else 0
    seen: set[str] = set()
    while len(found) < count and len(seen) < size:
        choice = {name: generator.choice(values) for name, values in space.items()}
        if repr(choice) not in seen:
            seen.add(repr(choice))
            found.append(choice)
    return found[:count]


def tuned(
    name: str,
    dataset: Dataset,
    trials: int,
    folder: Path,
    *,
    config: Config | None = None,
    device: str = "auto",
    limit: Limit | None = None,
) -> dict[str, Any]:
    """Settings that did best on validation data among so many trials, those that the contender has by itself first."""
    if "valid" not in dataset.splits:
        raise ConfigError(f"{dataset.name} has no split 'valid', which trials are chosen by. Leave --trials out.")
    given = contender(name, dataset.with_splits({split: dataset.splits[split] for split in ("train", "valid")}), config)
    if not given.space:
        return {}
    limit = limit or Limit()
    data = {"name": dataset.name} if config is None else settings_of_config(config)["data"]
    asked = fingerprint({"data": data, **given.settings, "space": dict(given.space), "limit": asdict(limit)})
    path = folder / f"{file_name(dataset.name, name)}-{asked}.json"
    known = {json.dumps(trial.settings): trial for trial in read_trials(path)}
    done = []
    for settings in drawn_settings(given.space, trials):
        found = known.get(json.dumps(settings)) or tried(name, given, config, settings, device, limit)
        done.append((settings, found))
        write_trials(path, [trial for _, trial in done], known)
    settings, best = max(done, key=lambda one: one[1].score)
    if best.valid is None:
        raise ConfigError(f"all {len(done)} trials of {name} on {dataset.name} failed; the first: {done[0][1].error}")
    return settings


def tried(
    name: str, given: Contender, config: Config | None, settings: Mapping[str, Any], device: str, limit: Limit
) -> TriedSettings:
    """Train once with some settings, on data without a test split."""
    started, where = perf_counter(), chosen_device(device)
    metric = METRICS[given.dataset.task]
    try:
        with torch.random.fork_rng(), jumps_unreported():
            torch.manual_seed(SEED)
            (run,) = contender(name, given.dataset, config, settings).fit([SEED], str(where), limit)
    except Exception as error:  # out of memory, a loss that is no number, sizes that are refused: the others go on
        free(where)
        return TriedSettings(settings=dict(settings), error=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    measured = {"valid": run.metrics["valid"][metric], "loss": run.metrics["valid"]["loss"], "epochs": run.metrics["epochs"]}
    return TriedSettings(
        settings=dict(settings), cut=run.metrics.get("cut", ""), seconds=round(perf_counter() - started, 3), **measured
    )


def read_trials(path: Path) -> list[TriedSettings]:
    """The trials that a file holds; none where it is not there yet."""
    if not path.exists():
        return []
    return [TriedSettings.model_validate(one) for one in json.loads(path.read_text(encoding="utf-8"))["trials"]]


def write_trials(path: Path, trials: list[TriedSettings], known: Mapping[str, TriedSettings]) -> None:
    """Write trials so that after any end there are all of them or those of before; none that was known is lost."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    done = {json.dumps(trial.settings) for trial in trials}
    others = [trial for settings, trial in known.items() if settings not in done]
    content = {"trials": [trial.model_dump(mode="json", exclude_defaults=True) for trial in (*trials, *others)]}
    write_whole(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
