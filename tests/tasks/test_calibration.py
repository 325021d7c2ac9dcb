"""Temperatures beside a slow search and torch's LBFGS; calibration errors by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from torch.nn import functional as F

from gatas.tasks.calibration import fit_temperature, log_loss, reliability


def some_answers(multi_label, sharpness, seed=0, count=200):
    """Logits, and labels drawn from what they say at temperature 1; then the logits are made `sharpness` times as sure."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, 4, generator=generator)
    if multi_label:
        labels = (torch.rand(count, 4, generator=generator) < logits.sigmoid()).to(torch.uint8)
    else:
        labels = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    return sharpness * logits, labels


def by_lbfgs(logits, labels):
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_temperature], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def loss():
        optimiser.zero_grad()
        found = log_loss(logits.double() / log_temperature.exp(), labels)
        found.backward()
        return found

    optimiser.step(loss)
    return log_temperature.exp().item()


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
def test_the_temperature_is_the_one_that_lbfgs_finds(multi_label, sharpness):
    logits, labels = some_answers(multi_label, sharpness)
    assert fit_temperature(logits, labels) == approx(by_lbfgs(logits, labels), rel=1e-3)


def test_answers_that_are_too_sure_get_the_temperature_that_makes_up_for_it():
    logits, labels = some_answers(False, 3.0, count=5000)
    assert fit_temperature(logits, labels) == approx(3.0, rel=0.1)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), sharpness=st.floats(0.1, 10), multi_label=st.booleans())
def test_a_temperature_never_makes_the_loss_larger(seed, sharpness, multi_label):
    logits, labels = some_answers(multi_label, sharpness, seed, count=20)
    temperature = fit_temperature(logits, labels)
    assert log_loss(logits.double() / temperature, labels) <= log_loss(logits.double(), labels) + 1e-12


@pytest.mark.parametrize("labels", [torch.tensor([0, 1]), torch.tensor([[1, 0], [0, 1]])])
def test_answers_that_are_all_right_stay_as_they_are(labels):
    assert fit_temperature(torch.tensor([[2.0, -1], [-1, 2]]), labels) == 1


def test_the_loss_is_torchs():
    logits, labels = some_answers(False, 1.0)
    assert log_loss(logits, labels).item() == approx(F.cross_entropy(logits, labels).item())
    logits, labels = some_answers(True, 1.0)
    assert log_loss(logits, labels).item() == approx(F.binary_cross_entropy_with_logits(logits, labels.float()).item())


def test_the_error_is_the_mean_distance_of_probability_and_frequency():
    #   probability 0.9 three times, right twice; 0.6 once, wrong:  (3 · |0.9 - 2/3| + 1 · |0.6 - 0|) / 4
    chance = np.array([0.9, 0.9, 0.9, 0.6])
    logits = torch.tensor(np.stack([np.log(chance), np.log(1 - chance)], axis=1))
    found = reliability(logits, torch.tensor([0, 0, 1, 1]), num_bins=10)
    assert found.error == approx((3 * (0.9 - 2 / 3) + 0.6) / 4)
    assert found.count.sum() == 4


def test_labels_of_any_number_are_compared_one_by_one():
    found = reliability(torch.zeros(10, 2), torch.tensor([[1, 0]] * 10))
    assert found.count.sum() == 20 and found.error == approx(0)
