"""Settings of nodes follow from the data where they are not given, each with its reason."""

from typing import Any

import numpy as np
import pytest

from gatas.datasets import Dataset
from gatas.experiments.recipes import recipe
from gatas.graph import Graph
from gatas.inference import fit_many
from gatas.tasks import NodeClassifier
from gatas.tasks.recommended import recommended
from gatas.training.config import Config
from tests.tasks.toys import camps, heights, labelled_graphs, likes


def ring(num_nodes=100, train=60, types=1, features=20, node_type=None, filled=1.0):
    """A ring whose edges are of one type or of several, with some of its nodes labelled."""
    generator = np.random.default_rng(0)
    nodes = np.arange(num_nodes)
    kind = None if types == 1 else nodes % types
    graph = Graph.from_edges(nodes, (nodes + 1) % num_nodes, kind, undirected=True, num_nodes=num_nodes)
    splits = {"train": nodes[:train], "valid": nodes[-10:]}
    given: Any = {} if node_type is None else {"node_type": node_type, "node_type_names": ("page", "person")}
    values = generator.normal(size=(num_nodes, features)).astype(np.float32)
    values[:, round(filled * features) :] = 0
    return Dataset.for_nodes(graph, nodes % 2, splits, features=values, name="ring", **given)


def test_many_labels_let_a_node_keep_its_own_inputs():
    found = recommended(ring(train=60)).settings
    assert found["model.skip_connection"] and found["model.output_norm"] and found["training.ema_decay"] == 0.99
    assert found["model.input_noise"] == 0.2 and found["model.path_mean_size"] == 64 and "training.l2" not in found


def test_few_labels_are_not_to_be_learned_by_heart():
    found = recommended(ring(train=5)).settings
    assert "model.skip_connection" not in found and found["model.label_spreading"] and found["training.consistency"] > 0
    assert found["training.l2"] == 0.05 and "model.path_mean_size" not in found


@pytest.mark.parametrize(("filled", "train", "masked"), [(0.1, 5, 0.8), (1.0, 5, 0.5), (0.1, 60, 0.5), (1.0, 60, 0.2)])
def test_more_features_are_masked_where_labels_are_few_and_fewer_where_features_are_dense(filled, train, masked):
    found = recommended(ring(train=train, filled=filled))
    assert found.settings["model.input_noise"] == masked
    (reason,) = [line for line in found.reasons if f"{100 * filled:.0f} % of them other than 0" in line]
    assert ("few labels" in reason) == (train == 5)


def test_of_two_choices_the_later_counts_and_is_the_one_that_is_told():
    found = recommended(ring(train=5, features=0))
    assert found.settings["training.monitor"] == "metric"
    assert [line for line in found.reasons if "monitor" in line] == ['monitor: "metric", since nodes have no features']


def test_several_types_of_edges_get_layers_of_their_own():
    found = recommended(ring(train=5, types=3)).settings
    assert (found["model.path_mean_size"], found["training.l2"]) == (64, 0.005) and "training.consistency" not in found


@pytest.mark.parametrize("several", [True, False])
def test_several_graphs_with_one_type_of_edges_get_no_layers_for_paths(several):
    found = recommended(labelled_graphs(several=several))
    assert found.settings["model.path_mean_size"] == 0 and found.settings["model.skip_connection"]
    assert any("path_mean_size: 0, since there are 4 graphs" in line for line in found.reasons)


@pytest.mark.parametrize(("types", "size"), [(1, 0), (3, 64)])
def test_several_labels_of_a_node_speak_against_layers_for_paths_but_not_where_edges_have_several_types(types, size):
    one = ring(types=types)
    labels = np.stack([np.arange(100) % 2, np.arange(100) % 3 == 0], axis=1)
    splits = {name: one.splits[name] for name in ("train", "valid")}
    found = recommended(Dataset.for_nodes(one.graph, labels, splits, features=one.features))
    assert found.settings["model.path_mean_size"] == size
    assert size or any("since a node may have several labels" in line for line in found.reasons)


@pytest.mark.parametrize(("types", "steps"), [(3, None), (10, 2), (20, 2), (30, None)])
def test_steps_are_fewer_where_paths_would_be_too_many(types, steps):
    found = recommended(ring(types=types)).settings
    assert found.get("model.num_steps") == steps and ("model.path_mean_size" in found) == (types < 30)


def test_a_number_of_steps_that_is_given_stays():
    assert "model.path_mean_size" not in recommended(ring(types=10), 3).settings
    assert NodeClassifier(ring(types=10), num_steps=3).config.path_mean_size == 0


def test_the_share_of_labels_is_that_among_nodes_of_their_types():
    types = np.repeat([0, 1], 50)
    assert "model.skip_connection" in recommended(ring(train=15, node_type=types)).settings  # 30 % of the first type
    assert "model.skip_connection" not in recommended(ring(train=15)).settings


def test_only_what_is_possible_is_chosen():
    several = recommended(labelled_graphs()).settings
    assert "model.label_spreading" not in several and "training.consistency" not in several
    numbers = recommended(heights()).settings
    assert "model.label_spreading" not in numbers and numbers["model.skip_connection"]
    assert "model.input_noise" not in recommended(ring(features=3)).settings
    assert recommended(likes()).settings == {}


def test_what_is_given_is_never_changed():
    config = Config.model_validate({"data": {"name": "digits"}, "model": {"input_noise": 0.0}, "training": {"patience": 3}})
    suited = config.for_data(ring())
    assert (suited.model.input_noise, suited.training.patience, suited.model.skip_connection) == (0.0, 3, True)
    assert not any("input_noise" in choice or "patience" in choice for choice in suited.choices)
    again = suited.with_settings({"model.skip_connection": False}).for_data(ring(train=5))
    assert again == suited.with_settings({"model.skip_connection": False}) and again.model.dropout == 0.5
    model = NodeClassifier(ring(), input_noise=0.1)
    assert (model.config.input_noise, model.config.skip_connection) == (0.1, True)


def test_recipes_do_not_follow_from_data():
    for name in ("cora", "citeseer-default", "ppi", "digits"):
        assert recipe(name).for_data(ring()) == recipe(name) and recipe(name).for_data(ring()).choices == ()


def test_every_choice_has_its_reason_and_stands_in_the_run(tmp_path):
    config = Config.model_validate({"data": {"name": "digits"}, "training": {"epochs": 1}})
    (run,) = fit_many(config, [0], dataset=ring(), folder=tmp_path / "run", device="cpu")
    assert "skip_connection: true, output_norm: true" in run.config.choices[0]
    assert "since 60 % of the nodes are labelled" in run.config.choices[0]
    written = tmp_path.joinpath("run/config.yaml").read_text()
    assert "skip_connection: true" in written and "input_noise: 0.2" in written


def test_a_data_set_without_types_or_labels_to_learn_from_has_none():
    assert recommended(camps().with_splits({"valid": np.arange(3)})).settings == {}
