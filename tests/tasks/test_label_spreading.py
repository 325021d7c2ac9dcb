"""Labels spread over the graph: as far as they reach, as much as validation data wants, and never back to their own node."""

import json
from typing import Any

import numpy as np
import pytest
import torch

import gatas
from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.graph import Graph
from gatas.inference.explanation import Answer
from gatas.tasks.label_spreading import (
    FITTED_NODES,
    SMOOTHING,
    STRENGTHS,
    fit_spreading,
    normalised_adjacency,
    spread_labels,
    spread_over,
    spreading_matrices,
)
from gatas.training.config import Config
from gatas.training.evaluation import evaluate, evaluate_run
from gatas.training.loop import make_model
from tests.tasks.test_label_inputs import tangled
from tests.tasks.toys import SMALL, camps, classifier, heights, labelled_graphs, likes, predictor, regressor, thirds

SPREAD: dict[str, Any] = {"label_spreading": True}


def dense(graph):
    """S by its definition, entry by entry."""
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    for node in range(graph.num_nodes):
        for edge in range(graph.indptr[node], graph.indptr[node + 1]):
            other, weight = graph.neighbour[edge], 1.0 if graph.weight is None else graph.weight[edge]
            if other != node:
                adjacency[node, other] = max(adjacency[node, other], weight)
                adjacency[other, node] = max(adjacency[other, node], weight)
    degree = adjacency.sum(1)
    return adjacency / np.sqrt(np.outer(np.where(degree, degree, 1), np.where(degree, degree, 1)))


def chain(labels=("a", "", "", "", "b", "", ""), edges=((0, 1), (1, 2), (2, 3), (3, 4), (5, 6))):
    """A chain with a label at either end, and two nodes apart from it that no label reaches."""
    source, target = np.array(edges).T
    graph = Graph.from_edges(source, target, num_nodes=len(labels), undirected=True)
    train = [node for node, label in enumerate(labels) if label]
    others = [node for node, label in enumerate(labels) if not label]
    numbers = np.array(["ab".index(label) for label in labels])
    splits = {"train": np.array(train), "valid": np.array(others)}
    return Dataset.for_nodes(graph, numbers, splits, class_names=("a", "b"), name="chain")


