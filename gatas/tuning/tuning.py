"""`tune`: search for settings on validation data, go on where a search was stopped, and train the best."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from gatas.datasets import Dataset, LinkTargets, NodeTargets, open_dataset
from gatas.datasets.targets import UNLABELLED, NumberTargets
from gatas.errors import ConfigError, MissingExtraError, TrainingError
from gatas.inference.fitting import fit_many
from gatas.inference.run import Run
from gatas.training.checkpoint import identity_of, write_whole
from gatas.training.config import Config, check_config
from gatas.training.loop import chosen_device
from gatas.tuning.loop import FILES, SearchLoop, Watcher
from gatas.tuning.space import Facts, Space, default_space
from gatas.tuning.trainer import Trainer
from gatas.tuning.trial import Trial, best_of
from gatas.tuning.values import parsed_space, written_space

AT_ONCE = 8
"""Trials in one program on a GPU, unless told otherwise."""
METRICS = {"node classification": "accuracy", "multi-label node classification": "micro_f1", "node regression": "r2"}


@dataclass(frozen=True, eq=False)
class Tuning:
    """A finished search.

    Args:
        trials: All trials, in the order in which they were tried; the first has the config's own settings.
        best: The best of them by the validation metric.
        config: The best settings, as `best.yaml` has them.
        metric: Its name, such as `accuracy`.
        importance: The share that each setting has in what made trials good.
        run: The best model, trained once more on its own; only here test data is looked at.
    """

    trials: list[Trial]
    best: Trial
    config: Config
    metric: str
    importance: dict[str, float]
    run: Run | None

    def __repr__(self) -> str:
        first = self.trials[0]
        before = "" if first.metric is None else f", {first.metric:.4f} with the settings it began with"
        return (
            f"Tuning({len(self.trials)} trials; valid {self.metric} {self.best.metric:.4f} in trial {self.best.number}{before})"
        )


def tune(
    config: Config,
    *,
    trials: int = 50,
    seconds: float | None = None,
    space: Mapping[str, Any] | None = None,
    dataset: Dataset | None = None,
    data_dir: str | Path | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    at_once: int | None = None,
    train_best: bool = True,
    progress: bool = False,
) -> Tuning:
    """Search for settings by Optuna (TPE, with pruning), compared on validation data, and train the best.

    The first trial is the config as it is. Test data is never looked at before the best is trained in the end. With a folder,
    the search can be stopped at any moment, and goes on where it was when called again.

    Args:
        config: Data, model and training; what is not searched stays as it is here.
        trials: How many, those of earlier calls with this folder included.
        seconds: When to end the search in this call, if all trials are not done by then; the final training comes after it.
        space: What to try, as in the YAML files of `gatas tune --space`: sections `model` and `training` with a list of choices
            or a range `{"low": …, "high": …, "log": …}` for each setting, and `defaults`: whether other settings have
            their default values too (False). By default it follows from the config and the data.
        dataset: The data, where it is at hand; else it is opened as the config says.
        data_dir: Where named data sets are kept.
        folder: Where the journal, `best.yaml`, `trials.csv`, plots and the final run are saved.
        seed: Trials are a function of it, and all of them are trained with it.
        device: `"cpu"`, `"cuda"`, or `"auto"` for what there is.
        at_once: How many trials of one shape learn in one program; 8 on a GPU and 1 on a CPU if left out.
        train_best: Whether the best is trained in the end, and measured on test data.
        progress: Show progress on standard error.

    >>> tuning = gatas.tune(gatas.load_config("mine.yaml"), trials=30, folder="runs/mine-tuned")
    >>> tuning.best.settings, tuning.run.metrics["test"]["accuracy"]
    """
    check_config(config)
    if trials < 1 or (at_once is not None and at_once < 1) or (seconds is not None and not seconds > 0):
        raise ConfigError(f"trials is {trials}, seconds {seconds} and at_once {at_once}; expected more than 0 of each.")
    if find_spec("optuna") is None:
        raise MissingExtraError("tuning needs Optuna, which is not installed", "tune")
    from gatas.tuning.search import Search, journal

    config, folder = config.below(Path.cwd()), None if folder is None else Path(folder)
    dataset = dataset or open_dataset(config.data, data_dir)
    config = config.for_data(dataset)
    trainer = Trainer(without_test(dataset), seed, device)
    facts = Facts.of(trainer.dataset, trainer.make_model(config), config)
    searched = chosen_space(facts, space)
    own = {name: facts.own(name) for name in searched}
    with journal(folder) as storage, watching(progress) as watcher:
        search = Search(storage, searched, own, seed, config.training.epochs)
        search.check(_identity(facts, searched, seed))
        loop = SearchLoop(search, trainer, config, own, watcher, folder, metric_name(facts))
        together = 1 if facts.config.training.loss == "list" else at_once or (AT_ONCE if _on_gpu(device) else 1)
        loop.run(trials, seconds, together)
        found, importance = search.trials(), search.importance()
    best = best_of(found)
    if best is None:
        raise TrainingError(f"none of {len(found)} trials went to its end: {found[0].reason or found[0].outcome}.")
    tuned = loop.config_of(best)
    if folder is not None:
        _write_plots(folder, found, importance, loop.metric)
    run = _trained(tuned, best, dataset, seed, folder, device, progress) if train_best else None
    return Tuning(found, best, tuned, loop.metric, importance, run)


def without_test(dataset: Dataset) -> Dataset:
    """Return data in which nothing says what the test split holds: neither its nodes or links, nor labels of other nodes."""
    if "valid" not in dataset.splits:
        raise TrainingError(
            f"{dataset.name} has no split 'valid', by which trials are compared. Give it one, such as by ratios of 0.8, 0.1 "
            "and 0.1."
        )
    targets, splits = dataset.targets, {name: dataset.splits[name] for name in ("train", "valid") if name in dataset.splits}
    if isinstance(targets, LinkTargets):
        return dataset.with_splits(splits)
    if isinstance(targets, NumberTargets):
        values = np.full_like(targets.values, np.nan)
        for nodes in splits.values():
            values[nodes] = targets.values[nodes]
        return replace(dataset, targets=NumberTargets(values, targets.target_names, splits))
    labels = np.full_like(targets.labels, 0 if targets.multi_label else UNLABELLED)
    for nodes in splits.values():
        labels[nodes] = targets.labels[nodes]
    return replace(dataset, targets=NodeTargets(labels, targets.class_names, splits))


def chosen_space(facts: Facts, given: Mapping[str, Any] | None) -> Space:
    """Return what is searched: what was given, with the defaults of other settings if it asks for them, or all defaults."""
    if given is None:
        return default_space(facts)
    values, defaults = parsed_space(given, facts.config)
    return {**(default_space(facts) if defaults else {}), **values}


def described_space(config: Config, dataset: Dataset, given: Mapping[str, Any] | None = None) -> str:
    """Return what would be searched as a YAML file that `gatas tune --space` takes."""
    seen, config = without_test(dataset), config.for_data(dataset)
    space = chosen_space(Facts.of(seen, Trainer(seen, 0, "cpu").make_model(config), config), given)
    return written_space(space)


def metric_name(facts: Facts) -> str:
    """Return the name of the validation metric that trials are compared by."""
    ranked = facts.config.training.loss == "list" and facts.dataset.ranked
    return METRICS.get(facts.dataset.task, "mrr" if ranked else "roc_auc")


def _identity(facts: Facts, space: Space, seed: int) -> dict[str, Any]:
    values = {f"values of {name}": values.written() for name, values in space.items()}
    epochs = {"training.epochs": facts.config.training.epochs}  # trials of more epochs are no match for those of fewer
    return {**identity_of(facts.config, facts.dataset, [seed]), **epochs, **values, "settings searched": list(space)}


def _on_gpu(device: str) -> bool:
    return chosen_device(device).type == "cuda"


def _trained(config: Config, best: Trial, dataset: Dataset, seed: int, folder: Path | None, device: str, progress: bool) -> Run:
    """Train the best settings as `gatas train` would; what an earlier best left is removed."""
    if folder is not None:
        mark = folder / "tuning" / "trained"
        if not mark.exists() or mark.read_text() != str(best.number):
            rmtree(folder / "checkpoints", ignore_errors=True)
            write_whole(mark, str(best.number).encode())
    (run,) = fit_many(config, [seed], dataset=dataset, folder=folder, device=device, progress=progress)
    return run


def _write_plots(folder: Path, trials: list[Trial], importance: dict[str, float], metric: str) -> None:
    from gatas.tuning.plots import history_plot, importance_plot, png  # matplotlib: half a second

    write_whole(folder / FILES["history"], png(history_plot(trials, metric)))
    if importance:
        write_whole(folder / FILES["importance"], png(importance_plot(importance, trials, metric)))


@contextmanager
def watching(progress: bool) -> Iterator[Watcher | None]:
    """Give what shows how a search gets on, if that is wanted."""
    if not progress:
        yield None
        return
    from gatas.tuning.display import TuningDisplay

    with TuningDisplay() as display:
        yield display
