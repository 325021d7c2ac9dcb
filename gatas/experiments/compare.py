"""`compare`: models side by side on the same data, splits and seeds. What is missing is run, the rest is read."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from gatas.datasets import Dataset
from gatas.errors import ConfigError, TrainingError
from gatas.experiments.compare_ranks import Measured, over_graphs
from gatas.experiments.compare_table import OF_PAIRS, PROTOCOLS, rendered, views
from gatas.experiments.comparison_data import loaded
from gatas.experiments.contenders import LINKS, Contender, check_models, contender, is_for
from gatas.experiments.measuring import PeakMemory, free, seconds_to_answer, wake
from gatas.experiments.paper import settings_of_config
from gatas.experiments.ranked import with_ranking
from gatas.experiments.recording import seed_run, session
from gatas.experiments.results import ResultRecord, SeedRun, TrainingSession, kept, result_path, resumed
from gatas.experiments.shared_results import add, add_error, claimed
from gatas.experiments.trials import FOLDER as TRIALS
from gatas.experiments.trials import tuned
from gatas.training.checkpoint import UnwritableError
from gatas.training.config import Config
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device
from gatas.training.products import quick_products

FOLDER = "peers"


def compare(
    data: Sequence[str],
    models: Sequence[str],
    folder: Path,
    *,
    seeds: int = 10,
    trials: int = 1,
    splits: Sequence[str] = (),
    at_once: int = 100,
    protocol: str | None = None,
    limit: Limit | None = None,
    data_dir: str | Path | None = None,
    device: str = "auto",
    begin: Callable[[str], None] = lambda name: None,
) -> str:
    """Run what is missing, one JSON for each model and data set, and render a table for each data set.

    `data` are names, or YAML files as `gatas train` takes them, whose settings are then those of ours; data that such a file
    gives no name is called as the file is. Links are measured by every protocol, from one training, and have a table for each,
    or for the one that is asked for; they are ranked where the data came without negatives.

    With several `trials` every model is first tuned by as many, on validation data alone. `splits` name columns of node tables,
    also as `split*`: a file that has them is compared on each, and a table over all graphs follows with ranks.

    Several processes may be at one folder, to fill a GPU: each trains seeds that no other is at, and its tables show what
    there is when it is done.
    """
    if protocol is not None and protocol not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {protocol!r}; expected {' or '.join(PROTOCOLS)}.")
    datasets = [one for name in data for one in loaded(name, data_dir, splits)]
    check_data([one.dataset for one in datasets], models, protocol)
    settings: Any = {"at_once": at_once, "limit": limit, "device": device, "trials": trials}
    tables, measured = [], Measured()
    for graph, dataset, config in datasets:
        found = {}
        for model in chosen(models, dataset):
            begin(f"{model} on {dataset.name}")
            found[model] = run_model(model, dataset, range(seeds), folder / FOLDER, config=config, **settings)
        tables.append(render(dataset, found, protocol))
        if dataset.task != LINKS:
            measured.add(graph, dataset, found)
    return "\n".join([*tables, *([over_graphs(measured)] if len(measured.splits) > 1 else [])])


def check_data(datasets: Sequence[Dataset], models: Sequence[str], protocol: str | None) -> None:
    """Refuse models that are for none of the data, and a protocol that is not for it."""
    check_models(models, datasets)
    if protocol is not None and all(dataset.task != LINKS for dataset in datasets):
        names = ", ".join(dict.fromkeys(dataset.name for dataset in datasets))
        raise ConfigError(f"protocol is {protocol!r}, but none of the data is for links: {names}. Leave it out.")
    if protocol == "ranking":
        check_ranked(datasets)


def chosen(models: Sequence[str], dataset: Dataset) -> list[str]:
    """The models that are for a data set, each once."""
    return [model for model in dict.fromkeys(models) if is_for(model, dataset)]


def run_model(
    name: str,
    dataset: Dataset,
    seeds: Sequence[int],
    folder: Path,
    *,
    config: Config | None = None,
    trials: int = 1,
    at_once: int = 100,
    limit: Limit | None = None,
    device: str = "auto",
) -> ResultRecord:
    """Train the seeds that the model's result does not have yet. What it raises is kept there, so that others go on."""
    where, limit = chosen_device(device), limit or Limit()
    data = {"name": dataset.name} if config is None else settings_of_config(config)["data"]
    found = ResultRecord(model=name, data=dataset.name, task=dataset.task, note=dataset.note, settings={"data": data})
    try:
        searched: Any = {"config": config, "device": device, "limit": limit}
        changed = tuned(name, dataset, trials, folder.parent / TRIALS, **searched) if trials > 1 else {}
        given = contender(name, dataset, config, changed)
    except UnwritableError:  # which no model is to blame for
        raise
    except Exception as error:  # a user's class may raise anything
        return add_error(result_path(folder, found), found, error)
    path, found = resumed(folder, found.model_copy(update={"settings": kept({"data": data, **given.settings})}))
    missing = found.missing(seeds)
    check_limit(path, found, missing, limit)
    try:
        for runs, taken in in_parts(given, missing, at_once, where, limit, path):
            found = add(path, found, runs, taken)
    except UnwritableError:
        raise
    except Exception as error:  # whatever a model raises: out of memory, shapes, a loss that is no number
        found = add_error(path, found, error)
        free(where)
    return found


