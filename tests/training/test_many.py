"""`fit_many`: each seed's model as `fit` would train it alone, but for rounding."""

from typing import Any

import pytest
import torch
from pytest import approx

from gatas.errors import ConfigError, TrainingError
from gatas.inference import Run, fit, fit_many
from gatas.tasks import NodeTask
from gatas.training import Config, Runs
from gatas.training.learner import Learner
from tests.tasks.toys import SMALL, camps, classifier, labelled_graphs, likes, predictor

PLAIN: dict[str, Any] = {"monitor": "loss", "ema_decay": 0.0}
"""Averages change slowly, and few of these models would stop."""
CASES = {
    "classes": (classifier, camps(), {}),
    "several labels": (classifier, labelled_graphs(), {}),
    "several graphs": (classifier, labelled_graphs(), {"by_graph": True}),
    "classes by graph": (classifier, labelled_graphs(several=False), {"by_graph": True}),
    "links": (predictor, likes(), {}),
}


def config_of(make, **training):
    if make is predictor:
        return Config.model_validate(
            {"data": {"name": "kinship"}, "model": {**SMALL, "node_embedding_size": 4}, "training": training}
        )
    return Config.model_validate({"model": SMALL, "training": training})


def assert_alike(together, alone):
    assert together.metrics == approx_nested(alone.metrics)
    assert len(together.history) == len(alone.history)
    for ours, theirs in zip(together.history, alone.history, strict=True):
        assert {name: value for name, value in ours.items() if not name.endswith("seconds")} == approx_nested(
            {name: value for name, value in theirs.items() if not name.endswith("seconds")}
        )
    # The target's part of the attention nearly cancels in the softmax: its gradient is rounding, which Adam magnifies. So
    # what is said of all nodes is compared, not each weight. (In double precision all weights agree to nine digits.)
    for ours, theirs in zip(together.model.head.parameters(), alone.model.head.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=2e-4)
    nodes = torch.arange(alone.model.graph.num_nodes)
    with torch.no_grad():
        ours, theirs = (run.model.eval().represent(nodes, mode="all") for run in (together, alone))
    torch.testing.assert_close(ours, theirs, rtol=1e-2, atol=2e-3)


