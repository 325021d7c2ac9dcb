"""Every recipe is trained for an epoch on its data: of small data sets on all of it, of large ones on some targets.

Where $GATAS_DATA does not name a folder with the data, tests are skipped; `digits` and `kinship` are embedded.
"""

import math
import os
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gatas.datasets import load_dataset
from gatas.datasets.loading import SOURCES
from gatas.experiments.recipes import names, recipe
from gatas.inference import fit_many

LARGE = ("ppi", "twitter", "youtube", "youtube-lite")
NUM_TARGETS = 300


@cache
def data_of(name):
    """A data set; of a large one, some of what each split asks for."""
    root = os.environ.get("GATAS_DATA")
    if name in SOURCES and not (root and any((Path(root) / one.folder / one.mark).exists() for one in SOURCES[name].layouts)):
        pytest.skip(f"{name} is not in the folder that $GATAS_DATA names")
    dataset = load_dataset(name, root)
    return dataset.with_splits({split: some(rows) for split, rows in dataset.splits.items()}) if name in LARGE else dataset


def some(rows):
    """Up to 300 rows of a split, from all over it."""
    if isinstance(rows, np.ndarray):
        return rows[:: math.ceil(len(rows) / NUM_TARGETS)]
    return type(rows)(**{field.name: some(getattr(rows, field.name)) for field in fields(rows)})


def trained(name):
    config = recipe(name).with_settings({"training.epochs": 1})
    (run,) = fit_many(config, [0], dataset=data_of(config.data.name), device="cpu")
    return run


def check(run):
    metric = {"node classification": "accuracy", "link prediction": "roc_auc"}.get(run.dataset.task, "micro_f1")
    assert len(run.history) == 1 and math.isfinite(run.history[0]["loss"])
    assert 0 <= run.metrics["valid"][metric] <= 1 and math.isfinite(run.metrics["valid"]["loss"])


def marked(name):
    """Those of Citeseer and Pubmed that only vary what Cora's vary, and large samples, are left to `make long`."""
    data, _, variant = name.partition("-")
    repeats = variant == "500" or (data in ("citeseer", "pubmed") and variant not in ("", "reference", "default"))
    return pytest.param(name, marks=pytest.mark.long if repeats else pytest.mark.slow)


@pytest.mark.parametrize("name", [marked(name) for name in names() if recipe(name).data.name not in LARGE])
def test_a_recipe_trains_for_an_epoch_on_its_data(name):
    check(trained(name))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in names() if recipe(name).data.name in LARGE])
def test_a_recipe_for_large_data_trains_for_an_epoch_on_some_of_it(name):
    check(trained(name))
