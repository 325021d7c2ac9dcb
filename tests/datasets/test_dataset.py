"""Dataset and Pairs: what is learned from, and what would give the answer away."""

from typing import Any

import numpy as np
import pytest

from gatas.datasets import Dataset, Pairs
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph, NodeTable


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def links(names=("likes",), **splits):
    #   0 → 1 → 2 → 3, all of them "likes"
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], edge_type_names=["likes"])
    return Dataset("toy", graph, None, None, splits, "link prediction", names)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((4, 0, 1, 1), "toy, split 'test', pair 1: source is 4, but only 0 to 3 are known"),
        ((1, 0, 9, 1), "pair 1: target is 9, but only 0 to 3 are known"),
        ((1, 1, 2, 1), "pair 1: edge_type is 1, but only 0 to 0 are known"),
    ],
)
def test_a_pair_the_graph_has_never_seen_is_refused(row, message):
    with pytest.raises(GraphError, match=message):
        links(test=pairs((0, 0, 2, 1), row))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [0], [-1], [1]), "target of pair 0: target is -1"),
        (([0.5], [0], [1], [1]), "source of pair 0: source is 0.5"),
        (([0], [0], [1], [2]), "pair 0: label is 2; expected 1 for a link, 0 for none"),
        (([0], [0], [1], [257]), "pair 0: label is 257"),
        (([0], [0], [1], [np.nan]), "pair 0: label is nan"),
        (([0, 1], [0], [1], [1]), r"the columns of pairs have \[1, 2\] values"),
    ],
)
def test_pairs_that_are_no_pairs_are_refused(columns, message):
    with pytest.raises(GraphError, match=message):
        Pairs(*(np.array(column) for column in columns))


def test_an_empty_split_and_one_of_another_kind_are_refused():
    with pytest.raises(GraphError, match="the split 'test' is empty"):
        links(test=Pairs(*np.empty((4, 0), np.int64)))
    with pytest.raises(GraphError, match="the split 'test' is a list; expected Pairs"):
        links(test=[1, 2])


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"test": pairs((0, 0, 1, 1), (0, 0, 2, 1))}, "1 links of 'test' are edges of the graph"),
        ({"valid": pairs((1, 0, 2, 0), (0, 0, 3, 0))}, "1 negatives of 'valid' are links"),
        ({"valid": pairs((0, 0, 3, 1)), "test": pairs((0, 0, 3, 0))}, "1 negatives of 'test' are links"),
        ({"train": pairs((1, 0, 2, 0))}, "1 negatives of 'train' are links"),
    ],
)
def test_leaks_are_counted_and_refused_when_strict(splits, message):
    dataset = links(**splits)
    with pytest.warns(GatasWarning, match=message):
        dataset.check_leaks()
    with pytest.raises(GraphError, match=message):
        dataset.check_leaks(strict=True)


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (("likes",), {"train": pairs((0, 0, 1, 1)), "test": pairs((0, 0, 2, 1), (0, 0, 3, 0), (1, 0, 0, 0))}),
        (("knows",), {"test": pairs((0, 0, 1, 1), (1, 0, 2, 0))}),  # of another type than the graph's edges
        (("likes", "knows"), {"test": pairs((0, 1, 1, 1), (0, 0, 2, 0))}),
    ],
)
def test_sound_links_pass_the_strict_check(names, splits):
    links(names, **splits).check_leaks(strict=True)


def test_link_splits_cannot_be_changed():
    dataset = links(test=pairs((0, 0, 2, 1)))
    with pytest.raises(ValueError, match="read-only"):
        dataset.splits["test"].source[0] = 3
    with pytest.raises(TypeError):
        dataset.splits["more"] = 1


def classes(**changes):
    graph = Graph.from_edges([0, 1], [1, 2])
    given: dict[str, Any] = {
        "name": "toy",
        "graph": graph,
        "features": None,
        "labels": np.array([0, 1, -1]),
        "splits": {"train": [0, 1]},
        "task": "node classification",
        "names": ("a", "b"),
    }
    return Dataset(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "toy: node classification needs labels"),
        (
            {"task": "multi-label node classification"},
            r"toy: the task is multi-label node classification, but labels have shape",
        ),
        ({"labels": [[0, 1], [1, 0], [1, 1]]}, "toy: the task is node classification, but labels have shape"),
        ({"task": "regression"}, "toy: there is no task 'regression'; expected one of node classification"),
        ({"labels": [0, 5, 1]}, "node 1: label is 5"),
        ({"features": np.ones((2, 2))}, "features have 2 rows, but the graph has 3 nodes"),
        ({"splits": {"train": [0], "test": [0]}}, "node 0 is in the splits 'train' and 'test'"),
        ({"splits": {"train": []}}, "the split 'train' is empty"),
    ],
)
def test_labels_features_and_splits_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(GraphError, match=message):
        classes(**changes)


def test_a_class_absent_from_training_is_counted():
    with pytest.warns(GatasWarning, match="1 classes have no training node"):
        classes(splits={"train": [0]})


def test_a_data_set_is_made_of_what_came_with_a_graph():
    nodes = NodeTable(2, labels=np.array([[1, 0], [0, 1]]), splits={"train": np.array([0, 1])})
    dataset = Dataset.from_graph(Graph.from_edges([0], [1], nodes=nodes), name="mine", note="by hand")
    assert (dataset.task, dataset.names, dataset.note) == ("multi-label node classification", ("0", "1"), "by hand")
    dataset.check_leaks(strict=True)  # nothing to leak


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_node_without_a_label_is_in_no_split(split):
    splits = {"train": [0, 1], "test": [3]} | {split: [0, 2, 1] if split == "train" else [2, 3]}
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], node_names=["ann", "bob", "cid", "dan"])
    with pytest.raises(GraphError, match=f"toy, split '{split}': node 'cid' has no label. A split is learned from"):
        Dataset("toy", graph, None, np.array([0, 1, -1, 1]), splits, "node classification", ("x", "y"))
