"""`strongest_paths`: which typed paths speak most for links of a type, over all links of a split."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets import LinkTargets, Pairs
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.graph.inputs import Ints
from gatas.inference.explain import index_of_name
from gatas.inference.path_contributions import path_terms
from gatas.inference.trained import TrainedModel
from gatas.tasks import LinkPredictor, LinkTask
from gatas.transitions.paths import path_name, path_relations

SPLITS = ("valid", "test", "train")
"""Those whose links are not in the graph first."""
FOLDS = 10
"""Parts that training links are dealt into, each hidden from the graph while it is looked at."""
PAIRS = 256
"""Pairs whose paths are looked up together: rows of as many nodes are held."""


@dataclass(frozen=True)
class StrongPath:
    """A typed path, and what it adds to the log-odds of links of a type.

    `contribution` is the mean over all links, 0 where the path does not lead from source to target; it is
    `share_of_links` · `where_present`. `of_negatives` is the mean over the split's negatives, None where it has none.
    """

    name: str
    relations: tuple[str, ...]
    contribution: float
    share_of_links: float
    where_present: float
    of_negatives: float | None


def strongest_paths(trained: TrainedModel, edge_type: str, top: int, split: str | None) -> list[StrongPath]:
    """Return the paths with the largest mean contribution; arguments are `Predictor.strongest_paths`'s."""
    split = split or split_with_links(trained, edge_type)
    kind = _asked_type(trained, edge_type)
    links, negatives = (_pairs(trained, split, kind, label) for label in (1, 0))
    if not len(links[0]):
        others = [name for name in SPLITS if len(_links(trained, name, kind))]
        hint = f"choose {' or '.join(others)}" if others else "no other has any"
        raise GatasError(f"the {split} split has no links of type {edge_type!r}; {hint}.")
    sums, counts = _sums_of_training(trained, kind) if split == "train" else _sums(trained, kind, *links)
    others_sums = _sums(trained, kind, *negatives)[0] if len(negatives[0]) and split != "train" else None
    names = trained.graph.relation_names
    return [
        StrongPath(
            name=path_name(path, names),
            relations=tuple(names[relation] for relation in path_relations(path, len(names))),
            contribution=sums[path] / len(links[0]),
            share_of_links=counts[path] / len(links[0]),
            where_present=sums[path] / counts[path],
            of_negatives=None if others_sums is None else others_sums.get(path, 0.0) / len(negatives[0]),
        )
        for path in sorted(sums, key=lambda path: (-sums[path], path))[:top]
    ]


def split_with_links(trained: TrainedModel, edge_type: str) -> str:
    """Return the split whose links of a type tell most about what the model has learned: valid, or else test, or else train."""
    kind = _asked_type(trained, edge_type)
    return next((name for name in SPLITS if len(_links(trained, name, kind))), "valid")


def _asked_type(trained: TrainedModel, edge_type: str) -> int:
    """Return the number of a type of link; models that do not score by typed paths are refused."""
    model = trained.model
    if not isinstance(model, LinkPredictor) or "paths" not in model.parts:
        raise GatasError("the model scores nothing by typed paths, so none has a contribution. Train with paths in link_score.")
    return index_of_name(edge_type, trained, "type of link")


def _links(trained: TrainedModel, split: str, kind: int) -> Ints:
    """Return the sources of a split's links of a type; none where there is no such split."""
    targets = trained.dataset.targets
    assert isinstance(targets, LinkTargets)
    return _pairs(trained, split, kind, 1)[0] if split in targets.splits else np.empty(0, np.int64)


def _pairs(trained: TrainedModel, split: str, kind: int, label: int) -> tuple[Ints, Ints]:
    targets = trained.dataset.targets
    assert isinstance(targets, LinkTargets)
    pairs: Pairs | None = targets.splits.get(split)
    if pairs is None:
        raise GatasError(f"there is no split {split!r}; the data has {', '.join(targets.splits)}.")
    own = (pairs.edge_type == kind) & (pairs.label == label)
    return pairs.source[own], pairs.target[own]


def _sums_of_training(trained: TrainedModel, kind: int) -> tuple[dict[int, float], dict[int, int]]:
    """Return what `_sums` does of all training links, each hidden from the graph with its fold, as in training."""
    model = trained.model
    assert isinstance(model, LinkPredictor)
    if not isinstance(trained.graph, Graph):
        raise GatasError("training links cannot be hidden where there are new nodes. Ask the predictor without them.")
    task = LinkTask(trained.dataset, 1, hidden_folds=FOLDS)
    sums, counts = dict[int, float](), dict[int, int]()
    task.hide_from(model)
    try:
        for fold in range(FOLDS):
            own = (task.links.edge_type == kind) & (task.folds == fold)
            if own.any():
                model.hide(fold)
                hidden = TrainedModel(model, trained.dataset, mode=trained.mode)
                values, times = _sums(hidden, kind, task.links.source[own], task.links.target[own])
                for path, value in values.items():
                    sums[path], counts[path] = sums.get(path, 0.0) + value, counts.get(path, 0) + times[path]
    finally:
        model.stop_hiding()
    return sums, counts


def _sums(trained: TrainedModel, kind: int, source: Ints, target: Ints) -> tuple[dict[int, float], dict[int, int]]:
    """Return the sum of contributions by path, and how many pairs have the path."""
    sums, counts = dict[int, float](), dict[int, int]()
    for first in range(0, len(source), PAIRS):
        ends = source[first : first + PAIRS].astype(np.int64), target[first : first + PAIRS].astype(np.int64)
        found = path_terms(trained, ends[0], np.full(len(ends[0]), kind), ends[1])
        paths, place = np.unique(found.path.numpy(), return_inverse=True)
        values: NDArray[Any] = np.bincount(place, found.contributions.numpy(), minlength=len(paths))
        for path, value, count in zip(paths.tolist(), values.tolist(), np.bincount(place).tolist(), strict=False):
            sums[path], counts[path] = sums.get(path, 0.0) + value, counts.get(path, 0) + count
    return sums, counts