def paths_of_friends(length=12, count=8, seed=0):
    """Chains of one class each, of whose nodes the first alone has a label: far more steps away than any neighbourhood sees."""
    node = np.arange(length * count)
    start = node[node % length != length - 1]
    graph = Graph.from_edges(start, start + 1, num_nodes=len(node), undirected=True)
    valid = node[(node % length) % 2 == 1]
    splits = {"train": node[::length], "valid": valid, "test": node[(node % length != 0) & (node % 2 == 0)]}
    features = np.random.default_rng(seed).normal(size=(len(node), 3)).astype(np.float32)
    return Dataset.for_nodes(graph, node // length % 2, splits, class_names=("a", "b"), features=features, name="chains")


def weights_of(run):
    return run.predictor.model.spreading_weights


def mixed(seed=0):
    """Three classes, and friends that are of one's own class more often than not."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, 90)
    own = [generator.choice(np.flatnonzero(labels == label), 2) for label in labels]
    friends = np.concatenate([np.append(friends, generator.integers(0, 90)) for friends in own])
    graph = Graph.from_edges(np.repeat(np.arange(90), 3), friends, num_nodes=90, undirected=True)
    features = generator.normal(size=(90, 3)).astype(np.float32)
    return Dataset.for_nodes(graph, labels, thirds(90), class_names=("a", "b", "c"), features=features, name="mixed")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_labels_are_spread_as_a_dense_solution_says(strength, weighted):
    generator = np.random.default_rng(0)
    source, target, kind = generator.integers(0, 12, 30), generator.integers(0, 12, 30), generator.integers(0, 3, 30)
    keep = np.unique(np.stack([source, target]), axis=1, return_index=True)[1] if weighted else np.arange(30)
    weight = generator.random(30).astype(np.float32) + 0.1
    graph = Graph.from_edges(
        source[keep], target[keep], kind[keep], num_nodes=12, weight=weight[keep] if weighted else None
    )  # fmt: skip
    start = np.eye(12, 3, dtype=np.float32)
    (found,) = spread_over(normalised_adjacency(graph), start, [strength], iterations=3000)
    wanted = np.linalg.solve(np.eye(12) - strength * dense(graph), (1 - strength) * start)
    np.testing.assert_allclose(normalised_adjacency(graph).toarray(), dense(graph), atol=1e-6)
    np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_strengths_that_share_their_products_give_what_each_gives_by_iterations():
    generator = np.random.default_rng(0)
    matrix = normalised_adjacency(Graph.from_edges(generator.integers(0, 9, 20), generator.integers(0, 9, 20), num_nodes=9))
    start = generator.random((9, 2)).astype(np.float32)
    for strength, found in zip(STRENGTHS, spread_over(matrix, start, STRENGTHS, iterations=7), strict=True):
        wanted = start
        for _ in range(7):
            wanted = strength * (matrix @ wanted) + (1 - strength) * start
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_edges_of_one_type_are_spread_over_in_one_way_and_of_several_in_three():
    assert len(spreading_matrices(chain().graph)) == 1
    assert len(spread_labels(chain())) == len(STRENGTHS)
    assert len(spreading_matrices(tangled(0).graph)) == 3
    assert len(spread_labels(tangled(0))) == 3 * len(STRENGTHS)


def test_a_hub_shares_what_it_has_and_types_of_edges_count_alike():
    #   0 has edges of type 0 to 1 (weight 1) and 2 (weight 3), and one of type 1 to 3 (weight 10); 4 is apart
    weight = np.array([1, 3, 10], np.float32)
    graph = Graph.from_edges(
        np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([0, 0, 1]), num_nodes=5, weight=weight, undirected=True
    )
    _, shared, alike = (matrix.toarray() for matrix in spreading_matrices(graph))
    np.testing.assert_allclose(shared[1:, 0], [1 / 14, 3 / 14, 10 / 14, 0], rtol=1e-6)  # what the hub gives to each
    np.testing.assert_allclose(shared[0], [0, 1, 1, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(alike[0], [0, 1 / 8, 3 / 8, 1 / 2, 0], rtol=1e-6)  # half from either type
    np.testing.assert_allclose(alike[1:4, 0], 1, rtol=1e-6)
    assert not alike[4].any() and not shared[:, 4].any()


def test_weights_of_a_run_that_spread_labels_in_one_way_give_what_they_gave():
    asked: dict[str, Any] = {"draw": torch.tensor(-1), "mode": "all"}
    model, nodes = classifier(tangled(0), seed=0, **SPREAD).eval(), torch.arange(12)
    before = torch.tensor([0.5, 1.0, 2.0])
    wanted = model(nodes, **asked) + (before.view(3, 1, 1) * model.spread[:3, nodes]).sum(0)
    model.load_state_dict({**model.state_dict(), "spreading_weights": before})
    torch.testing.assert_close(model(nodes, **asked), wanted)


def test_self_edges_spread_nothing():
    graph = Graph.from_edges(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 0, 1]), num_nodes=2)
    for matrix in spreading_matrices(graph):
        np.testing.assert_allclose(matrix.toarray(), [[0, 1], [1, 0]], rtol=1e-6)


def test_evidence_is_the_log_of_shares_and_nothing_where_no_label_reaches():
    dataset = chain()
    spread = spread_labels(dataset).numpy()
    assert spread.shape == (3, 7, 2) and spread.dtype == np.float32
    assert not spread[:, [0, 4]].any() and not spread[:, 5:].any()  # training nodes; nodes apart
    assert (spread[:, 1, 0] > 0.05).all() and (spread[:, 3, 1] > 0.05).all() and abs(spread[:, 2]).max() < 1e-6
    start = np.zeros((7, 2), np.float32)
    start[0, 0] = start[4, 1] = 1
    share = spread_over(normalised_adjacency(dataset.graph), start, [STRENGTHS[1]])[0, 1]
    logarithm = np.log((1 - SMOOTHING) * share / share.sum() + SMOOTHING / 2)
    np.testing.assert_allclose(spread[1, 1], logarithm - logarithm.mean(), rtol=1e-5)


def test_labels_of_validation_and_test_nodes_are_not_looked_at():
    assert torch.equal(spread_labels(chain()), spread_labels(_relabelled(chain(), 2)))


def _relabelled(dataset, node):
    labels = np.array(dataset.targets.labels)
    labels[node] = (labels[node] + 1) % len(dataset.names)
    splits, names = dict(dataset.targets.splits), dataset.names
    return Dataset.for_nodes(
        dataset.graph, labels, splits, class_names=names, features=dataset.features, name=dataset.name
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_a_label_never_reaches_its_own_node(seed):
    nodes, changed = torch.arange(12), np.zeros((9, 12), bool)

    def logits(dataset):
        model = classifier(dataset, seed=seed, **SPREAD).eval()
        model.spreading_weights.copy_(torch.linspace(0.5, 2.0, len(model.spreading_weights)))
        return model(nodes, draw=torch.tensor(-1), mode="all").detach()

    before = logits(tangled(seed))
    for node in range(9):
        changed[node] = (logits(_relabelled(tangled(seed), node)) != before).any(1)
    assert not changed[:, :9].any()  # neither its own nor that of another training node
    assert changed[:, 9:].any()


def test_a_label_never_reaches_answers_about_its_own_node():
    dataset = camps()
    run = gatas.fit(classifier(dataset, seed=0, **SPREAD), dataset, seed=0, device="cpu", epochs=2)
    other = _relabelled(dataset, 3)
    model = classifier(other, seed=0, **SPREAD)
    model.load_state_dict(run.predictor.model.state_dict())
    model.temperature = run.predictor.temperature
    asked = np.arange(30)
    before = run.predictor.predict(asked).probabilities
    after = gatas.Predictor(model, other, mode="sample").predict(asked).probabilities
    assert np.array_equal(after[3], before[3]) and not np.array_equal(after, before)


def test_without_weights_nothing_is_added_and_in_training_never_is():
    dataset = camps()
    asked: dict[str, Any] = {"draw": torch.tensor(1), "mode": "all"}
    with_it, without = (classifier(dataset, seed=0, dropout=0.0, input_noise=0.0, **more) for more in (SPREAD, {}))
    nodes = torch.arange(30)
    assert torch.equal(with_it.eval()(nodes, **asked), without.eval()(nodes, **asked))
    with_it.spreading_weights.fill_(1.0)
    assert not torch.equal(with_it(nodes, **asked), without(nodes, **asked))
    assert torch.equal(with_it.train()(nodes, **asked), without.train()(nodes, **asked))
    with_it.reset(0)
    assert not with_it.spreading_weights.any()


def test_a_model_that_spreads_nothing_has_the_weights_it_always_had():
    assert "spreading_weights" not in classifier(camps()).state_dict()
    names = set(classifier(camps(), **SPREAD).state_dict()) - set(classifier(camps()).state_dict())
    assert names == {"spreading_weights"}


def test_weights_are_the_ones_that_labels_were_drawn_with():
    generator = torch.Generator().manual_seed(0)
    logits, spread = torch.randn(FITTED_NODES, 4, generator=generator), torch.randn(2, FITTED_NODES, 4, generator=generator)
    chance = (0.5 * logits + 1.5 * spread[0]).softmax(-1)  # the second says nothing
    labels = torch.multinomial(chance, 1, generator=generator)[:, 0]
    weights = fit_spreading(logits, spread, labels)
    assert weights[0].item() == pytest.approx(3.0, rel=0.15) and 0 <= weights[1].item() < 0.15
    assert not fit_spreading(logits, -spread[:1], labels).any()  # what speaks against the truth counts nothing
    assert not fit_spreading(logits * torch.nan, spread, labels).any()


def test_labels_help_far_beyond_neighbourhoods():
    dataset, accuracy = paths_of_friends(), {}
    for spreads in (False, True):
        model = classifier(dataset, seed=0, label_spreading=spreads)
        run = gatas.fit(model, dataset, seed=0, device="cpu", epochs=3)
        accuracy[spreads] = run.metrics["test"]["accuracy"]
    assert accuracy[True] == 1.0 > 0.8 > accuracy[False]


@pytest.mark.parametrize("settings", [{}, {"evaluation_draws": 3}, {"ema_decay": 0.9}])
def test_a_run_that_is_saved_answers_as_it_was_measured(tmp_path, settings):
    dataset, nodes = mixed(), np.arange(90)
    model = classifier(dataset, seed=0, **SPREAD)
    run = gatas.fit(model, dataset, seed=0, device="cpu", epochs=3, folder=tmp_path, **settings)
    assert weights_of(run).any()
    own, loaded = run.predictor.predict(nodes), gatas.load(tmp_path, device="cpu").predict(nodes)
    np.testing.assert_array_equal(loaded.probabilities, own.probabilities)
    for split in ("valid", "test"):
        again = evaluate_run(tmp_path, split, device="cpu")
        assert again["loss"] == pytest.approx(run.metrics[split]["loss"], rel=1e-5) and again["loss"] > 0.1
        assert again["by_class"] == run.metrics[split]["by_class"]
        given = {name: value for name, value in settings.items() if name == "evaluation_draws"}
        assert evaluate(run.predictor.model, dataset, split, device="cpu", **given)["loss"] == pytest.approx(again["loss"])
    found = gatas.load(tmp_path, device="cpu").predict(dataset.targets.splits["test"])
    truth = [dataset.names[label] for label in dataset.targets.labels[dataset.targets.splits["test"]]]
    assert np.mean(np.array(found.labels) == truth) == pytest.approx(run.metrics["test"]["accuracy"])
    assert run.predictor.fingerprint == gatas.load(tmp_path, device="cpu").fingerprint


def test_a_training_is_judged_by_the_encoder_alone_and_measured_with_spread_labels():
    dataset = paths_of_friends()
    run = gatas.fit(classifier(dataset, seed=0, **SPREAD), dataset, seed=0, device="cpu", epochs=6)
    best, model = run.history[run.metrics["best_epoch"]], run.predictor.model
    assert run.metrics["valid"]["loss"] < 0.5 < best["valid_loss"] and weights_of(run).any()
    assert evaluate(model, dataset, "valid", device="cpu")["loss"] == pytest.approx(run.metrics["valid"]["loss"], rel=1e-5)
    weights_of(run).zero_()
    assert evaluate(model, dataset, "valid", device="cpu")["loss"] == pytest.approx(best["valid_loss"], rel=1e-5)


def test_the_same_epoch_is_the_best_with_spread_labels_and_without():
    dataset = camps()
    with_it, without = (
        gatas.fit(classifier(dataset, seed=0, **more), dataset, seed=0, device="cpu", epochs=6) for more in (SPREAD, {})
    )
    assert [entry["valid_loss"] for entry in with_it.history] == [entry["valid_loss"] for entry in without.history]
    assert with_it.metrics["best_epoch"] == without.metrics["best_epoch"]


def test_seeds_side_by_side_share_what_is_spread_and_fit_their_own_weights():
    dataset = camps()
    settings: dict[str, Any] = {"epochs": 4, "batch_size": 5, "learning_rate": 0.01}
    config = Config.model_validate({"model": {**SMALL, **SPREAD}, "training": settings})
    first, second = make_model(dataset, config, 0), make_model(dataset, config, 1)
    assert first.spread is second.spread
    runs = gatas.fit_many(config, [7, 0, 3], dataset=dataset)
    for run in runs:
        alone = gatas.fit(classifier(dataset, **SPREAD), dataset, seed=run.seed, **settings)
        torch.testing.assert_close(run.model.spreading_weights, alone.model.spreading_weights, rtol=2e-2, atol=1e-3)
        assert run.metrics["valid"]["loss"] == pytest.approx(alone.metrics["valid"]["loss"], rel=1e-3)
    assert len({run.model.spreading_weights.sum().item() for run in runs}) == 3


def test_a_training_that_goes_on_ends_as_one_that_was_not_interrupted(tmp_path):
    dataset = camps()
    settings: dict[str, Any] = {"seed": 1, "device": "cpu", "batch_size": 4, "patience": 100}
    whole = gatas.fit(classifier(dataset, **SPREAD), dataset, epochs=5, **settings)
    gatas.fit(classifier(dataset, **SPREAD), dataset, epochs=2, folder=tmp_path, **settings)
    resumed = gatas.fit(classifier(dataset, **SPREAD), dataset, epochs=5, folder=tmp_path, **settings)
    ours, theirs = (run.predictor.model.state_dict() for run in (resumed, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert resumed.metrics == whole.metrics


def test_new_nodes_are_answered_by_their_neighbourhoods_alone():
    dataset = camps()
    run = gatas.fit(classifier(dataset, seed=0, **SPREAD), dataset, seed=0, device="cpu", epochs=2)
    features, edges = np.zeros((1, 5), np.float32), ([30], [3])
    before = run.predictor.with_new_nodes(features, edges).predict([30, 25]).probabilities
    weights_of(run).add_(1.0)
    after = run.predictor.with_new_nodes(features, edges).predict([30, 25]).probabilities
    assert np.array_equal(before[0], after[0]) and not np.array_equal(before[1], after[1])


@pytest.mark.parametrize("node", [0, 13, 25])
def test_explanations_add_up_to_what_is_predicted(node):
    dataset = paths_of_friends()
    run = gatas.fit(classifier(dataset, seed=0, **SPREAD), dataset, seed=0, device="cpu", epochs=2)
    found = gatas.Predictor(run.predictor.model, dataset, mode="all").explain(node, answer="b")
    probability = gatas.Predictor(run.predictor.model, dataset, mode="all").predict([node]).probabilities[0, 1]
    part = found.label_spreading
    assert isinstance(found.answer, Answer) and part is not None
    assert found.answer.probability == pytest.approx(float(probability), abs=1e-6)
    assert part.without + part.effect == pytest.approx(found.answer.log_odds, rel=1e-12)
    weights_of(run).zero_()
    without = gatas.Predictor(run.predictor.model, dataset, mode="all").explain(node, answer="b")
    assert without.answer.log_odds == pytest.approx(part.without, rel=1e-12)
    assert (part.effect == 0) == (node == 0)  # a training node
    assert json.loads(json.dumps(found.to_dict()))["label_spreading"] == {"without": part.without, "effect": part.effect}
    assert f"spread labels: {part.effect:+.3f} log-odds" in repr(found)


def test_an_explanation_without_it_says_so():
    dataset = camps()
    run = gatas.fit(classifier(dataset), dataset, seed=0, device="cpu", epochs=1)
    assert run.predictor.explain(25).to_dict()["label_spreading"] is None


def test_what_cannot_be_spread_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"label_spreading is true, but likes is for link prediction: it is for nodes with one"
    ):
        predictor(likes(), **SPREAD)
    with pytest.raises(ConfigError, match="but rings is for multi-label node classification"):
        classifier(labelled_graphs(), **SPREAD)
    with pytest.raises(ConfigError, match="but heights is for node regression"):
        regressor(heights(), **SPREAD)
    camps().save(tmp_path / "camps")
    with pytest.raises(ConfigError, match=r"but camps is mapped from a store: labels are spread in memory\. Set it to false"):
        classifier(Dataset.open(tmp_path / "camps"), **SPREAD)
