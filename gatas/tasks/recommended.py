"""The settings that suit a graph whose nodes are classified: they follow from its sizes, labels and types alone.

`gatas init` writes them into its file; trainings, `NodeClassifier` and `gatas.fit` take them for whatever is not given. They
were chosen on validation data of many graphs (`benchmarks/choose.py`, results/choose.md).
"""

import json
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gatas.datasets import Dataset, NodeTargets, NumberTargets
from gatas.nn.path_means import MOST_PATHS
from gatas.tasks.feature_value import Accuracies, filled_share, measure_features
from gatas.tasks.walk_limits import WalkLimits
from gatas.transitions.paths import num_paths

FEW_LABELS = 0.2
"""Where a smaller share of nodes is labelled, more has to be done against learning them by heart."""
MANY_FEATURES = 16
"""Some of so many features may be masked: others say much the same."""
DENSE = 0.4
"""Of features of which a larger share is not 0, such as embeddings, fewer are masked than of bags of words."""
PATH_MEAN_SIZE = 64
EMBEDDED: dict[str, Any] = {
    "model__node_embedding_size": 64, "model__hide_own_embedding": True, "model__label_inputs": True,
    "model__label_dropout": 0.3,
}  # fmt: skip
"""Where features do not tell nodes apart: neighbours are told apart by themselves, and by their labels."""
BY_ITSELF: dict[str, Any] = {"model__skip_connection": True, "model__output_norm": True}
"""A node keeps what it knows by itself, whatever its neighbours are like."""
AGREE: dict[str, Any] = {"training__consistency": 1.5, "training__consistency_draws": 2, "training__consistency_nodes": 300}

PRIOR_STRENGTH, STRONGEST = 6, 0.05
"""Where neighbours say nothing, λ is the first by the number of training nodes, and the second at most."""
SURE = 1000
"""Of so many training nodes it is certain enough that neighbours say nothing to look at few of them."""
NEAR: dict[str, Any] = {"model__num_steps": 1, "model__path_mean_size": 0}
LARGER_BATCH, MANY_NODES = 500, 25_000
"""Nodes of a step there, as long as training nodes are fewer than the second, of which steps have as many by default."""


class Choice(NamedTuple):
    """A setting, named `section.key`, its value, and what it is about the data that makes it so."""

    setting: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Recommended:
    """Settings of the model and of its training."""

    choices: tuple[Choice, ...] = ()

    def because(self, reason: str, **settings: Any) -> "Recommended":
        """Return these and further settings, named `model__key` or `training__key`; later choices replace earlier ones."""
        named = {name.replace("__", "."): value for name, value in settings.items()}
        return Recommended((*self.without(named).choices, *(Choice(name, value, reason) for name, value in named.items())))

    def without(self, given: Container[str]) -> "Recommended":
        """Return those that are not `given`."""
        return Recommended(tuple(choice for choice in self.choices if choice.setting not in given))

    def part(self, section: str) -> "Recommended":
        """Return those of one section."""
        return Recommended(tuple(choice for choice in self.choices if choice.setting.startswith(f"{section}.")))

    @property
    def settings(self) -> dict[str, Any]:
        """Return all of them, named `section.key`."""
        return {choice.setting: choice.value for choice in self.choices}

    @property
    def by_key(self) -> dict[str, Any]:
        """Return all of them, by key alone."""
        return {choice.setting.partition(".")[2]: choice.value for choice in self.choices}

    @property
    def reasons(self) -> list[str]:
        """Return a line for every reason, with the settings that it is for."""
        by_reason: dict[str, list[str]] = {}
        for setting, value, reason in self.choices:
            by_reason.setdefault(reason, []).append(f"{setting.partition('.')[2]}: {json.dumps(value)}")
        return [f"{', '.join(settings)}, since {reason}" for reason, settings in by_reason.items()]


def recommended(dataset: Dataset, num_steps: int | Literal["auto"] = "auto") -> Recommended:
    """Return the settings for a data set, whose walks may have a given number of steps.

    For links there are none: their defaults suit any graph. Nor are there any for graphs that are not in memory, and where no
    validation data says when to stop.
    """
    of_nodes = isinstance(dataset.targets, NodeTargets | NumberTargets)
    if not of_nodes or dataset.mapped or not {"train", "valid"} <= set(dataset.splits):
        return Recommended()
    share, types = labelled_share(dataset), len(dataset.graph.original_edge_types)
    few, measured = share < FEW_LABELS, measure_features(dataset) if _has_one_class_each(dataset) else None
    alone = few and types == 1 and measured is not None and measured.neighbours_say_little
    found = _by_labels(few, f"{100 * share:.3g} % of the nodes are labelled")
    if few:
        reason = f"there are {types:,} types of edges" if types > 1 else "labels are few"
        found = found.because(reason, training__l2=0.005 if types > 1 else 0.05)
    if not dataset.nodes.num_features:
        found = found.because("nodes have no features", training__monitor="metric")
    if dataset.nodes.num_features >= MANY_FEATURES:
        found = _masked(found, dataset, much=few and not alone)
    if _has_one_class_each(dataset):
        found = found.because("labels spread over the graph, as far as that helps", model__label_spreading=True)
    if not few and measured is not None and measured.features_say_little:
        found = found.because(_told(measured) if dataset.nodes.num_features else "nodes have no features", **EMBEDDED)
    if alone and measured is not None:
        found = found.because(_told(measured), **BY_ITSELF)
    elif few and types == 1:
        reason = "draws of a neighbourhood should agree where labels are few"
        return found.because(reason, **AGREE) if _has_one_class_each(dataset) else found
    found = _by_paths(found, dataset, few, num_steps)
    if few or types > 1 or not dataset.nodes.num_features or measured is None or not measured.neighbours_say_nothing:
        return found
    return _alone(found, dataset, measured)


