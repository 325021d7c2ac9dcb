"""Scores by class beside scikit-learn's."""

import numpy as np
import pytest
import torch
from pytest import approx
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from gatas.tasks.class_details import ClassDetails

NAMES = ("a", "b", "c", "d")


def answers(multi_label, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, (40, 4)) if multi_label else generator.integers(0, 3, 40)  # nobody is of class d
    return torch.tensor(generator.normal(size=(40, 4))), torch.tensor(labels)


@pytest.mark.parametrize("multi_label", [False, True])
def test_scores_by_class_are_scikit_learns(multi_label):
    logits, labels = answers(multi_label)
    predicted = (logits > 0).numpy() if multi_label else logits.argmax(1).numpy()
    expected = precision_recall_fscore_support(labels.numpy(), predicted, labels=range(4), zero_division=0)
    found = ClassDetails.of(NAMES, logits, labels).by_class
    for number, name in enumerate(NAMES):
        assert list(found[name].values()) == approx([scores[number] for scores in expected])


def test_confusions_are_scikit_learns():
    logits, labels = answers(False)
    found = ClassDetails.of(NAMES, logits, labels)
    assert found.confusion is not None
    assert np.array_equal(found.confusion, confusion_matrix(labels, logits.argmax(1), labels=range(4)))


def test_with_any_number_of_labels_there_is_no_matrix_of_confusions():
    assert ClassDetails.of(NAMES, *answers(True)).confusion is None


def test_a_temperature_changes_probabilities_and_no_class():
    logits, labels = answers(False)
    cold, warm = (ClassDetails.of(NAMES, logits, labels, temperature) for temperature in (1.0, 2.5))
    assert cold.by_class == warm.by_class and warm.before.loss == cold.after.loss != warm.after.loss
    assert set(warm.metrics) == {"by_class", "calibration"}
