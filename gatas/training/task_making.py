"""`make_task`: the batches, loss and metrics that a data set and the settings of a training ask for."""

from gatas.datasets import Dataset, LinkTargets, NumberTargets, Pairs
from gatas.errors import ConfigError, TrainingError
from gatas.tasks import LinkListTask, LinkTask, Model, NodeRegressor, NodeTask, RegressionTask
from gatas.tasks.consistency import Consistency
from gatas.tasks.learnable import Learnable
from gatas.tasks.settling import settled
from gatas.training.config import Config, TrainingConfig


def make_task(dataset: Dataset, config: TrainingConfig, model: Learnable | None = None) -> NodeTask | LinkTask:
    """Make the batches, loss and metrics of the data set's task, for any model or for the one that is given."""
    missing = {"train"} - set(dataset.splits)
    if missing:
        raise TrainingError(f"{dataset.name} has no split 'train'; expected what to learn from under that name.")
    if isinstance(dataset.targets, LinkTargets):
        return make_link_task(dataset, config)
    if isinstance(dataset.targets, NumberTargets):
        return make_regression_task(dataset, config, model)
    consistency = None
    if config.consistency:
        consistency = Consistency(config.consistency, config.consistency_draws, config.consistency_nodes, config.temperature)
    return NodeTask(
        dataset,
        batch_size(dataset, config),
        by_graph=config.by_graph,
        consistency=consistency,
        class_weights=config.class_weights,
        label_smoothing=config.label_smoothing,
    )


def make_regression_task(dataset: Dataset, config: TrainingConfig, model: Learnable | None) -> RegressionTask:
    settings = {"consistency": config.consistency, "label_smoothing": config.label_smoothing}
    settings |= {"class_weights": config.class_weights != "none"}
    if wrong := [name for name, given in settings.items() if given]:
        raise ConfigError(
            f"training.{wrong[0]} is for classes of nodes, but {dataset.name} is for {dataset.task}. Leave it out."
        )
    task = RegressionTask(dataset, batch_size(dataset, config), by_graph=config.by_graph, loss=config.regression_loss)
    if isinstance(model, NodeRegressor):
        task.standardise_as(model)
    return task


def make_link_task(dataset: Dataset, config: TrainingConfig) -> LinkTask:
    if config.loss == "list":
        return LinkListTask(
            dataset,
            batch_size(dataset, config),
            num_negatives=config.num_negatives,
            negatives_by=config.negatives_by,
            hidden_folds=config.hidden_folds,
            n3=config.n3,
        )
    return LinkTask(
        dataset,
        batch_size(dataset, config),
        negatives=config.negatives,
        negative_types=config.negative_types,
        hidden_folds=config.hidden_folds,
    )


def choices_of(model: Learnable, dataset: Dataset, config: Config) -> list[str]:
    """Return which settings were chosen for the data, and why."""
    return [*config.choices, *(model.choices if isinstance(model, Model) else []), *_batch_choice(dataset, config)]


def automatic_choices(dataset: Dataset, config: Config) -> list[str]:
    """Return what the settings that are `auto` come to for the data on this machine, and why."""
    return [*settled(dataset, config.model).reasons, *_batch_choice(dataset, config)]


def _batch_choice(dataset: Dataset, config: Config) -> list[str]:
    if config.training.batch_size != "auto":
        return []
    size, count = batch_size(dataset, config.training), count_to_learn(dataset)
    return [f"batch_size: {size:,}, since there are {count:,} to learn from"]


def batch_size(dataset: Dataset, config: TrainingConfig) -> int:
    """Return how many nodes or links a step has."""
    return config.batch_of(count_to_learn(dataset), links=isinstance(dataset.targets, LinkTargets))


def count_to_learn(dataset: Dataset) -> int:
    """Return how many nodes, or links, there are to learn from."""
    train = dataset.splits["train"]
    return int(train.label.sum()) if isinstance(train, Pairs) else len(train)
