"""Learned embeddings whose gradients are rows: what a step that looks at few of them leaves alone."""

from typing import Any

import pytest
import torch
from torch import nn

from gatas.errors import ConfigError
from gatas.inference import fit, fit_many
from gatas.training import Config, NAdam
from gatas.training.learner import MOST_EMBEDDINGS, changes_seen_only
from tests.tasks.toys import SMALL, likes, predictor


def table_and_layer(sparse):
    torch.manual_seed(0)
    return nn.Embedding(6, 3, sparse=sparse), nn.Linear(3, 1)


def stepped(sparse, batches, **settings):
    """A table, and all that NAdam remembers of it, after a step for each batch of rows."""
    table, layer = table_and_layer(sparse)
    optimiser = NAdam([*table.parameters(), *layer.parameters()], lr=0.1, **settings)
    for rows in batches:
        optimiser.zero_grad()
        layer(table(torch.tensor(rows))).square().sum().backward()
        optimiser.step()
    return optimiser


@pytest.mark.parametrize("settings", [{}, {"l2": 0.1, "max_norm": 0.5}, {"nesterov": False}, {"l2": [0.1, 0.0, 0.2]}])
def test_rows_that_are_all_seen_are_learned_as_a_dense_table(settings):
    batches = [[0, 1, 2, 3, 4, 5, 5], [5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5]]
    dense, sparse = (stepped(sparse, batches, **settings) for sparse in (False, True))
    torch.testing.assert_close(sparse.values, dense.values)
    for own, expected in zip(sparse.moments, dense.moments, strict=True):
        torch.testing.assert_close(own, expected)


def test_rows_that_are_not_seen_keep_their_values_and_moments():
    batches = [[0, 1, 2, 3, 4, 5], [1, 4], [1, 4]]
    first, after = (stepped(True, batches[:count], l2=0.1) for count in (1, 3))
    dense = stepped(False, batches, l2=0.1)
    unseen, seen = [0, 2, 3, 5], [1, 4]

    def tables(optimiser):
        return [vector[0, :18].view(6, 3) for vector in (optimiser.values, optimiser.moments.first, optimiser.moments.second)]

    for before, now, other in zip(tables(first), tables(after), tables(dense), strict=True):
        assert torch.equal(now[unseen], before[unseen]) and not torch.isclose(now[seen], before[seen]).any()
        assert not torch.isclose(other[unseen], before[unseen]).any()  # a dense step moves them on by momentum and L2
    assert after.moments.steps == 3


def test_clipping_is_by_the_norm_of_all_gradients():
    clipped = stepped(True, [[1, 4]], max_norm=1e-3)
    assert clipped.moments.first.norm() == pytest.approx(0.1 * 1e-3, rel=1e-2)


def test_a_row_looked_at_for_nothing_is_not_seen():
    table, _ = table_and_layer(sparse=True)
    optimiser = NAdam(table.parameters(), lr=0.1, l2=0.1)
    before = table.weight.detach().clone()
    (table(torch.tensor([1, 2])) * torch.tensor([[1.0], [0.0]])).sum().backward()
    optimiser.step()
    assert not torch.equal(table.weight[1], before[1]) and torch.equal(table.weight[2], before[2])


def test_a_training_that_sees_every_node_in_every_step_is_the_same_either_way():
    dataset = likes()
    settings: dict[str, Any] = {"epochs": 4, "batch_size": 100, "l2": 0.01, "device": "cpu"}
    curves = [
        [entry["loss"] for entry in fit(predictor(dataset, dropout=0.0), dataset, embedding_updates=way, **settings).history]
        for way in ("all", "seen")
    ]
    assert curves[0] == pytest.approx(curves[1], rel=1e-5)


@pytest.mark.long
def test_steps_that_see_few_nodes_differ_and_learn():
    dataset = likes()
    settings: dict[str, Any] = {
        "epochs": 40,
        "patience": 40,
        "batch_size": 2,
        "learning_rate": 0.01,
        "l2": 0.0,
        "device": "cpu",
    }
    losses = []
    for way in ("all", "seen"):
        model = predictor(dataset, num_steps=1, sample_size=2, dropout=0.0)
        losses.append([entry["loss"] for entry in fit(model, dataset, embedding_updates=way, **settings).history])
    assert losses[0] != losses[1] and all(loss[-1] < 0.9 * loss[0] for loss in losses)


@pytest.mark.parametrize(("updates", "most", "seeds", "sparse"), [
    ("auto", MOST_EMBEDDINGS, 1, False), ("auto", 11, 1, True), ("auto", 11, 2, False), ("all", 11, 1, False),
    ("seen", MOST_EMBEDDINGS, 1, True),
])  # fmt: skip
def test_large_tables_are_learned_by_rows_unless_told_otherwise(monkeypatch, updates, most, seeds, sparse):
    monkeypatch.setattr("gatas.training.learner.MOST_EMBEDDINGS", most)
    config = Config.model_validate({"training": {"embedding_updates": updates}}).training
    assert changes_seen_only([predictor(likes())] * seeds, config) == sparse


def test_models_side_by_side_have_no_rows_of_their_own():
    config = Config.model_validate({"model": SMALL, "training": {"embedding_updates": "seen"}})
    with pytest.raises(ConfigError, match="one seed at a time, and 2 came"):
        fit_many(config, [0, 1], dataset=likes())
