"""`evaluate`: what a trained model is worth, measured as at the end of its training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from gatas.datasets import Dataset
from gatas.datasets.config import StoreData
from gatas.errors import TrainingError
from gatas.tasks import Model
from gatas.tasks.config import checked
from gatas.training.config import Config, TrainingConfig
from gatas.training.folder import read_run
from gatas.training.learner import Learner
from gatas.training.loop import chosen_device, exact_products, make_task


def evaluate(model: Model, dataset: Dataset, split: str = "test", *, device: str = "auto", **settings: Any) -> dict[str, Any]:
    """Measure loss and metrics of a model on a split. `settings` are those of `TrainingConfig`, such as `evaluation_draws`."""
    if split not in dataset.splits:
        raise TrainingError(f"{dataset.name} has no split {split!r}; it has {', '.join(dataset.splits)}.")
    config = checked(TrainingConfig, settings)
    task = make_task(dataset, config)
    learner = Learner.of([model], task, config, chosen_device(device))
    with exact_products(Config(training=config)):
        (logits,) = learner.predict(split)
    return task.measure(logits, split)


def evaluate_run(folder: Path, split: str = "test", *, device: str = "auto", **changed: Any) -> dict[str, Any]:
    """Measure a finished run, with the settings it was trained with but for those `changed`."""
    if not folder.joinpath("metrics.json").exists():
        raise TrainingError(f"{folder} holds no finished run. Give a folder that `gatas train` wrote.")
    run = read_run(folder)
    dataset = run.open_data()
    if not isinstance(dataset.origin, StoreData):
        dataset = replace(dataset, store=None)  # small enough to be read into memory, as it was in training
    model = run.make_model(dataset)
    return evaluate(model, dataset, split, device=device, **{**run.config.training.model_dump(), **changed})
