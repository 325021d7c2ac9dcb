"""Keys and values that float16 cannot hold."""

import pytest
import torch

import gatas
from gatas.errors import TrainingError
from gatas.training import loop, side_by_side
from gatas.training import storage as storage_file
from gatas.training.config import TrainingConfig
from gatas.training.evaluation import evaluate
from gatas.training.learner import Learner
from gatas.training.storage import check_range, is_narrow
from tests.tasks.toys import camps, classifier
from tests.training.test_side_by_side import RATES, config_of, trained

GPU, CPU = torch.device("cuda"), torch.device("cpu")


@pytest.fixture
def narrow(monkeypatch):
    """As if keys and values were kept in float16, where there is no GPU."""
    for file in (storage_file, loop, side_by_side):
        monkeypatch.setattr(file, "is_narrow", lambda device, config: True)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"precision": "float32"}, False),
        ({"precision": "bfloat16"}, False),
        ({"storage": "bfloat16"}, False),
        ({"precision": "float32", "storage": "float16"}, True),
    ],
)
def test_only_float16_on_a_gpu_is_narrow(settings, expected):
    config = TrainingConfig(**settings)
    assert is_narrow(GPU, config) == expected and not is_narrow(CPU, config)


def test_what_is_not_a_number_is_refused_where_a_key_may_have_been_too_large():
    logits = torch.tensor([0.0, float("nan")])
    with pytest.raises(TrainingError, match=r"not a number.*65,504.*training\.storage=bfloat16"):
        check_range(logits, GPU, TrainingConfig())
    check_range(logits[:1], GPU, TrainingConfig())
    check_range(logits, GPU, TrainingConfig(storage="bfloat16"))


def test_storage_reaches_the_attention():
    model, config = classifier(camps()), TrainingConfig(storage="bfloat16", epochs=1)
    assert model.encoder.neighbours.storage == "auto"
    evaluate(model, camps(), "valid", storage=config.storage, device="cpu")
    assert model.encoder.neighbours.storage == "bfloat16"


def test_a_wrong_loss_names_the_storage_that_would_hold_it(narrow, monkeypatch):
    train = Learner.train
    monkeypatch.setattr(Learner, "train", lambda *given: train(*given) * float("nan"))
    with pytest.raises(TrainingError, match=r"the loss became nan.*learning_rate\. Keys and values.*storage=bfloat16"):
        gatas.fit(classifier(camps()), camps(), seed=0, epochs=1)


def test_a_validation_that_is_not_a_number_ends_the_training(narrow, monkeypatch):
    spoil(monkeypatch)
    with pytest.raises(TrainingError, match="what the model makes of the data is not a number"):
        gatas.fit(classifier(camps()), camps(), seed=0, epochs=1)


def test_one_of_many_whose_keys_are_too_large_counts_as_gone_astray(narrow, monkeypatch):
    spoil(monkeypatch, 1)
    configs = [config_of(camps()).with_settings(own) for own in RATES]
    assert [run.metrics.get("diverged", False) for run in trained(camps(), configs)] == [False, True, False]


def spoil(monkeypatch, model=slice(None)):
    """Make the first logits of validation data NaN."""
    predict, first = Learner.predict_encoded, iter([True])

    def spoilt(self):
        logits = predict(self)
        if next(first, False):
            logits[model] = float("nan")
        return logits

    monkeypatch.setattr(Learner, "predict_encoded", spoilt)
