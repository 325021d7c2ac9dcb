"""Batches: every row once an epoch, in an order that the seed and the epoch's number fix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatas.tasks import LinkTask, NodeTask
from gatas.tasks.batches import cut, fill, stacked
from tests.tasks.toys import camps, labelled_graphs, likes


def meant(batches, column="target"):
    return batches.columns[column][batches.columns["weight"] > 0]


@given(num_rows=st.integers(1, 30), batch_size=st.integers(1, 12), num_groups=st.integers(0, 4), seed=st.integers(0, 99))
def test_every_row_is_in_one_batch_and_results_are_put_in_order(num_rows, batch_size, num_groups, seed):
    generator = np.random.default_rng(seed)
    rows = generator.permutation(40)[:num_rows]
    groups = generator.integers(num_groups, size=40) if num_groups else None
    batches = fill(cut(rows, batch_size, groups), {"target": np.arange(40), "square": np.arange(40) ** 2})
    assert sorted(meant(batches)) == sorted(rows)
    assert (batches.columns["square"].reshape(-1)[batches.place] == np.sort(rows) ** 2).all()
    assert batches.sizes == [int(weight.sum()) for weight in batches.columns["weight"]]
    assert set(np.unique(batches.columns["weight"])) <= {0, 1}
    if groups is not None:
        assert all(len(set(groups[batch])) == 1 for batch in batches.columns["target"])


def test_a_short_batch_is_filled_with_rows_of_its_own_that_count_for_nothing():
    batches = fill(cut(np.array([4, 1, 3]), 2), {"target": np.arange(5)})
    assert batches.columns["target"].tolist() == [[4, 1], [3, 3]]
    assert batches.columns["weight"].tolist() == [[1, 1], [1, 0]]
    assert batches.place.tolist() == [1, 2, 0]


@pytest.mark.parametrize("task", [NodeTask(camps(), 4), NodeTask(labelled_graphs(), 3, by_graph=True), LinkTask(likes(), 7)])
def test_an_epoch_is_a_function_of_seed_and_number(task):
    column = "target"
    first, again, later, other = (task.epoch(*asked).columns[column] for asked in ((0, 0), (0, 0), (0, 1), (1, 0)))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, later) and not np.array_equal(first, other)
    assert first.shape == later.shape == other.shape


@pytest.mark.parametrize(("dataset", "by_graph"), [(camps(), False), (labelled_graphs(), False), (labelled_graphs(), True)])
def test_an_epoch_has_every_training_node_once(dataset, by_graph):
    epoch = NodeTask(dataset, 4, by_graph=by_graph).epoch(seed=3, number=5)
    assert sorted(meant(epoch)) == sorted(dataset.splits["train"])


def test_batches_by_graph_hold_one_graph_each_and_say_where_it_begins():
    dataset = labelled_graphs(sizes=(5, 3, 8, 4))
    epoch = NodeTask(dataset, 3, by_graph=True).epoch(seed=0, number=0)
    graph_id = dataset.nodes.graph_id[epoch.columns["target"]]
    assert (graph_id == graph_id[:, :1]).all() and len(epoch) == 2 + 1 + 3
    assert (epoch.columns["first_node"] == np.array([0, 5, 8])[graph_id]).all()
    assert any((np.diff(NodeTask(dataset, 3, by_graph=True).epoch(0, k).columns["target"][:, 0]) < 0).any() for k in range(3))


def test_batches_of_models_side_by_side_are_those_of_each():
    task = NodeTask(labelled_graphs(), 3, by_graph=True)
    alone = [task.epoch(seed, 0) for seed in (0, 1)]
    both = stacked(alone)
    assert both.columns["target"].shape == (len(alone[0]), 2, 3)
    for model, own in enumerate(alone):
        assert np.array_equal(both.columns["target"][:, model], own.columns["target"])
        assert all(size >= least for size, least in zip(both.sizes, own.sizes, strict=True))
    (column,) = {one.columns["weight"].shape for one in [stacked(alone[:1])]}
    assert column == (len(alone[0]), 1, alone[0].columns["weight"].shape[1])
