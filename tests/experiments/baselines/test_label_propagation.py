"""Label propagation against its closed form."""

import numpy as np
import pytest
import torch

from gatas.datasets import Dataset
from gatas.experiments.baselines.label_propagation import PRIOR, PropagatedLabels, fit_label_propagation
from gatas.experiments.contenders import contender
from gatas.graph import Graph
from gatas.training.limit import Limit
from tests.tasks.toys import camps, labelled_graphs

#   0 ─ 1 ─ 2 ─ 3     4 is alone; 0 and 3 are labelled
PATH = Dataset.for_nodes(
    Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=5, undirected=True),
    [0, 0, 1, 1, 1],
    {"train": [0, 3], "valid": [1], "test": [2, 4]},
    name="path",
)


def test_many_steps_come_to_the_closed_form():
    degree = np.array([1, 2, 2, 1, 1.0])
    adjacency = np.zeros((5, 5))
    for one in range(3):
        adjacency[one, one + 1] = adjacency[one + 1, one] = 1
    matrix = adjacency / np.sqrt(np.outer(degree, degree))
    given = np.zeros((5, 2))
    given[0, 0] = given[3, 1] = 1
    expected = 0.2 * np.linalg.solve(np.eye(5) - 0.8 * matrix, given) + PRIOR / 2
    np.testing.assert_allclose(PropagatedLabels(PATH, share=0.8, num_steps=200).found.numpy(), expected, atol=1e-5)


def test_labels_of_held_out_nodes_change_nothing():
    other = Dataset.for_nodes(PATH.graph, [0, 1, 0, 1, 0], dict(PATH.splits), name="path")
    first, second = (PropagatedLabels(one, share=0.8, num_steps=5).found for one in (PATH, other))
    assert torch.equal(first, second)


def test_a_run_is_measured_like_others():
    run = fit_label_propagation(PATH, 0, torch.device("cpu"), share=0.8, num_steps=5)
    assert run.metrics["valid"]["accuracy"] == 1 and run.metrics["test"]["accuracy"] == 0.5  # no label comes to the lonely one
    assert contender("label-propagation", camps()).fit([0], "cpu", Limit())[0].metrics["test"]["accuracy"] > 0.5


def test_several_labels_are_propagated_too():
    run = fit_label_propagation(labelled_graphs(), 0, torch.device("cpu"), share=0.8, num_steps=5)
    assert 0 <= run.metrics["valid"]["micro_f1"] <= 1


@pytest.mark.parametrize("setting", [{"share": 0.5}, {"num_steps": 1}])
def test_settings_can_be_changed(setting):
    assert contender("label-propagation", PATH, changed=setting).settings["model"].items() >= setting.items()
