"""How much features say: measured by a linear classifier, beside labels spread over the graph."""

import numpy as np
import pytest
from scipy import sparse

from gatas.datasets import Dataset
from gatas.graph import Graph
from gatas.tasks.feature_value import Accuracies, filled_share, measure_features
from gatas.tasks.recommended import recommended


def friends(say: float, *, agree: bool = True, features: int = 4, num_nodes: int = 300, train: int = 150):
    """Nodes of three classes whose friends are of the same class, or anyone; one feature says the class that clearly."""
    generator = np.random.default_rng(0)
    labels = np.arange(num_nodes) % 3
    others = [generator.choice(np.flatnonzero(labels == own) if agree else num_nodes, 3) for own in labels]
    graph = Graph.from_edges(np.repeat(np.arange(num_nodes), 3), np.concatenate(others), num_nodes=num_nodes, undirected=True)
    values = generator.normal(size=(num_nodes, features)).astype(np.float32)
    if features:
        values[:, : min(3, features)] += say * np.eye(3, dtype=np.float32)[labels][:, : min(3, features)]
    order = generator.permutation(num_nodes)
    splits = {"train": order[:train], "valid": order[150:250], "test": order[250:]}
    given = values if features else None
    return Dataset.for_nodes(graph, labels, splits, class_names=("a", "b", "c"), features=given, name="friends")


def measured(dataset: Dataset) -> Accuracies:
    found = measure_features(dataset)
    assert found is not None
    return found


def test_features_and_labels_are_measured_by_themselves():
    found = measured(friends(say=6.0))
    assert found.by_features > 0.95 and found.by_labels > 0.95 and found.most_frequent < 0.45
    found = measured(friends(say=0.0, agree=False))
    assert found.by_features < 0.5 and found.by_labels < 0.55


def test_many_columns_are_mixed_into_fewer_and_sparse_ones_are_read_as_they_are():
    dense = friends(say=6.0, features=700)
    assert measured(dense).by_features > 0.8
    table = Dataset.for_nodes(
        dense.graph, dense.targets.labels, dict(dense.splits), class_names=dense.names,
        features=sparse.csr_array(dense.features), name="sparse",
    )  # fmt: skip
    assert measured(table) == measured(dense)


def test_labels_of_test_nodes_are_not_looked_at():
    dataset = friends(say=1.0)
    labels = np.array(dataset.targets.labels)
    labels[dataset.splits["test"]] = 0
    other = Dataset.for_nodes(
        dataset.graph, labels, dict(dataset.splits), class_names=dataset.names, features=dataset.features, name="other"
    )
    assert measured(other) == measured(dataset)


@pytest.mark.parametrize(
    ("found", "little"),
    [
        (Accuracies(0.21, 0.22, 0.68), True),  # packages: their size says nothing, what they depend on much
        (Accuracies(0.25, 0.86, 0.91), False),
        (Accuracies(0.25, 0.28, 0.24), False),  # neighbours disagree: nothing to learn from them
        (Accuracies(0.30, 0.40, 0.50), False),
    ],
)
def test_features_say_little_only_beside_labels_that_say_much(found, little):
    assert found.features_say_little is little


@pytest.mark.parametrize(
    ("found", "little"),
    [
        (Accuracies(0.25, 0.65, 0.26), True),  # pages of a university: they link to pages of other kinds
        (Accuracies(0.12, 0.64, 0.37), True),
        (Accuracies(0.19, 0.56, 0.45), False),  # blogs: 40 % of the edges join the same class
        (Accuracies(0.12, 0.41, 0.66), False),
        (Accuracies(0.25, 0.26, 0.24), False),
    ],
)
def test_neighbours_say_little_only_beside_features_that_say_far_more(found, little):
    assert found.neighbours_say_little is little


@pytest.mark.parametrize(
    ("found", "nothing"),
    [
        (Accuracies(0.25, 0.26, 0.24, 0.25), True),
        (Accuracies(0.25, 0.85, 0.21, 0.25), True),
        (Accuracies(0.11, 0.57, 0.31, 0.30), False),  # half of the edges of an image network rewired
        (Accuracies(0.49, 0.76, 0.31, 0.60), False),  # pages of a university: those they link to are of other kinds
    ],
)
def test_neighbours_say_nothing_if_neither_labels_nor_their_shares_beat_the_most_frequent_class(found, nothing):
    assert found.neighbours_say_nothing is nothing


