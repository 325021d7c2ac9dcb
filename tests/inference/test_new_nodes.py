"""Nodes never seen: as if they had always been there, but for embeddings they could not learn."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import gatas
from gatas.datasets import Dataset
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.inference import Predictor
from gatas.inference.columns import read_new_nodes
from tests.tasks.toys import camps, classifier


def directed(edges, num_nodes, **settings):
    source, target = np.array(edges).T
    return Graph.from_edges(source, target, num_nodes=num_nodes, **settings)


def without_last(dataset, **direction):
    """A data set of all nodes but the last, and that node's edges as they were listed."""
    generator = np.random.default_rng(5)
    edges = [tuple(pair) for pair in generator.integers(30, size=(80, 2)) if pair[0] != pair[1]]
    edges = list({tuple(sorted(pair)): pair for pair in edges}.values())
    last = [pair for pair in edges if 29 in pair]
    rest = [pair for pair in edges if 29 not in pair]

    def of(edges, count):
        graph = directed(edges, count, **direction)
        splits = {"train": np.arange(20)}
        labels = dataset.node_targets.labels[:count]
        return Dataset.for_nodes(graph, labels, splits, class_names=dataset.names, features=dataset.features[:count])

    return of(edges, 30), of(rest, 29), tuple(map(list, zip(*last, strict=True)))


def twins(whole, rest, mode):
    """Predictors over all nodes and over all but the last, with the same weights."""
    full, small = classifier(whole), classifier(rest)
    small.load_state_dict(full.state_dict())
    return Predictor(full, whole, mode=mode), Predictor(small, rest, mode=mode)


@pytest.mark.parametrize("direction", [{}, {"undirected": True}, {"inverse": True}], ids=str)
@pytest.mark.parametrize("mode", ["sample", "all"])
def test_with_features_alone_a_new_node_is_as_if_it_had_been_there(direction, mode):
    whole, rest, edges = without_last(camps(), **direction)
    full, small = twins(whole, rest, mode)
    found = small.embed_new(whole.features[29:], edges)
    np.testing.assert_array_equal(found, full.embed([29]))
    extended = small.with_new_nodes(whole.features[29:], edges)
    everyone = np.arange(30)
    np.testing.assert_array_equal(extended.embed(everyone), full.embed(everyone))
    np.testing.assert_array_equal(extended.predict([29]).probabilities, full.predict([29]).probabilities)


def test_new_nodes_are_added_after_a_predictor_is_moved():
    whole, rest, edges = without_last(camps())
    _, small = twins(whole, rest, "all")
    before = small.embed([3])
    np.testing.assert_array_equal(small.to("cpu").embed([3]), before)
    with pytest.raises(GatasError, match="a predictor with new nodes cannot be moved"):
        small.with_new_nodes(whole.features[29:], edges).to("cpu")


def test_learned_embeddings_are_the_mean_of_the_neighbours_by_probability_or_zeros():
    #   new ─ 0 ─ 1      all candidates, one step: the new node itself and 0, of which only 0 is known
    graph = Graph.from_edges([0], [1], undirected=True)
    labels, splits = np.array([0, 1]), {"train": np.arange(2)}
    dataset = Dataset.for_nodes(graph, labels, splits, class_names=("a", "b"), name="two")
    model = classifier(dataset, node_embedding_size=3, num_steps=2)
    learned = model.encoder.inputs.embeddings.weight.detach()
    q = model.sampler.depth_coefficients.detach()
    predictor = Predictor(model, dataset, mode="all")
    extended = predictor.with_new_nodes(None, ([2], [0]))
    expected = (q[1] * learned[0] + q[2] * learned[1]) / (q[1] + q[2])
    torch.testing.assert_close(extended.exact.new.embeddings, expected[None])
    nothing = torch.zeros(1, 3)
    zeros = predictor.with_new_nodes(None, ([2], [0]), embeddings="zeros")
    torch.testing.assert_close(zeros.exact.new.embeddings, nothing)
    alone = predictor.with_new_nodes(None, None, ids=[2])  # without edges there is nobody to take after
    torch.testing.assert_close(alone.exact.new.embeddings, nothing)
    assert np.isfinite(alone.embed([2])).all()


def test_asking_for_new_nodes_changes_nothing(camp_run):
    model, predictor = camp_run.model, camp_run.predictor
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    known = predictor.embed(["a1"])
    predictor.embed_new(np.ones((1, 5)), (["zoe"], ["a1"]), ids=["zoe"])
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    np.testing.assert_array_equal(predictor.embed(["a1"]), known)
    with pytest.raises(gatas.GraphError, match="no node has the id 'zoe'"):
        predictor.embed(["zoe"])


