"""NodeTargets and LinkTargets: what is asked of a graph, and the splits of it."""

import pickle

import numpy as np
import pytest
import torch

from gatas.datasets import Dataset, LinkTargets, NodeTargets, Pairs
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph


def test_minus_one_means_unlabelled_and_classes_are_named_by_number():
    targets = NodeTargets(np.array([1, -1, 0], np.int8))
    assert targets.labels.tolist() == [1, -1, 0]
    assert targets.class_names == ("0", "1") == targets.names
    assert (targets.multi_label, targets.task) == (False, "node classification")


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "bool"])
def test_several_labels_at_once_are_zeros_and_ones_of_any_type(dtype):
    targets = NodeTargets(np.array([[0, 1, 1], [1, 0, 0]], dtype))
    assert targets.labels.dtype == np.uint8
    assert targets.class_names == ("0", "1", "2") == targets.names
    assert (targets.multi_label, targets.task) == (True, "multi-label node classification")


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        ([0, 3], ("a", "b"), "node 1: label is 3; expected 0 to 1, or -1"),
        ([0, -2], (), "node 1: label is -2"),
        ([0.0, 1.0], (), "labels have type float64 (first value 0.0); expected integers"),
        ([True, False], (), "labels have type bool"),
        (["a", "b"], (), "labels have type <U1"),
        ([0, 10**12], (), "node 1: label is 1000000000000; expected 0 to 1048575"),
        (np.array([0, 2**64 - 1], np.uint64), (), "node 1: label is 18446744073709551615"),
        ([[0, 1], [0, 2]], (), "node 1: label 1 is 2; expected 0 or 1"),
        ([[0, 1], [0, 0.5]], (), "node 1: label 1 is 0.5"),
        ([[0, 1], [0, np.nan]], (), "node 1: label 1 is nan"),
        ([["a"], ["b"]], (), "labels have type <U1; expected a matrix of zeros and ones"),
        ([[0, 1], [0, 1]], ("a",), "labels have 2 columns, but there are 1 class names"),
        ([[[0]], [[1]]], (), "labels have shape (2, 1, 1)"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(labels, names, message):
    with pytest.raises(GraphError) as error:
        NodeTargets(labels, names)
    assert message in str(error.value)


def test_labels_of_another_number_of_nodes_than_the_graph_has_are_refused():
    with pytest.raises(GraphError, match=r"toy: labels have shape \(3,\), but the graph has 2 nodes"):
        Dataset.for_nodes(Graph.from_edges([0], [1]), [0, 1, 2], {}, name="toy")


def test_classes_without_a_training_node_are_counted():
    with pytest.warns(GatasWarning, match=r"2 classes have no training node \(the first is '1'\)"):
        NodeTargets(np.array([0, 1, 2, 0]), splits={"train": np.array([0]), "test": np.array([1])})
    with pytest.warns(GatasWarning, match=r"2 classes have no training node \(the first is 'dog'\)"):
        NodeTargets(np.array([0, 1, 2, 0]), ("cat", "dog", "eel"), {"train": np.array([0])})


def test_labels_without_a_positive_training_node_are_counted():
    with pytest.warns(GatasWarning, match=r"1 class has no training node \(the first is 'b'\)"):
        NodeTargets(np.array([[1, 0], [0, 1]]), ("a", "b"), {"train": np.array([0])})


def test_training_nodes_without_a_label_are_found_and_refused():
    targets = NodeTargets(np.array([0, -1]), splits={"train": np.array([0, 1])})
    assert targets.without_label(targets.splits["train"]).tolist() == [1]
    with pytest.raises(GraphError, match="toy, split 'train': node 'b' has no label"):
        Dataset("toy", Graph.from_edges([0], [1], node_ids=["a", "b"]), targets)


def test_a_node_with_none_of_several_labels_is_labelled():
    targets = NodeTargets(np.array([[1, 0], [0, 0]]), splits={"train": np.array([0, 1])})
    assert targets.without_label(targets.splits["train"]).size == 0


@pytest.mark.parametrize("split", [[2, 0], (2, 0), np.array([2, 0], np.int8), torch.tensor([2, 0])])
def test_a_split_is_given_by_node_numbers(split):
    assert NodeTargets(np.zeros(3, int), splits={"train": split}).splits["train"].tolist() == [2, 0]


@pytest.mark.parametrize("mask", [np.array([True, False, True]), torch.tensor([True, False, True])])
def test_a_split_is_given_by_a_mask(mask):
    assert NodeTargets(np.zeros(3, int), splits={"train": mask}).splits["train"].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": []}, "the split 'train' is empty"),
        ({"train": np.zeros(3, bool)}, "the split 'train' is empty"),
        ({"train": [0, 1], "test": [2, 1]}, "node 1 is in the splits 'train' and 'test'"),
        ({"train": [0, 3]}, "split 'train', entry 1: node is 3, but the graph has 3 nodes"),
        ({"train": [0, -1]}, "split 'train', entry 1: node is -1"),
        ({"train": [1, 1]}, "the split 'train' holds node 1 more than once"),
        ({"train": [0.5]}, "split 'train', entry 0: node is 0.5"),
        ({"train": np.ones(2, bool)}, "the mask of split 'train' has shape (2,); expected (3,)"),
    ],
)
def test_splits_that_leak_or_miss_are_refused(splits, message):
    with pytest.raises(GraphError) as error:
        NodeTargets(np.zeros(3, int), splits=splits)
    assert message in str(error.value)


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def test_targets_are_shown_in_a_line():
    classes = NodeTargets(np.array([0, 1, 1]), splits={"train": np.array([0, 1]), "test": np.array([2])})
    assert repr(classes) == "NodeTargets(2 classes; train 2, test 1)"
    assert repr(NodeTargets(np.eye(2), splits={"train": np.array([0, 1])})) == "NodeTargets(2 labels; train 2)"
    links = LinkTargets(("likes",), {"train": pairs((0, 0, 1, 1), (1, 0, 0, 0), (2, 0, 0, 0))})
    assert repr(links) == "LinkTargets(1 type; train 3)"
    assert repr(links.splits["train"]) == "Pairs(1 positives, 2 negatives)"


@pytest.mark.parametrize(
    ("types", "splits", "message"),
    [
        ((), {}, "no type of link is asked for"),
        (("a",), {"train": [0, 1]}, "the split 'train' is a list; expected Pairs"),
        (("a",), {"train": Pairs(*np.empty((4, 0), np.int64))}, "the split 'train' is empty"),
    ],
)
def test_links_that_cannot_be_asked_for_are_refused(types, splits, message):
    with pytest.raises(GraphError, match=message):
        LinkTargets(types, splits)


def test_splits_cannot_be_written_to():
    for targets in (NodeTargets(np.array([0]), splits={"train": [0]}), LinkTargets(("a",), {"train": pairs((0, 0, 1, 1))})):  # type: ignore[dict-item]  # lists will do
        with pytest.raises(TypeError, match="does not support item assignment"):
            targets.splits["test"] = targets.splits["train"]  # type: ignore[index]


def test_targets_survive_pickling():
    classes = pickle.loads(pickle.dumps(NodeTargets(np.array([0, 1]), ("a", "b"), {"train": np.array([0, 1])})))
    assert (classes.labels.tolist(), classes.class_names, classes.splits["train"].tolist()) == ([0, 1], ("a", "b"), [0, 1])
    links = pickle.loads(pickle.dumps(LinkTargets(("a",), {"train": pairs((0, 0, 1, 1))})))
    assert (links.link_types, links.splits["train"].target.tolist(), links.ends) == (("a",), [1], None)
