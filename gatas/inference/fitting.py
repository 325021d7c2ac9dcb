"""`fit` trains a model, `fit_many` one for each of several seeds in one program; both return runs with their predictors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from gatas.datasets import Dataset, open_dataset
from gatas.datasets.config import NamedData
from gatas.errors import ConfigError, TrainingError
from gatas.inference.run import Run
from gatas.tasks import Model
from gatas.tasks.config import checked
from gatas.tasks.recommended import recommended
from gatas.training.config import Config, TrainingConfig, check_config, training_defaults
from gatas.training.group import ALONE, Group
from gatas.training.limit import Limit
from gatas.training.loop import check_fits, fit_models, make_model
from gatas.training.progress import Report
from gatas.training.run import Runs
from gatas.training.settings import TrainingSettings
from gatas.training.uncalibrated import warn_of_uncalibrated


def fit(
    model: Model,
    dataset: Dataset,
    *,
    seed: int = 0,
    folder: str | Path | None = None,
    device: str = "auto",
    warm_start: bool | None = None,
    report: Report | None = None,
    progress: bool = False,
    group: Group = ALONE,
    **settings: Unpack[TrainingSettings],
) -> Run:
    """Train a model; its weights are then the best by validation data.

    A run is a function of data, settings and seed. With a folder it can be stopped at any moment, and goes on where it was
    when called again.

    Args:
        model: The model to train.
        dataset: The data it was made for.
        seed: Weights, batches, draws and noise are a function of it.
        folder: Where the run is saved, at its end and now and then.
        device: `"cpu"`, `"cuda"`, or `"auto"` for what there is.
        warm_start: True begins with the weights that the model has, False draws new ones from the seed. By default weights
            are drawn from the seed, unless they were set by hand: then one of both must be asked for.
        report: Called with the numbers of each epoch.
        progress: Show progress on standard error.
        group: Several processes that train together, from `gatas.scale.processes.together`; each calls this with the same
            arguments.
        settings: Those of `TrainingConfig`, all optional; for nodes, what is not given follows from the data. People change
            most often: `epochs` (at most), `batch_size`, `learning_rate` (0.005), `patience` (epochs without improvement before
            it stops), `l2`, `schedule` (constant), `monitor` (what early stopping looks at on validation data),
            `evaluation_mode` (sample). The run's `config` has what was taken.

    >>> run = gatas.fit(model, dataset, seed=0, epochs=200, learning_rate=0.01)
    >>> run.metrics["test"]["accuracy"]
    """
    data = dataset.origin or NamedData(name=dataset.name)
    suited = recommended(dataset, model.config.num_steps).part("training").without({f"training.{name}" for name in settings})
    usual = {**training_defaults(dataset.task, model.config.model_dump()), **suited.by_key}
    training = checked(TrainingConfig, {**usual, **settings})
    config = Config(data=data, model=model.config, training=training).complete(suited.reasons)
    check_fits(model, dataset)
    if group.first:
        warn_of_uncalibrated(training, dataset)
    if not warm_start:
        if warm_start is None and not model.has_own_weights():
            raise TrainingError(
                "the model's weights are neither those it was made with nor those of an earlier fit: they were set by hand. "
                "Pass warm_start=True to begin with them, or warm_start=False to draw new ones from the seed."
            )
        model.reset(seed)
    given: Any = {"folder": folder, "device": device, "report": report, "progress": progress, "group": group}
    try:
        (trained,) = fit_models([model], dataset, config, [seed], **given)
    finally:
        model.remember_weights()  # also those of a training that was cut short are not set by hand
    return Run.of(trained)


def fit_many(
    config: Config,
    seeds: Sequence[int],
    *,
    dataset: Dataset | None = None,
    data_dir: str | Path | None = None,
    folder: str | Path | None = None,
    device: str = "auto",
    report: Report | None = None,
    progress: bool = False,
    limit: Limit | None = None,
    group: Group = ALONE,
) -> Runs[Run]:
    """Train one model per seed, all in one program.

    Each has the weights, batches, draws and noise that `fit` would give it alone. Sums are made in another order, so that
    results are equal up to rounding only, which may grow as training goes on: over many epochs, the more so on a GPU (TF32),
    to another best epoch and other metrics.

    Args:
        config: Data, model and training.
        seeds: One or more, all different.
        dataset: The data, where it is at hand; else it is opened as the config says.
        data_dir: Where named data sets are kept.
        folder: Where runs are saved: one in the folder itself, several in folders of their own.
        device: `"cpu"`, `"cuda"`, or `"auto"` for what there is.
        report: Called with the numbers of each epoch.
        progress: Show progress on standard error.
        limit: Where trainings end that would still go on, such as `Limit(seconds=600)`; their metrics then have `cut`.
        group: Several processes that train together.
    """
    check_config(config)
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds are {list(seeds)}; expected one or more, all different.")
    config = config.below(Path.cwd())  # the config in the run's folder must name its files from anywhere
    dataset = dataset or open_dataset(config.data, data_dir)
    config = config.for_data(dataset)
    if group.first:
        warn_of_uncalibrated(config.training, dataset)
    first = make_model(dataset, config, seeds[0])
    others = [make_model(dataset, config, seed, first) for seed in seeds[1:]]
    settings: Any = {"folder": folder, "device": device, "report": report, "progress": progress, "limit": limit, "group": group}
    return Runs([Run.of(trained) for trained in fit_models([first, *others], dataset, config, seeds, **settings)])