def in_parts(
    given: Contender, seeds: Sequence[int], at_once: int, device: torch.device, limit: Limit, path: Path
) -> Iterator[tuple[list[SeedRun], TrainingSession]]:
    """Train some seeds in one program after another; half as many from where they do not fit into memory.

    Seeds that another process is at, for the result of that path, are left to it.
    """
    size = at_once if seeds and given.vmaps else 1
    while seeds:
        size, result = min(size, len(seeds)), None
        with claimed(path, seeds[:size]) as own:
            try:
                result = trained(given, own, device, limit) if own else None
            except torch.OutOfMemoryError:
                if len(own) == 1:
                    raise
            else:
                if result:
                    yield result
                seeds = seeds[size:]
                continue
        size //= 2  # only here is nothing held by the exception any more
        free(device)


def trained(
    given: Contender, seeds: Sequence[int], device: torch.device, limit: Limit
) -> tuple[list[SeedRun], TrainingSession]:
    """Some seeds in one program: what came of each, and what it took."""
    free(device)
    wake(device)
    peak = PeakMemory(device)
    with torch.random.fork_rng():  # dropout of peers draws from torch's own generator
        torch.manual_seed(seeds[0])
        with quick_products(device):  # for peers that have loops of their own too
            runs = given.fit(seeds, str(device), limit)
    results = []
    for run in with_ranking(runs, given.dataset, device):
        seconds = [entry["seconds"] / run.trained_together for entry in run.history]
        to_best = sum(seconds[: run.metrics["best_epoch"] + 1])
        times = {"seconds_per_epoch": statistics.median(seconds), "seconds_to_best": to_best}
        results.append(seed_run(run, trained_together=run.trained_together, **times))
    taken = session(
        list(seeds),
        device,
        settled=settled(given.settings, runs[0].config),
        limit=asdict(limit),
        peak_bytes=peak.taken(),
        seconds_for_1000=seconds_to_answer(runs[0].model, given.dataset, runs[0].config.training, device),
        parameters=sum(parameter.numel() for parameter in runs[0].model.parameters()),
    )
    return results, taken


def settled(settings: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """What a model was made with where its settings say `auto`, which follows from the data and the machine's memory."""
    taken, given = config.model.model_dump(mode="json"), settings.get("model", {})
    return {name: value for name, value in taken.items() if given.get(name) == "auto"}


def check_ranked(datasets: Sequence[Dataset]) -> None:
    """Refuse to rank links of data that came with negatives."""
    for dataset in datasets:
        if dataset.task == LINKS and not dataset.ranked:
            raise ConfigError(
                f"{dataset.name} has negatives, which links are told from; nothing is ranked. Leave --protocol out."
            )


class CutError(TrainingError):
    """A result whose seeds were cut at another limit, which is never added to."""


def check_limit(path: Path, found: ResultRecord, missing: Sequence[int], limit: Limit) -> None:
    """Refuse to put seeds that end elsewhere, or nowhere, beside seeds that were cut."""
    cut = next((run.cut for run in found.runs if run.cut), None)
    if missing and cut is not None and found.sessions[-1].limit != asdict(limit):
        raise CutError(f"{path} has seeds that were cut at {cut}. Give the same limit, or move it away to run it anew.")


def render(dataset: Dataset, found: Mapping[str, ResultRecord], protocol: str | None = None) -> str:
    """The tables of a data set in Markdown, from results by model."""
    split = "test" if "test" in dataset.splits else "valid"
    protocols = [protocol] if protocol else ["ranking", *OF_PAIRS] if dataset.ranked else list(OF_PAIRS)
    asked = views(dataset.name, dataset.task, split, protocols)
    return "\n".join(rendered(view, found, dataset.note) for view in asked)
