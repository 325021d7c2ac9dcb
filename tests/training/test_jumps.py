"""A loss that jumps is reported, and a final test may see validation links."""

import numpy as np
import pytest

import gatas
from gatas.errors import GatasWarning
from gatas.training.config import Config
from gatas.transitions import Transitions
from tests.tasks.toys import SMALL, camps, classifier, likes


def test_a_jump_of_the_loss_is_reported():
    with pytest.warns(GatasWarning, match=r"the training loss rose from .* in epoch \d+ \(seed 0\)"):
        gatas.fit(
            classifier(camps(), seed=0), camps(), seed=0, device="cpu", epochs=30, learning_rate=5.0, max_norm=None, patience=30
        )


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