def approx_nested(content):
    if isinstance(content, dict):
        return {name: approx_nested(value) for name, value in content.items()}
    return content if isinstance(content, int) else approx(content, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_models_side_by_side_learn_what_each_learns_alone(case):
    make, dataset, extra = CASES[case]
    settings: dict[str, Any] = {"epochs": 4, "batch_size": 3 if extra else 5, "learning_rate": 0.01, **extra}
    runs = fit_many(config_of(make, **settings), [7, 0, 3], dataset=dataset)
    assert [run.seed for run in runs] == [7, 0, 3]
    for run in runs:
        assert_alike(run, fit(make(dataset), dataset, seed=run.seed, **settings))


def test_each_model_stops_on_its_own():
    dataset = camps()
    settings: dict[str, Any] = {**PLAIN, "epochs": 30, "batch_size": 5, "learning_rate": 0.02, "patience": 2}
    runs = fit_many(config_of(classifier, **settings), [0, 1, 2], dataset=dataset)
    assert len({run.metrics["epochs"] for run in runs}) > 1
    for run in runs:
        alone = fit(classifier(dataset), dataset, seed=run.seed, **settings)
        assert run.metrics["epochs"] == len(run.history) == run.metrics["best_epoch"] + 3
        assert_alike(run, alone)


def test_models_that_have_stopped_take_no_more_steps(monkeypatch):
    at_work, train = [], Learner.train

    def counted(self, *args):
        at_work.append(self.num_models)
        return train(self, *args)

    monkeypatch.setattr(Learner, "train", counted)
    settings: dict[str, Any] = {
        **PLAIN,
        "epochs": 12,
        "batch_size": 5,
        "learning_rate": 0.01,
        "patience": 1,
        "monitor": "metric",
    }
    runs = fit_many(config_of(classifier, **settings), range(6), dataset=camps())
    assert at_work[0] == 6 and at_work == sorted(at_work, reverse=True) and at_work[-1] <= 3
    assert len(at_work) == max(run.metrics["epochs"] for run in runs)
    for run in runs:  # those left behind have the weights that were their best
        assert_alike(run, fit(classifier(camps()), camps(), seed=run.seed, **settings))


def test_a_training_that_left_models_behind_goes_on_without_them(tmp_path):
    settings: dict[str, Any] = {
        **PLAIN,
        "batch_size": 5,
        "learning_rate": 0.01,
        "patience": 1,
        "monitor": "metric",
        "checkpoint_seconds": 0,
    }
    undisturbed = fit_many(config_of(classifier, epochs=12, **settings), range(6), dataset=camps())
    epochs = sorted(run.metrics["epochs"] for run in undisturbed)
    assert epochs[2] < epochs[-1]  # half have stopped before the last does
    for end in (epochs[2], epochs[2] + 1, 12):
        runs = fit_many(config_of(classifier, epochs=end, **settings), range(6), dataset=camps(), folder=tmp_path)
    for ours, theirs in zip(runs, undisturbed, strict=True):
        assert ours.metrics == theirs.metrics
        assert all(torch.equal(*both) for both in zip(ours.model.parameters(), theirs.model.parameters(), strict=True))


def test_a_single_seed_is_a_fit():
    settings: dict[str, Any] = {"epochs": 3, "batch_size": 5}
    (run,) = fit_many(config_of(classifier, **settings), [4], dataset=camps())
    alone = fit(classifier(camps()), camps(), seed=4, **settings)
    assert run.metrics == alone.metrics
    assert all(torch.equal(*both) for both in zip(run.model.parameters(), alone.model.parameters(), strict=True))


def test_models_of_a_run_answer_on_their_own():
    dataset = camps()
    runs = fit_many(config_of(classifier, epochs=2), [0, 1], dataset=dataset)
    nodes = torch.arange(5)
    with torch.no_grad():
        first, second = (run.model.eval()(nodes, draw=torch.tensor(-1)) for run in runs)
    assert first.shape == second.shape == (5, 2) and not torch.equal(first, second)


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_must_be_there_and_differ(seeds):
    with pytest.raises(ConfigError, match="expected one or more, all different"):
        fit_many(Config(), seeds, dataset=camps())


def test_the_mean_and_spread_of_runs_are_those_of_the_sample():
    runs = Runs([Run(Config(), seed, {"test": {"f1": value}}, [], None, None) for seed, value in enumerate((0.5, 0.7, 0.9))])  # type: ignore[arg-type]
    assert runs.values("test.f1") == [0.5, 0.7, 0.9]
    assert runs.mean("test.f1") == approx(0.7) and runs.std("test.f1") == approx(0.2)
    assert Runs(runs.runs[:1]).std("test.f1") == 0
    assert len(runs) == 3 and runs[1].seed == 1


@pytest.mark.parametrize(("wrong", "stops"), [(0, False), (1, True)])
def test_a_model_that_has_stopped_may_go_wrong_while_others_learn(monkeypatch, wrong, stops):
    train, epochs = Learner.train, iter(range(100))

    def gone_wrong(self, *args):
        losses = train(self, *args)
        losses[:, wrong] = float("nan") if next(epochs) == 3 else losses[:, wrong]
        return losses

    # With a patience of 1 the first soon stops, and is too few to be left behind.
    scores = iter([[0.5, 0.1, 0.1], [0.4, 0.2, 0.2], [0.4, 0.3, 0.3], [0.4, 0.4, 0.4], [0.4, 0.5, 0.5]])
    monkeypatch.setattr(NodeTask, "monitor", lambda *_: {"loss": torch.ones(3), "accuracy": torch.tensor(next(scores))})
    monkeypatch.setattr(Learner, "train", gone_wrong)
    config = config_of(classifier, epochs=5, batch_size=5, patience=1, monitor="metric")
    if stops:
        with pytest.raises(TrainingError, match=r"the loss became nan in epoch 4, batch 1 \(targets .*\), seed 9"):
            fit_many(config, [4, 9, 5], dataset=camps(), device="cpu")
    else:
        assert [run.metrics["epochs"] for run in fit_many(config, [4, 9, 5], dataset=camps(), device="cpu")] == [2, 5, 5]