def test_new_nodes_can_have_links_to_old_ones(like_run):
    edges = (["12", 12, 0], ["likes", "knows", "likes"], [1, 5, "12"])
    extended = like_run.predictor.with_new_nodes(None, edges)
    assert extended.new_ids == [12]
    found = extended.rank_links(12, "likes", top=50)
    assert sorted(found.targets.to_pylist()) == [0, *range(2, 12)]  # 1 is known, 12 is itself
    assert 12 not in extended.rank_links(0, "likes", top=50).targets.to_pylist()  # it is liked already
    assert (extended.graph.num_nodes, extended.graph.num_edges) == (
        13,
        like_run.dataset.graph.num_edges + 6,
    )  # and their inverses


def test_weights_count_and_default_to_1():
    labels, splits = np.array([0, 1, 0]), {"train": np.arange(3)}
    graph = Graph.from_edges([0, 1], [1, 2], weight=[2.0, 3.0])
    dataset = Dataset.for_nodes(graph, labels, splits, class_names=("a", "b"), name="w")
    predictor = Predictor(classifier(dataset, node_embedding_size=2), dataset)
    heavy = predictor.with_new_nodes(None, ([3, 3], [0, 1]), weights=[1.0, 9.0]).sampler.transitions.row(3)
    light = predictor.with_new_nodes(None, ([3, 3], [0, 1])).sampler.transitions.row(3)
    assert heavy.probability[heavy.step == 1].tolist() == pytest.approx([0.1, 0.9])
    assert light.probability[light.step == 1].tolist() == pytest.approx([0.5, 0.5])


def test_files_say_the_same(camp_run, tmp_path):
    (tmp_path / "nodes.csv").write_text("id,f0,f1,f2,f3,f4\nzoe,1,2,3,4,5\nyara,0,0,1,0,0\n")
    (tmp_path / "edges.csv").write_text("source,target\nzoe,a1\nyara,zoe\na2,yara\n")
    predictor = camp_run.predictor
    extended = predictor.with_new_nodes(**read_new_nodes(camp_run.dataset, tmp_path / "nodes.csv", tmp_path / "edges.csv"))
    rows = np.array([[1, 2, 3, 4, 5], [0, 0, 1, 0, 0]])
    expected = predictor.embed_new(rows, (["zoe", "yara", "a2"], ["a1", "zoe", "yara"]), ids=["zoe", "yara"])
    np.testing.assert_array_equal(extended.embed(["zoe", "yara"]), expected)
    assert not np.array_equal(expected[0], expected[1]) and isinstance(extended, Predictor)


ONE = np.zeros((1, 5))


@pytest.mark.parametrize(
    ("features", "edges", "settings", "message"),
    [
        (np.zeros((1, 4)), (["z"], ["a1"]), {"ids": ["z"]}, "shape (1, 4); the model was trained on 5 columns"),
        (np.zeros(5), (["z"], ["a1"]), {"ids": ["z"]}, "shape (5,)"),
        (None, (["z"], ["a1"]), {"ids": ["z"]}, "trained on 5 features, and new nodes came without"),
        (ONE * np.nan, None, {"ids": ["z"]}, "new node 0: feature column 0 is nan"),
        (ONE, (["z"], ["a1"]), {}, "new nodes came without ids"),
        (ONE, (["z"], ["a1"]), {"ids": ["z", "y"]}, "2 ids and 1 rows"),
        (ONE, (["z"], ["a1"]), {"ids": ["a1"]}, "duplicate id 'a1': ids must be distinct"),
        (ONE, (["z"], ["a99"]), {"ids": ["z"]}, "no node has the id 'a99'. Nearest known"),
        (ONE, (["z"], ["friend"], ["a1"]), {"ids": ["z"]}, "there is no edge type 'friend'. The model knows '0'"),
        (ONE, (["z"], ["a1"]), {"ids": ["z"], "weights": [2.0]}, "weights, but those of the graph have none"),
        (ONE, (["z", "z"], ["a1"]), {"ids": ["z"]}, "2 sources and 1 targets"),
        (ONE, (["z"],), {"ids": ["z"]}, "edges came as 1 columns"),
        (ONE, (["z"], ["a1"]), {"ids": ["z"], "embeddings": "ones"}, "embeddings is 'ones'; expected 'mean'"),
    ],
)
def test_bad_input_is_refused(camp_run, features, edges, settings, message):
    with pytest.raises(gatas.GraphError) as error:
        camp_run.predictor.embed_new(features, edges, **settings)
    assert message in str(error.value)


def test_edges_of_several_types_need_theirs(like_run):
    with pytest.raises(gatas.GraphError, match="edges came without types, but the graph has 'likes', 'knows'"):
        like_run.predictor.embed_new(None, ([12], [0]))
    with pytest.raises(gatas.GraphError, match="trained without features"):
        like_run.predictor.embed_new(ONE, ([12], "likes", [0]))


