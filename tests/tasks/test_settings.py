"""Typed settings mirror the configs that check them, so that none can drift."""

from inspect import signature
from typing import Unpack, get_args, get_origin, get_type_hints

import pytest

from gatas import GatasClassifier, LinkPredictor, NodeClassifier, fit
from gatas.tasks import Model, ModelConfig
from gatas.tasks.settings import ModelSettings
from gatas.training import TrainingConfig, evaluate
from gatas.training.evaluation import evaluate_run
from gatas.training.settings import TrainingSettings


@pytest.mark.parametrize(("settings", "config"), [(ModelSettings, ModelConfig), (TrainingSettings, TrainingConfig)])
def test_settings_have_the_keys_and_types_of_their_config_in_its_order(settings, config):
    assert list(settings.__annotations__) == list(config.model_fields)
    expected = {name: hint for name, hint in get_type_hints(config).items() if name in config.model_fields}
    assert get_type_hints(settings) == expected
    assert not settings.__required_keys__


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        (Model, ModelSettings),
        (NodeClassifier, ModelSettings),
        (LinkPredictor, ModelSettings),
        (fit, TrainingSettings),
        (evaluate, TrainingSettings),
        (evaluate_run, TrainingSettings),
    ],
)
def test_what_takes_settings_says_which(call, settings):
    (found,) = (parameter for parameter in signature(call).parameters.values() if parameter.kind is parameter.VAR_KEYWORD)
    assert get_origin(found.annotation) is Unpack and get_args(found.annotation) == (settings,)


def test_the_estimator_takes_both():
    hints = get_type_hints(GatasClassifier.__init__)
    assert (hints["model"], hints["training"]) == (ModelSettings | None, TrainingSettings | None)


@pytest.mark.parametrize("documented", [fit, evaluate, Model, NodeClassifier, LinkPredictor, GatasClassifier])
def test_arguments_are_listed_one_by_one(documented):
    listed = documented.__doc__.partition("Args:\n")[2]
    names = [name for name, parameter in signature(documented).parameters.items() if name != "self"]
    assert names and all(f"        {name}: " in listed for name in names)


@pytest.mark.parametrize("config", [ModelConfig, TrainingConfig])
def test_every_setting_is_described(config):
    assert all(field.description for field in config.model_fields.values())
