"""A loss that jumps is reported, and a final test may see validation links."""

import warnings
from typing import Any

import numpy as np
import pytest

import gatas
from gatas.errors import GatasWarning
from gatas.training.config import Config
from gatas.training.jumps import jumps_unreported, warn_of_jumps
from gatas.transitions import Transitions
from tests.tasks.toys import SMALL, camps, classifier, likes


def test_a_jump_of_the_loss_is_reported():
    with pytest.warns(GatasWarning, match=r"the (training|validation) loss rose from .* in epoch \d+ \(seed 0\)"):
        gatas.fit(
            classifier(camps(), seed=0), camps(), seed=0, device="cpu", epochs=30, learning_rate=5.0, max_norm=None, patience=30
        )


def test_a_jump_of_a_trial_is_not():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with jumps_unreported():
            warnings.warn("the training loss rose from 0.28 to 3.4 in epoch 2", GatasWarning, stacklevel=1)
            warnings.warn("one class has no training node", GatasWarning, stacklevel=1)
    assert [str(one.message) for one in caught] == ["one class has no training node"]


def told_of(losses, name="loss"):
    """The warnings that epochs with such losses give, one after another."""
    history: list[Any] = []
    said = []
    for epoch, loss in enumerate(losses):
        entry = {"epoch": epoch, "loss": [0.1], name: [loss]}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_jumps(history, entry, [7])
        said += [str(one.message).partition(" (seed 7)")[0] for one in caught]
        history.append(entry)
    return said


@pytest.mark.parametrize("name", ["loss", "valid_loss"])
@pytest.mark.parametrize("losses", [[0.28, 3.4], [2.0, 0.9, 0.5, 0.28, 3.4, 3.5, 2.0], [0.3, 0.31, 0.28, 1.1, 0.4]])
def test_a_sudden_rise_is_told_of_once(losses, name):
    jump = next(number for number, loss in enumerate(losses) if loss in (3.4, 1.1))
    what = "training" if name == "loss" else "validation"
    assert told_of(losses, name) == [f"the {what} loss rose from 0.28 to {losses[jump]} in epoch {jump + 1}"]


@pytest.mark.parametrize("name", ["loss", "valid_loss"])
def test_noise_overfitting_and_small_losses_are_not(name):
    noise = np.random.default_rng(0).lognormal(0, 0.3, 1000)
    assert told_of(0.5 * noise, name) == []
    assert told_of(0.5 * 1.1 ** np.arange(50), name) == []  # a validation loss that rises epoch by epoch
    assert told_of([0.001, 0.02, 0.3, 0.0], name) == []
    assert told_of([0.21, 0.16, 0.19, 0.744, 0.2], name) == []  # dropout on a step of a few nodes


@pytest.mark.filterwarnings("error")
def test_a_loss_that_falls_is_not():
    gatas.fit(classifier(camps(), seed=0), camps(), seed=0, device="cpu", epochs=5)


def test_the_final_test_may_see_validation_links(monkeypatch):
    dataset, graphs = likes(), []
    build = Transitions.build.__func__  # type: ignore[attr-defined]

    def watched(cls, graph, *given, **named):
        graphs.append(graph.num_edges)
        return build(cls, graph, *given, **named)

    monkeypatch.setattr(Transitions, "build", classmethod(watched))
    config = Config(
        data={"name": "kinship", "validation_edges": True}, model={**SMALL, "node_embedding_size": 4}, training={"epochs": 1}
    )
    run = gatas.fit_many(config, [0], dataset=dataset, device="cpu")[0]
    assert graphs == [dataset.graph.num_edges, dataset.graph.num_edges + 4]  # two links, each with its inverse
    assert run.metrics["test"]["validation_edges"] and "validation_edges" not in run.metrics["valid"]
    assert run.model.graph is dataset.graph
    without = gatas.fit_many(config.with_settings({"data.validation_edges": False}), [0], dataset=dataset, device="cpu")[0]
    assert without.metrics["valid"] == run.metrics["valid"] and without.metrics["test"] != run.metrics["test"]
    assert np.isfinite(run.metrics["test"]["loss"])
