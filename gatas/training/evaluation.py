"""`evaluate`: what a trained model is worth, measured as at the end of its training."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from gatas.datasets import Dataset
from gatas.datasets.config import StoreData
from gatas.errors import TrainingError
from gatas.tasks import Model, NodeTask
from gatas.tasks.config import checked
from gatas.training.config import TrainingConfig
from gatas.training.final_test import final_graph, measured_on
from gatas.training.folder import read_run
from gatas.training.learner import Learner
from gatas.training.loop import chosen_device
from gatas.training.products import quick_products
from gatas.training.settings import TrainingSettings
from gatas.training.storage import check_range
from gatas.training.task_making import make_task


def evaluate(
    model: Model, dataset: Dataset, split: str = "test", *, device: str = "auto", **settings: Unpack[TrainingSettings]
) -> dict[str, Any]:
    """Measure loss and metrics of a model on a split.

    Args:
        model: The model, with the weights it has.
        dataset: The data it was made for; where it was read with `validation_edges`, these are edges of the graph in the test.
        split: `"train"`, `"valid"` or `"test"`.
        device: `"cpu"`, `"cuda"`, or `"auto"` for what there is.
        settings: Those of `TrainingConfig` that evaluations know: `evaluation_mode`, `evaluation_draws`, `precision` and
            `storage`.
    """
    if split not in dataset.splits:
        raise TrainingError(f"{dataset.name} has no split {split!r}; it has {', '.join(dataset.splits)}.")
    config = checked(TrainingConfig, settings)
    task = make_task(dataset, config, model)
    learner = Learner.of([model], task, config, chosen_device(device))
    graph = final_graph(dataset, dataset.origin, split)
    with quick_products(learner.device, config.precision), measured_on(graph, model) as said:
        (logits,) = learner.predict(split)
    check_range(logits, learner.device, config)
    measured: dict[str, Any] = {**task.measure(logits, split), **said}
    if isinstance(task, NodeTask):
        measured |= task.details(logits, split, getattr(model, "temperature", 1.0)).metrics
    return measured


def evaluate_run(
    folder: Path, split: str = "test", *, device: str = "auto", **changed: Unpack[TrainingSettings]
) -> dict[str, Any]:
    """Measure a finished run, with the settings it was trained with but for those `changed`."""
    if not folder.joinpath("metrics.json").exists():
        raise TrainingError(f"{folder} holds no finished run. Give a folder that `gatas train` wrote.")
    run = read_run(folder)
    dataset = run.open_data()
    if not isinstance(dataset.origin, StoreData):
        dataset = replace(dataset, store=None)  # small enough to be read into memory, as it was in training
    model = run.make_model(dataset)
    return evaluate(model, dataset, split, device=device, **{**run.config.training.model_dump(), **changed})
