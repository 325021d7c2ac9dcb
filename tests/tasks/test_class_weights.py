"""Weights of classes and smoothed labels beside torch's own, and beside scikit-learn's balanced ones."""

import numpy as np
import pytest
import torch
from pytest import approx
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional as F

from gatas.datasets import NodeTargets
from gatas.errors import ConfigError
from gatas.tasks import NodeTask
from gatas.tasks.class_weights import weights_of_classes
from gatas.tasks.config import checked
from gatas.training.config import TrainingConfig
from tests.tasks.toys import camps, labelled_graphs

LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 2, -1])
TARGETS = NodeTargets(LABELS, ("many", "some", "one"), {"train": np.arange(8)})


def test_balanced_weights_are_scikit_learns():
    expected = compute_class_weight("balanced", classes=np.arange(3), y=LABELS[:8])
    weights = weights_of_classes(TARGETS, "balanced")
    assert weights is not None and weights.tolist() == approx(expected.tolist())


def test_named_weights_have_a_mean_of_one_over_training_nodes():
    weights = weights_of_classes(TARGETS, {"one": 4.0})
    assert weights is not None and weights[LABELS[:8]].mean().item() == approx(1)
    assert (weights / weights[0]).tolist() == approx([1, 1, 4])


def test_balanced_labels_weigh_as_much_as_their_absence():
    labels = np.array([[1, 1], [0, 1], [0, 1], [0, 0]])
    targets = NodeTargets(labels, ("rare", "usual"), {"train": np.arange(4)})
    weights = weights_of_classes(targets, "balanced")
    assert weights is not None and weights.tolist() == approx([3, 1 / 3])


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"class_weights names 'soome', which is no class\. Did you mean 'some'"):
        weights_of_classes(TARGETS, {"soome": 2})


@pytest.mark.parametrize("wrong", ["even", {"a": 0}, {"a": "much"}, 3])
def test_wrong_weights_are_refused(wrong):
    with pytest.raises(ConfigError, match="expected none, balanced, or a weight above 0 for each class"):
        checked(TrainingConfig, {"class_weights": wrong})


def test_names_that_yaml_takes_for_numbers_are_names():
    assert TrainingConfig(class_weights={3: 2}).class_weights == {"3": 2.0}


def batch(num_classes):
    target, weight = torch.tensor([4, 2, 7, 4, 4]), torch.tensor([1.0, 1, 1, 0, 0])
    return torch.randn(5, num_classes, generator=torch.Generator().manual_seed(0)), target, weight


def test_the_loss_is_torchs_with_weights_and_smoothed_labels():
    dataset = camps()
    logits, target, weight = batch(2)
    task = NodeTask(dataset, 5, class_weights={"odd": 3}, label_smoothing=0.1)
    assert task.class_weights is not None
    labels = torch.tensor(dataset.node_targets.labels)[target[:3]]
    each = F.cross_entropy(logits[:3], labels, label_smoothing=0.1, reduction="none")
    expected = (each * task.class_weights[labels]).mean()
    assert task.loss(logits, target, weight).item() == approx(expected.item())


def test_the_loss_of_any_number_of_labels_is_torchs_with_weights_and_smoothed_labels():
    dataset = labelled_graphs()
    logits, target, weight = batch(3)
    task = NodeTask(dataset, 5, class_weights="balanced", label_smoothing=0.2)
    labels = torch.tensor(dataset.node_targets.labels)[target[:3]].float() * 0.8 + 0.1
    expected = F.binary_cross_entropy_with_logits(logits[:3], labels, pos_weight=task.class_weights)
    assert task.loss(logits, target, weight).item() == approx(expected.item())


def test_what_is_measured_counts_all_nodes_alike_and_labels_as_they_are():
    dataset = camps()
    logits = torch.randn(10, 2, generator=torch.Generator().manual_seed(1))
    plain, other = NodeTask(dataset, 5), NodeTask(dataset, 5, class_weights={"odd": 3}, label_smoothing=0.1)
    assert plain.measure(logits, "test") == other.measure(logits, "test")
    assert plain.monitor(logits[None], "test")["loss"] != other.monitor(logits[None], "test")["loss"]