def labelled_share(dataset: Dataset) -> float:
    """Return the share of training nodes among all nodes of their types."""
    train, types = np.asarray(dataset.splits["train"]), dataset.nodes.node_type
    if types is None:
        return len(train) / dataset.graph.num_nodes
    return len(train) / max(1, int(np.isin(types, np.unique(types[train])).sum()))


def _by_labels(few: bool, reason: str) -> Recommended:
    if few:
        training = {"monitor": "loss", "epochs": 600, "patience": 60, "batch_size": 1000}
        model: dict[str, Any] = {"model__dropout": 0.3}
    else:
        training = {"monitor": "metric", "epochs": 200, "patience": 20, "ema_decay": 0.99}
        model = BY_ITSELF
    return Recommended().because(reason, **model, **{f"training__{key}": value for key, value in training.items()})


def _has_one_class_each(dataset: Dataset) -> bool:
    """Whether nodes have one class each, in one graph."""
    targets = dataset.targets
    return isinstance(targets, NodeTargets) and not targets.multi_label and dataset.nodes.graph_id is None


def _several(dataset: Dataset) -> str:
    """Say of what there is more than one: of graphs, or of labels that a node may have; nothing otherwise."""
    if dataset.nodes.graph_id is not None:
        return f"there are {len(np.unique(dataset.nodes.graph_id)):,} graphs"
    multi_label = isinstance(dataset.targets, NodeTargets) and dataset.targets.multi_label
    return "a node may have several labels" if multi_label else ""


def _masked(found: Recommended, dataset: Dataset, *, much: bool) -> Recommended:
    """Mask features in training: `much` of them or less, and fewer where they are dense."""
    filled = filled_share(dataset)
    reason = f"there are {dataset.nodes.num_features:,} features, {100 * filled:.3g} % of them other than 0"
    less, more = (0.2, 0.5) if filled > DENSE else (0.5, 0.8)
    reason += ", and few labels" if much else ""
    return found.because(reason, model__input_noise=more if much else less)


def _alone(found: Recommended, dataset: Dataset, measured: Accuracies) -> Recommended:
    """Learn less by heart where neighbours say nothing: small weights, and of many nodes only the nearest neighbours."""
    num_train = len(dataset.splits["train"])
    chosen: dict[str, Any] = {"training__l2": min(float(f"{PRIOR_STRENGTH / num_train:.0e}"), STRONGEST)}
    if num_train >= SURE:
        chosen |= NEAR
        chosen |= {"training__batch_size": LARGER_BATCH} if num_train < MANY_NODES else {}
    percents = [100 * max(measured.by_labels, measured.by_neighbours or 0), 100 * measured.most_frequent]
    reason = "labels of neighbours give {:.0f} % of the classes, the most frequent class {:.0f} %".format(*percents)
    return found.because(reason, **chosen)


def _told(measured: Accuracies) -> str:
    return (
        f"labels of neighbours alone give {100 * measured.by_labels:.0f} % of the classes, features alone "
        f"{100 * measured.by_features:.0f} %"
    )


def _by_paths(found: Recommended, dataset: Dataset, few: bool, asked: int | Literal["auto"]) -> Recommended:
    """Give every typed path a layer of its own, where there are several types of edges, or enough to learn it from."""
    graph, types = dataset.graph, len(dataset.graph.original_edge_types)
    several = _several(dataset)
    if several and types == 1:
        return found.because(f"{several}: there a layer for each typed path gave less", model__path_mean_size=0)
    most = WalkLimits(graph, links=False).steps(None) if asked == "auto" else asked
    few_paths = (steps for steps in range(most, 0, -1) if num_paths(graph.num_relations, steps) <= _most_paths(steps))
    steps = next(few_paths, 0)
    if steps < (min(most, 2) if asked == "auto" else asked):
        return found
    limited = {} if steps == most else {"model__num_steps": steps}
    reason = f"there are {types:,} types of edges" if types > 1 else "neighbours say little" if few else "labels are many"
    return found.because(reason, model__path_mean_size=PATH_MEAN_SIZE, **limited)


def _most_paths(steps: int) -> int:
    """Return how many typed paths may have a layer each: of three steps fewer, since two steps are the other choice."""
    return MOST_PATHS if steps < 3 else MOST_PATHS // 2
