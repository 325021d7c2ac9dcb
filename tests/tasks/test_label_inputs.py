"""Known labels as inputs: they help, and a node's own label never reaches what is predicted of it."""

import numpy as np
import pytest
import torch

import gatas
from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.graph import Graph
from gatas.inference.explanation import Answer
from gatas.ops.random import NoiseSource
from tests.tasks.toys import SMALL, camps, classifier, labelled_graphs, likes, predictor

LABELS = {"label_inputs": True, "num_steps": 3, "sample_size": 100, "dropout": 0.0, "input_noise": 0.0}


def tangled(seed=0, multi_label=False):
    """Cycles, repeated and self edges of three types over twelve nodes: every way there can be for a label to come home."""
    generator = np.random.default_rng(seed)
    source, target, kind = generator.integers(0, 12, 40), generator.integers(0, 12, 40), generator.integers(0, 3, 40)
    graph = Graph.from_edges(source, target, kind, num_nodes=12, inverse=True)
    labels = generator.integers(0, 2, (12, 3)) if multi_label else generator.integers(0, 3, 12)
    features = generator.normal(size=(12, 4)).astype(np.float32)
    splits = {"train": np.arange(9), "valid": np.arange(9, 11), "test": np.arange(11, 12)}
    return Dataset.for_nodes(graph, labels, splits, class_names=("a", "b", "c"), features=features, name="tangled")


def relabelled(model, node):
    """Give a node another label."""
    model.labels[node] = 1 - model.labels[node] if model.labels.ndim == 2 else (model.labels[node] + 1) % 3


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("path_mean_size", [0, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_label_never_reaches_its_own_node(seed, training, multi_label, path_mean_size):
    dataset = tangled(seed, multi_label)
    settings = {**LABELS, "num_steps": 2 if path_mean_size else 3, "path_mean_size": path_mean_size}
    model = classifier(dataset, seed=seed, **settings, label_dropout=0.2 if training else 0.0).train(training)
    if path_mean_size:  # labels at the end of paths count from the start, and those that attention sees do not
        torch.nn.init.normal_(model.encoder.means.label_weight)
        torch.nn.init.zeros_(model.encoder.labels.embeddings.weight)
    nodes, draw = torch.arange(12), torch.tensor(1)

    def logits():
        model.encoder.passes.zero_()
        return model(nodes, draw=draw, mode="all").detach()

    before, changed = logits(), np.zeros((12, 12), bool)
    for node in range(9):
        relabelled(model, node)
        changed[node] = (logits() != before).any(1)
        relabelled(model, node)
        if not multi_label:
            relabelled(model, node)  # three classes: around once more
        assert torch.equal(logits(), before)
    assert not changed.diagonal().any()
    assert changed.sum() > 20  # and does reach others, or nothing was tested


def test_a_label_never_reaches_answers_about_its_own_node():
    dataset = camps()
    run = gatas.fit(classifier(dataset, seed=0, **LABELS), dataset, seed=0, device="cpu", epochs=2)
    asked = [3, int(dataset.graph.neighbour[dataset.graph.indptr[3]])]  # and a neighbour
    before = run.predictor.predict(asked).probabilities
    other = Dataset.for_nodes(
        dataset.graph,
        np.where(np.arange(30) == 3, 1 - np.asarray(dataset.targets.labels), dataset.targets.labels),
        dict(dataset.targets.splits),
        class_names=dataset.names,
        features=dataset.features,
        name="camps",
    )
    model = classifier(other, seed=0, **LABELS)
    model.load_state_dict(run.predictor.model.state_dict())
    model.temperature = run.predictor.temperature
    after = gatas.Predictor(model, other, mode="sample").predict(asked).probabilities
    assert np.array_equal(after[0], before[0]) and not np.array_equal(after[1], before[1])


@pytest.mark.parametrize("make", [camps, labelled_graphs])
def test_only_labels_of_training_nodes_are_inputs(make):
    dataset = make()
    model = classifier(dataset, **LABELS)
    known = model.labels >= 0 if model.labels.ndim == 1 else model.labels.any(1)
    others = np.setdiff1d(np.arange(dataset.graph.num_nodes), dataset.targets.splits["train"])
    assert known.any() and not known[torch.from_numpy(others)].any()


def test_labels_help_where_features_say_nothing():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 120)
    friends = np.concatenate([generator.choice(np.flatnonzero(labels == own), 4) for own in labels])
    graph = Graph.from_edges(np.repeat(np.arange(120), 4), friends, num_nodes=120, undirected=True)
    splits = {"train": np.arange(60), "valid": np.arange(60, 90), "test": np.arange(90, 120)}
    features = generator.normal(size=(120, 3)).astype(np.float32)
    dataset = Dataset.for_nodes(graph, labels, splits, class_names=("a", "b"), features=features, name="friends")
    accuracy = {}
    for given in (False, True):
        model = classifier(dataset, seed=0, label_inputs=given, num_steps=1, node_embedding_size=0)
        run = gatas.fit(model, dataset, seed=0, device="cpu", epochs=15, learning_rate=0.02, batch_size=20)
        accuracy[given] = run.metrics["test"]["accuracy"]
    assert accuracy[True] > 0.9 > accuracy[False]


def test_some_labels_are_hidden_in_training_and_none_in_evaluation():
    model, asked = classifier(camps(), **{**LABELS, "label_dropout": 0.5}), (torch.arange(30), torch.ones(30).long())

    def added(training):
        noise = NoiseSource(torch.tensor(0), torch.tensor(0))
        return model.encoder.labels.train(training)(*asked, model.labels, noise).abs().sum(1) > 0

    assert added(False).sum() == 10
    assert 0 < added(True).sum() < 10 and not (added(True) & ~added(False)).any()


def test_new_nodes_have_no_labels_and_see_those_of_others():
    dataset = camps()
    run = gatas.fit(classifier(dataset, seed=0, **LABELS), dataset, seed=0, device="cpu", epochs=2)
    extended = run.predictor.with_new_nodes(np.zeros((1, 5), np.float32), ([30], [3]))
    assert np.isfinite(extended.predict([30]).probabilities).all()


def test_links_have_no_labels():
    with pytest.raises(ConfigError, match=r"label_inputs is true, but .* is for link prediction"):
        predictor(likes(), label_inputs=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"skip_connection": True},
        {"output_norm": True},
        {"skip_connection": True, "output_norm": True},
        {"path_mean_size": 4, "learning_rate": 0.05},
    ],
)
def test_explanations_are_of_what_is_predicted(settings):
    dataset, training = camps(), {"learning_rate": settings.pop("learning_rate", 0.005), "epochs": 2}
    model = classifier(dataset, seed=0, **{**SMALL, **settings, **LABELS})
    run = gatas.fit(model, dataset, seed=0, device="cpu", **training)
    found = run.predictor.explain(3, mode="all")
    probability = gatas.Predictor(run.predictor.model, dataset, mode="all").predict([3]).probabilities[0]
    assert isinstance(found.answer, Answer)
    assert found.answer.probability == pytest.approx(float(probability.max()), abs=1e-6)
