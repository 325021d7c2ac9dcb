"""`fit_side_by_side`: models with rates of their own learn what each learns alone."""

from typing import Any

import pytest
import torch

from gatas.errors import ConfigError
from gatas.training import Config
from gatas.training.learner import Learner
from gatas.training.loop import make_model
from gatas.training.side_by_side import fit_side_by_side
from tests.tasks.toys import SMALL, camps, likes
from tests.training.test_many import assert_alike

RATES: list[dict[str, Any]] = [
    {"model.dropout": 0.5, "model.input_noise": 0.7, "training.learning_rate": 0.02, "training.l2": 0.01},
    {"model.dropout": 0.0, "model.input_noise": 0.0, "training.learning_rate": 0.005, "training.l2": 0.0},
    {"model.dropout": 0.1, "model.input_noise": 0.2, "training.learning_rate": 0.05, "training.l2": 0.1},
]


def config_of(dataset, **training):
    data = {"name": "kinship"} if dataset.task == "link prediction" else {"name": "digits"}
    model = {**SMALL, "node_embedding_size": 4, "layer_norm": True}
    return Config.model_validate({"data": data, "model": model, "training": {"epochs": 4, "batch_size": 5, **training}})


def trained(dataset, configs, **given):
    models = [make_model(dataset, config, 3) for config in configs]
    return fit_side_by_side(models, dataset, configs, 3, device="cpu", **given)


@pytest.mark.parametrize("dataset", [camps(), likes()], ids=["nodes", "links"])
def test_models_with_rates_of_their_own_learn_what_each_learns_alone(dataset):
    configs = [config_of(dataset, schedule="cosine").with_settings(own) for own in RATES]
    for together, config in zip(trained(dataset, configs), configs, strict=True):
        (alone,) = trained(dataset, [config])
        assert together.config == alone.config and together.config.model.dropout == config.model.dropout
        assert_alike(together, alone)


@pytest.mark.parametrize("spreads", [False, True])
def test_models_that_end_early_keep_their_own_rates(spreads):
    dataset = camps()
    shared = {"model.label_spreading": spreads}
    configs = [config_of(dataset, patience=1, epochs=12).with_settings({**own, **shared}) for own in [*RATES, *RATES[:2]]]
    runs = trained(dataset, configs)
    assert len({run.metrics["epochs"] for run in runs}) > 1
    for together, config in zip(runs, configs, strict=True):
        assert_alike(together, trained(dataset, [config])[0])


def test_models_of_other_shapes_are_refused():
    configs = [config_of(camps()).with_settings({"model.num_heads": heads}) for heads in (1, 2)]
    with pytest.raises(ConfigError, match=r"model.num_heads is 1 for one model and 2 for another; .* training.learning_rate"):
        trained(camps(), configs)


def test_a_model_that_goes_astray_ends_and_the_others_go_on(monkeypatch):
    train, epochs = Learner.train, iter(range(100))

    def gone_astray(self, *args):
        losses = train(self, *args)
        if next(epochs) >= 1:
            losses[:, 1] = float("nan")
            self.optimiser.values[1] = float("nan")
        return losses

    dataset = camps()
    configs = [config_of(dataset, patience=9).with_settings(own) for own in RATES]
    undisturbed = trained(dataset, configs)
    monkeypatch.setattr(Learner, "train", gone_astray)
    runs = trained(dataset, configs)
    assert [run.metrics.get("diverged", False) for run in runs] == [False, True, False]
    assert runs[1].metrics["epochs"] == 2 and runs[1].metrics["best_epoch"] == 0
    assert all(torch.isfinite(parameter).all() for parameter in runs[1].model.parameters())
    assert_alike(runs[0], undisturbed[0])


def test_what_is_reported_to_can_end_a_model():
    def report(entry):
        if entry["epoch"] == 1:
            entry["stopping"].stop(2, 1)

    dataset = camps()
    configs = [config_of(dataset, patience=9).with_settings(own) for own in RATES]
    assert [run.metrics["epochs"] for run in trained(dataset, configs, report=report)] == [4, 4, 2]


def test_splits_that_are_left_out_are_not_measured():
    dataset = camps().with_splits({name: camps().splits[name] for name in ("train", "valid")})
    (run,) = trained(dataset, [config_of(dataset)])
    assert "valid" in run.metrics and "test" not in run.metrics