@pytest.mark.parametrize("mode", ["sample", "all"])
def test_new_nodes_are_explained_as_if_they_had_been_there(mode):
    whole, rest, edges = without_last(camps(), undirected=True)
    full, small = twins(whole, rest, "sample")
    found = small.with_new_nodes(whole.features[29:], edges).explain(29, mode=mode)
    expected = full.explain(29, mode=mode)
    assert (found.target, found.neighbour, found.path) == (29, expected.neighbour, expected.path)
    np.testing.assert_allclose(found.contributions, expected.contributions, atol=1e-12)
    np.testing.assert_allclose(found.effect, expected.effect, atol=1e-9)
    assert found.answer == expected.answer and found.coverage == pytest.approx(expected.coverage)


def test_contributions_of_a_new_node_add_up_to_its_representation(camp_run):
    extended = camp_run.predictor.with_new_nodes(np.ones((1, 5)), (["zoe", "zoe"], ["a1", "a4"]), ids=["zoe"])
    found = extended.explain("zoe")
    heads = found.contributions.sum(0)
    np.testing.assert_allclose(np.where(heads > 0, heads, np.expm1(heads)).ravel(), extended.embed(["zoe"])[0], atol=1e-6)
    assert {"zoe", "a1", "a4"} <= set(found.neighbour)
    assert extended.predict(["zoe"]).labels == [found.answer.name]
    with pytest.raises(gatas.GraphError, match="no node has the id 'zoe'"):
        camp_run.predictor.explain("zoe")


def test_links_of_new_nodes_are_explained_at_both_ends(like_run):
    extended = like_run.predictor.with_new_nodes(None, ([12, 12], ["likes", "knows"], [1, 5]))
    found = extended.explain((12, "likes", 3))
    assert found.target == 12 and found.other is not None and found.other.target == 3
    assert found.answer.probability == pytest.approx(float(extended.predict_links(12, "likes", 3)[0]), abs=1e-6)


ZOE = {"kind": "customer", "age": 25, "town": "rome"}
BOUGHT = (["zoe"], ["buys"], ["t1"])


def test_values_by_column_are_encoded_as_in_training(shop_folder):
    predictor: Any = gatas.load(shop_folder)
    twin = predictor.with_new_nodes([{"kind": "customer", "age": 23, "town": "rome"}], None, ids=["twin"])
    np.testing.assert_array_equal(twin.exact.new.features[0], predictor.model.features[3])  # c3 is 23 and from Rome
    found = predictor.embed_new([ZOE], BOUGHT, ids=["zoe"])
    age: Any = predictor.dataset.encoding.columns[0]
    by_hand = np.array([[(25 - age.mean) / age.scale, 0, 1, 0, 0]], np.float32)
    np.testing.assert_array_equal(found, predictor.embed_new(by_hand, BOUGHT, ids=["zoe"]))
    np.testing.assert_array_equal(found, predictor.embed_new(pa.Table.from_pylist([ZOE]), BOUGHT, ids=["zoe"]))
    thing = predictor.with_new_nodes([{"kind": "thing", "colour": "red"}, ZOE], None, ids=["mug", "zoe"])
    assert thing.exact.new.features[0].tolist() == [0, 0, 0, 0, 1]


def test_files_have_the_columns_of_the_runs_own_tables(shop_folder, tmp_path):
    (tmp_path / "nodes.csv").write_text("key,kind,age,town,label\nzoe,customer,25,rome,x\n")
    (tmp_path / "edges.csv").write_text("from,to,relation\nzoe,t1,buys\n")
    predictor = gatas.load(shop_folder)
    given = read_new_nodes(predictor.dataset, tmp_path / "nodes.csv", tmp_path / "edges.csv")
    extended = predictor.with_new_nodes(**given)
    np.testing.assert_array_equal(extended.embed(["zoe"]), predictor.embed_new([ZOE], BOUGHT, ids=["zoe"]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**ZOE, "town": "lima"}], "new nodes, row 1, column 'town': 'lima' was in no node of training"),
        ([{**ZOE, "height": 3}], "a value for 'height'; the model was trained on 'kind', 'age', 'town', 'colour'"),
        ([{"age": 25, "town": "rome"}], "new nodes does not say of what type nodes are"),
        ([{"kind": "customer", "age": 25}], "new nodes has no column 'town', which the model was trained on"),
        ([{**ZOE, "age": "old"}], "column 'age' holds string, such as 'old'"),
        ([{**ZOE, "age": "old"}, ZOE], "values of new nodes do not make columns"),
        ([ZOE, ZOE], "1 ids and 2 rows of features"),
        ([{}], "does not say of what type"),
    ],
)
def test_values_that_cannot_be_encoded_are_refused(shop_folder, rows, message):
    with pytest.raises(gatas.GraphError) as error:
        gatas.load(shop_folder).embed_new(rows, BOUGHT, ids=["zoe"])
    assert message in str(error.value) and "\n" not in str(error.value)


def test_values_need_a_model_of_tables(camp_run):
    with pytest.raises(gatas.GraphError, match=r"not trained on tables of columns. Give 5 numbers"):
        camp_run.predictor.embed_new([ZOE], None, ids=["zoe"])
