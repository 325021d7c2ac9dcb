"""Dataset and Pairs: what is learned from, and what would give the answer away."""

from typing import Any

import numpy as np
import pytest

from gatas.datasets import Dataset, NodeTable, NodeTargets, Pairs, read_dataset
from gatas.datasets.negatives import Pools
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def links(names=("likes",), **splits):
    #   0 → 1 → 2 → 3, all of them "likes"
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], edge_type_names=["likes"])
    return Dataset.for_links(graph, splits, names, name="toy")


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
        (([0], [0], [1], [2]), "pair 0: label is 2; expected 1 for a link, 0 for a negative"),
        (([0], [0], [1], [257]), "pair 0: label is 257"),
        (([0], [0], [1], [np.nan]), "pair 0: label is nan"),
        (([0, 1], [0], [1], [1]), r"the columns of pairs have \[1, 2\] values"),
    ],
)
def test_pairs_that_are_no_pairs_are_refused(columns, message):
    with pytest.raises(GraphError, match=message):
        Pairs(*(np.array(column) for column in columns))


@pytest.mark.parametrize("pool", [[0, 4], [-1, 0]])
def test_negatives_are_drawn_from_nodes_of_the_graph(pool):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], edge_type_names=["likes"])
    ends = Pools.of([np.array([0, 1])]), Pools.of([np.array(pool)])
    with pytest.raises(GraphError, match=r"toy: ends hold pools of negatives that are no nodes of the graph \(0 to 3\)"):
        Dataset.for_links(graph, {"train": pairs((0, 0, 1, 1))}, ends=ends, name="toy")


def test_an_empty_split_and_one_of_another_kind_are_refused():
    with pytest.raises(GraphError, match="the split 'test' is empty"):
        links(test=Pairs(*np.empty((4, 0), np.int64)))
    with pytest.raises(GraphError, match="the split 'test' is a list; expected Pairs"):
        links(test=[1, 2])


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"test": pairs((0, 0, 1, 1), (0, 0, 2, 1))}, "1 link of 'test' is an edge of the graph"),
        ({"valid": pairs((1, 0, 2, 0), (0, 0, 3, 0))}, "1 negative of 'valid' is a link"),
        ({"valid": pairs((0, 0, 3, 1)), "test": pairs((0, 0, 3, 0))}, "1 negative of 'test' is a link"),
        ({"train": pairs((1, 0, 2, 0))}, "1 negative of 'train' is a link"),
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
    given: dict[str, Any] = {
        "name": "toy",
        "graph": Graph.from_edges([0, 1], [1, 2]),
        "features": None,
        "labels": np.array([0, 1, -1]),
        "splits": {"train": [0, 1]},
        "class_names": ("a", "b"),
    }
    return Dataset.for_nodes(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "labels have shape .*; expected .*class numbers"),
        ({"labels": [0, 1]}, r"toy: labels have shape \(2,\), but the graph has 3 nodes. Give a label for each node"),
        ({"labels": [[0, 1, 1], [1, 0, 0], [1, 1, 0]]}, "labels have 3 columns, but there are 2 class names"),
        ({"labels": [0, 5, 1]}, "node 1: label is 5"),
        ({"features": np.ones((2, 2))}, "features have 2 rows, but the graph has 3 nodes"),
        ({"splits": {"train": [0], "test": [0]}}, "node 0 is in the splits 'train' and 'test'"),
        ({"splits": {"train": []}}, "the split 'train' is empty"),
    ],
)
def test_labels_features_and_splits_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(GraphError, match=message):
        classes(**changes)


def test_the_task_follows_from_what_is_asked():
    assert classes().task == "node classification"
    assert classes(labels=[[0, 1], [1, 0], [1, 1]]).task == "multi-label node classification"
    assert links(test=pairs((0, 0, 2, 1))).task == "link prediction"


def test_targets_of_the_other_task_are_refused():
    with pytest.raises(GraphError, match=r"toy is for node classification; expected a data set with splits of Pairs"):
        _ = classes().link_targets
    with pytest.raises(GraphError, match=r"toy is for link prediction; expected a data set with classes of nodes"):
        _ = links(test=pairs((0, 0, 2, 1))).node_targets


def test_splits_are_replaced_and_all_else_stays():
    dataset = classes(features=np.eye(3), note="by hand")
    other = dataset.with_splits({"valid": np.array([True, True, False])})
    assert {name: split.tolist() for name, split in other.splits.items()} == {"valid": [0, 1]}
    assert other.graph is dataset.graph and other.nodes is dataset.nodes and other.note == "by hand"
    asked = links(test=pairs((0, 0, 2, 1)))
    assert asked.with_splits({"valid": asked.splits["test"]}).splits == {"valid": asked.splits["test"]}
    with pytest.raises(GraphError, match="node 2 has no label"):
        dataset.with_splits({"test": [2]})


