"""The running average of weights: what is validated and kept, while training goes on from the weights themselves."""

from typing import Any

import pytest
import torch

from gatas.inference import fit
from gatas.training.config import TrainingConfig
from gatas.training.learner import Learner
from gatas.training.task_making import make_task
from tests.tasks.toys import camps, classifier

SETTINGS: dict[str, Any] = {"epochs": 6, "batch_size": 4, "learning_rate": 0.05}


def learner(dataset, models=1, **settings):
    config = TrainingConfig(**SETTINGS, **settings)
    several = [classifier(dataset, seed=seed) for seed in range(models)]
    return Learner.of(several, make_task(dataset, config), config, torch.device("cpu"))


@pytest.mark.parametrize("models", [1, 3])
def test_the_average_is_that_of_all_weights_there_were(models):
    dataset = camps()
    averaging, plain = learner(dataset, models, ema_decay=0.5), learner(dataset, models)
    expected = plain.optimiser.values.clone()
    for number in range(4):
        for one in (averaging, plain):
            batch = {name: torch.from_numpy(column[0]) for name, column in plain.task.epoch(0, number).columns.items()}
            batch = batch if models == 1 else {name: column.expand(models, *column.shape) for name, column in batch.items()}
            one.model.train()
            one._step(batch)
        kept = min(0.5, (number + 2) / (number + 11))
        expected = kept * expected + (1 - kept) * plain.optimiser.values
    torch.testing.assert_close(averaging.average.values, expected)
    assert torch.equal(averaging.optimiser.values, plain.optimiser.values)  # learning itself does not look at it


def test_the_average_is_what_answers_and_what_is_kept():
    dataset = camps()
    averaging = learner(dataset, ema_decay=0.5)
    averaging.train(averaging.task.epoch(0, 0))
    last = averaging.optimiser.values.clone()
    answers = averaging.predict("valid")
    assert torch.equal(averaging.optimiser.values, last)
    averaging.keep_best([True])
    averaging.restore_best()
    assert torch.equal(averaging.optimiser.values, averaging.average.values) and not torch.equal(averaging.average.values, last)
    assert torch.equal(averaging.predict("valid"), answers)


def test_a_training_that_is_cut_goes_on_with_its_average(tmp_path):
    dataset = camps()

    def trained(epochs, folder=None):
        settings = {**SETTINGS, "epochs": epochs, "ema_decay": 0.8}
        return fit(classifier(dataset), dataset, device="cpu", folder=folder, **settings)

    whole = trained(6)
    trained(3, tmp_path / "run")
    resumed = trained(6, tmp_path / "run")
    theirs = whole.model.state_dict()
    assert all(torch.equal(own, theirs[name]) for name, own in resumed.model.state_dict().items())
    assert resumed.metrics["valid"] == whole.metrics["valid"]


def test_without_validation_data_the_average_is_what_is_left():
    dataset = camps()
    dataset = dataset.with_splits({"train": dataset.splits["train"]})
    plain, averaged = (fit(classifier(dataset), dataset, device="cpu", **SETTINGS, ema_decay=decay) for decay in (0.0, 0.9))
    assert any(
        not torch.equal(own, averaged.model.state_dict()[name])
        for name, own in plain.model.state_dict().items()
        if own.is_floating_point()
    )