def test_neighbours_that_are_always_of_another_class_are_found_by_their_shares_alone():
    say = friends(say=6.0)
    labels = np.asarray(say.targets.labels)
    graph = Graph.from_edges(np.arange(300), (np.arange(300) + 1) % 300, num_nodes=300)  # 0, 1, 2, 0, ...: never the own
    found = measured(Dataset.for_nodes(graph, labels, dict(say.splits), features=say.features, name="chain"))
    assert (
        found.by_neighbours is not None
        and found.by_neighbours > found.most_frequent + 0.1 > found.by_labels
        and not found.neighbours_say_nothing
    )


def test_neighbours_without_labels_are_no_measure_of_what_neighbours_say():
    alone = friends(say=6.0, agree=False)
    graph = Graph.from_edges([0], [1], num_nodes=300, undirected=True)
    found = measured(Dataset.for_nodes(graph, alone.targets.labels, dict(alone.splits), features=alone.features, name="alone"))
    assert found.by_neighbours is None and not found.neighbours_say_nothing


def test_nodes_are_not_told_their_own_labels_by_their_neighbours():
    found = measured(friends(say=0.0, agree=False, features=0))
    assert found.by_neighbours is not None and found.by_neighbours < 0.5


def split(dataset: Dataset, train: int) -> Dataset:
    order = np.random.default_rng(1).permutation(dataset.graph.num_nodes)
    return dataset.with_splits({"train": order[:train], "valid": order[train:]})


@pytest.mark.parametrize(("num_nodes", "train", "l2"), [(2000, 1000, 0.006), (4000, 3000, 0.002), (500, 110, 0.05)])
def test_weights_are_kept_the_smaller_the_fewer_nodes_there_are_where_neighbours_say_nothing(num_nodes, train, l2):
    dataset = split(friends(say=6.0, agree=False, num_nodes=num_nodes), train)
    found = {choice.setting: choice for choice in recommended(dataset).choices}
    assert found["training.l2"].value == l2
    near = {name: found[name].value if name in found else None for name in ("training.batch_size", "model.num_steps")}
    assert set(near.values()) == ({500, 1} if train >= 1000 else {None})
    assert found["model.path_mean_size"].value == (0 if train >= 1000 else 64)
    assert "the most frequent class" in found["training.l2"].reason
    assert "training.l2" not in recommended(split(friends(say=6.0, num_nodes=num_nodes), train)).settings


@pytest.mark.parametrize("features", [0, 4])
def test_nothing_of_that_kind_is_chosen_where_there_are_no_features_or_few_labels(features):
    dataset = split(friends(say=6.0, agree=False, num_nodes=2000, features=features), 1000 if not features else 100)
    assert recommended(dataset).settings.get("training.batch_size") in (None, 1000)


def test_few_labels_among_neighbours_that_disagree_let_a_node_keep_what_it_knows():
    found = recommended(friends(say=6.0, agree=False, train=40, features=20))
    chosen = {choice.setting: choice for choice in found.choices}
    assert chosen["model.skip_connection"].value and chosen["model.output_norm"].value and chosen["model.path_mean_size"].value
    assert "labels of neighbours alone give" in chosen["model.skip_connection"].reason
    assert chosen["model.input_noise"].value == 0.2 and "training.consistency" not in chosen
    assert "model.skip_connection" not in recommended(friends(say=6.0, train=40, features=20)).settings


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_share_of_filled_features_is_of_nodes_that_have_any(make):
    values = np.zeros((4, 5), np.float32)
    values[0, :2] = values[1, 3:] = 1  # two of five; nodes 2 and 3 have none
    graph = Graph.from_edges([0, 1], [1, 2], num_nodes=4)
    assert filled_share(Dataset.for_nodes(graph, [0, 1, 0, 1], {"train": [0, 1]}, features=make(values))) == 0.4


@pytest.mark.parametrize(("features", "reason"), [(4, "labels of neighbours alone give"), (0, "nodes have no features")])
def test_neighbours_are_then_told_apart_by_themselves_and_by_their_labels(features, reason):
    found = recommended(friends(say=0.0, features=features))
    chosen = {choice.setting: choice for choice in found.choices}
    assert chosen["model.label_inputs"].value and chosen["model.hide_own_embedding"].value
    assert chosen["model.node_embedding_size"].value > 0 and reason in chosen["model.label_inputs"].reason
    assert "model.label_inputs" not in recommended(friends(say=6.0)).settings