def test_a_class_absent_from_training_is_counted():
    with pytest.warns(GatasWarning, match=r"1 class has no training node \(the first is 'b'\)") as warnings:
        classes(splits={"train": [0]})
    assert len(warnings) == 1


def test_a_data_set_is_made_of_a_graph_targets_and_a_note():
    targets = NodeTargets(np.array([[1, 0], [0, 1]]), splits={"train": np.array([0, 1])})
    dataset = Dataset("mine", Graph.from_edges([0], [1]), targets, note="by hand")
    assert (dataset.task, dataset.names, dataset.note) == ("multi-label node classification", ("0", "1"), "by hand")
    assert dataset.features is None and dataset.node_targets is targets and not dataset.mapped
    dataset.check_leaks(strict=True)  # nothing to leak


def test_features_types_and_graphs_are_kept_in_the_node_table():
    dataset = classes(features=np.eye(3), node_type=[0, 1, 1], node_type_names=["person", "place"], graph_id=[0, 0, 0])
    assert isinstance(dataset.nodes, NodeTable) and isinstance(dataset.features, np.ndarray)
    assert dataset.features.tolist() == np.eye(3).tolist()
    assert dataset.nodes.node_type is not None and dataset.nodes.node_type.tolist() == [0, 1, 1]
    assert (dataset.nodes.node_type_names, dataset.nodes.num_graphs) == (("person", "place"), 1)


@pytest.mark.parametrize("direction", [{}, {"inverse": True}, {"undirected": True}])
def test_links_of_all_edge_types_but_inverses_are_asked_for_unless_some_are_named(direction):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], [0, 1, 0], edge_type_names=["likes", "knows"], **direction)
    splits = {"train": pairs((0, 0, 1, 1), (1, 0, 2, 1))}
    assert Dataset.for_links(graph, splits).names == ("likes", "knows")
    assert Dataset.for_links(graph, splits, ["knows"]).link_targets.link_types == ("knows",)


def test_a_data_set_is_shown_in_a_line_and_as_a_table():
    dataset = classes(features=np.ones((3, 1000)))
    assert repr(dataset) == (
        "Dataset('toy': 3 nodes, 2 edges of 1 type, 1,000 features; node classification, 2 classes; train 2)"
    )
    shown = links(train=pairs((0, 0, 1, 1), (1, 0, 3, 0)), test=pairs((0, 0, 2, 1)))
    assert repr(shown) == (
        "Dataset('toy': 4 nodes, 3 edges of 1 type, 0 features; link prediction, 1 type of link; train 2, test 1)"
    )
    for one in (dataset, shown):
        assert "\n" not in repr(one) and one.summary() in repr(one)
        page = one._repr_html_()
        assert page.startswith("<table>") and page.endswith("</table>") and one.task in page
        assert all(what in page for what in one.splits)


def test_a_name_cannot_break_out_of_the_table():
    page = classes(name="<script>", note="a < b", class_names=("<b>", "&"))._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "a &lt; b" in page and "&lt;b&gt;, &amp;" in page


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_node_without_a_label_is_in_no_split(split):
    splits = {"train": [0, 1], "test": [3]} | {split: [0, 2, 1] if split == "train" else [2, 3]}
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], node_ids=["ann", "bob", "cid", "dan"])
    with pytest.raises(GraphError, match=f"toy, split '{split}': node 'cid' has no label. A split is learned from"):
        Dataset.for_nodes(graph, np.array([0, 1, -1, 1]), splits, class_names=("x", "y"), name="toy")


def test_a_table_whose_training_split_lacks_a_class_is_told_once_and_by_the_class_s_own_name(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\nbob,cid\ncid,dan\n")
    rows = ("ann,1,cat,train", "bob,2,dog,train", "cid,3,eel,test", "dan,4,cat,test")
    (tmp_path / "nodes.csv").write_text("\n".join(("id,age,label,split", *rows)) + "\n")
    with pytest.warns(GatasWarning) as warnings:
        dataset = read_dataset(tmp_path / "edges.csv", tmp_path / "nodes.csv")
    assert [str(one.message) for one in warnings] == [
        "1 class has no training node (the first is 'eel'); none can be predicted."
    ]
    assert dataset.names == ("cat", "dog", "eel")
