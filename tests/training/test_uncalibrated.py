"""Probabilities of links that nothing was fitted to are warned of, once."""

import warnings
from dataclasses import replace

import pytest

import gatas
from gatas.errors import GatasWarning
from gatas.training.config import Config
from tests.tasks.toys import likes

LISTS = {"loss": "list", "hidden_folds": 2, "epochs": 1, "batch_size": 5}


def trained(dataset, seeds=(0,), **training):
    config = Config(
        data={"name": "kinship"}, model={"link_score": ("vectors",), "vector_size": 4}, training={**LISTS, **training}
    )
    return gatas.fit_many(config, seeds, dataset=dataset, device="cpu")


def test_without_validation_links_the_last_epoch_is_kept_and_probabilities_are_warned_of_once():
    dataset = likes()
    dataset = dataset.with_splits({name: dataset.link_targets.splits[name] for name in ("train", "test")})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        runs = trained(dataset, seeds=(0, 1))
    (said,) = [str(one.message) for one in caught if issubclass(one.category, GatasWarning)]
    assert said.startswith("likes has no split 'valid': the last epoch is kept, and probabilities of links are not calibrated")
    assert [run.metrics["best_epoch"] for run in runs] == [0, 0] and "last epoch 1 of 1" in repr(runs[0])


def test_types_without_validation_links_are_counted():
    dataset = likes()
    valid = dataset.link_targets.splits["valid"]
    rows = valid.edge_type == 0
    columns = {name: getattr(valid, name)[rows] for name in ("source", "edge_type", "target", "label")}
    dataset = dataset.with_splits({**dataset.link_targets.splits, "valid": replace(valid, **columns)})
    with pytest.warns(GatasWarning, match=r"likes: 1 of 2 types of link has no validation links \(the first is 'knows'\)"):
        trained(dataset)


def test_pairs_that_are_learned_as_pairs_need_no_calibration():
    dataset = likes()
    trained(dataset.with_splits({name: dataset.link_targets.splits[name] for name in ("train", "test")}), loss="binary")
