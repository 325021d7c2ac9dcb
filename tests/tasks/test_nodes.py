"""Node classification: losses beside torch's, and what a split of it measures."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pytest import approx
from torch.nn import functional as F

from gatas.datasets import Dataset, NodeTable
from gatas.errors import ConfigError, GatasError
from gatas.graph import Graph
from gatas.ops.random import NoiseSource
from gatas.tasks import NodeTask
from gatas.tasks.consistency import Consistency
from tests.tasks.toys import camps, classifier, labelled_graphs, likes


def batch_with_padding(num_classes):
    target, weight = torch.tensor([4, 2, 7, 4, 4]), torch.tensor([1.0, 1, 1, 0, 0])
    return torch.randn(5, num_classes, generator=torch.Generator().manual_seed(0)), target, weight


def test_the_loss_is_torchs_over_nodes_that_count():
    dataset = camps()
    logits, target, weight = batch_with_padding(num_classes=2)
    loss = NodeTask(dataset, 5).loss(logits, target=target, weight=weight)
    assert loss.item() == approx(F.cross_entropy(logits[:3], torch.tensor(dataset.node_targets.labels)[target[:3]]).item())


def test_the_loss_of_several_labels_is_torchs_over_nodes_that_count():
    dataset = labelled_graphs()
    logits, target, weight = batch_with_padding(num_classes=3)
    loss = NodeTask(dataset, 5).loss(logits, target=target, weight=weight)
    expected = F.binary_cross_entropy_with_logits(logits[:3], torch.tensor(dataset.node_targets.labels)[target[:3]].float())
    assert loss.item() == approx(expected.item())


@pytest.mark.parametrize("dataset", [camps(), labelled_graphs()])
def test_what_is_monitored_is_what_is_measured(dataset):
    task = NodeTask(dataset, 4)
    logits = torch.randn(2, len(dataset.splits["valid"]), len(dataset.names), generator=torch.Generator().manual_seed(1))
    monitored, measured = task.monitor(logits, "valid"), [task.measure(own, "valid") for own in logits]
    for name in ("loss", task.metric):
        assert monitored[name].tolist() == approx([own[name] for own in measured])


def test_results_are_compared_with_labels_in_the_order_of_nodes():
    dataset = camps().with_splits({"test": np.array([9, 2, 5])})
    right = F.one_hot(torch.tensor(dataset.node_targets.labels[[2, 5, 9]])).float()
    assert NodeTask(dataset, 4).measure(right, "test")["accuracy"] == 1


def test_the_mean_over_draws_is_of_probabilities():
    logits = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(2))
    single = NodeTask(camps(), 4).mean_logits(logits)
    torch.testing.assert_close(single.softmax(-1), logits.softmax(-1).mean(0))
    several = NodeTask(labelled_graphs(), 4).mean_logits(logits)
    torch.testing.assert_close(several.sigmoid(), logits.sigmoid().mean(0))


def test_the_mean_of_certain_draws_is_a_number():
    several = NodeTask(labelled_graphs(), 4).mean_logits(torch.tensor([[[200.0, -200]], [[150, -150]]]))
    assert torch.isfinite(several).all() and (several[0, 0] > 100) and (several[0, 1] < -100)


def test_links_are_no_nodes_to_classify():
    with pytest.raises(GatasError, match="likes is for link prediction; a NodeClassifier needs labelled nodes"):
        NodeTask(likes(), 4)


def test_weights_are_a_function_of_the_seed():
    one, same, other = (classifier(camps(), seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.output.weight"], other["head.output.weight"])


def test_a_model_leaves_torchs_own_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    classifier(camps(), seed=9)
    assert torch.equal(torch.rand(3), expected)


def test_a_model_without_features_learns_embeddings_of_the_nodes():
    dataset = replace(camps(), nodes=NodeTable(30))
    assert classifier(dataset, node_embedding_size=None).encoder.inputs.size == 50
    assert classifier(camps(), node_embedding_size=None).encoder.inputs.size == 8


def test_l2_leaves_depth_and_relations_alone():
    model = classifier(camps())
    left = {name for name, _ in model.named_parameters() if not model.l2_share(name)}
    assert left == {"sampler.depth_logits", "encoder.steps.relation_embeddings.weight"}


def test_transitions_of_other_steps_are_refused():
    given = classifier(camps(), num_steps=1).transitions
    with pytest.raises(ConfigError, match="transitions of 1 steps were given; the model takes 2"):
        classifier(camps(), transitions=given)


def test_agreement_is_of_what_draws_say_and_pulls_towards_their_sharpened_mean():
    consistency = Consistency(weight=2.0, draws=2, nodes=0, temperature=0.5)
    same = torch.tensor([[[0.0, 0.0]], [[0.0, 0.0]]])
    assert consistency.loss(same, torch.ones(1)) == 0  # evenly unsure, and so is the mean, however sharp
    apart = torch.tensor([[[20.0, 0.0]], [[0.0, 20.0]]])  # each certain, of different classes: both 1/2 from the mean
    torch.testing.assert_close(consistency.loss(apart, torch.ones(1)), torch.tensor(2 * 0.5))
    unsure = torch.tensor([[[0.6, 0.4]], [[0.6, 0.4]]]).log().requires_grad_()
    consistency.loss(unsure, torch.ones(1)).backward()
    assert unsure.grad is not None and unsure.grad[0, 0, 0] < 0  # the likelier class is to become likelier still


def test_a_step_looks_at_nodes_without_their_labels():
    dataset = camps()
    task = NodeTask(dataset, 100, consistency=Consistency(1.0, 2, 4, 0.5))
    batch = task.epoch(0, 0).columns
    known = np.isin(batch["target"], dataset.splits["train"])
    assert (batch["known"] == known).all() and (~known).sum() == 4
    others = [set(task.epoch(0, number).columns["target"][0][-4:]) for number in range(5)]
    assert len({frozenset(own) for own in others}) > 1


def test_agreement_is_refused_where_it_has_no_meaning():
    with pytest.raises(ConfigError, match="consistency"):
        NodeTask(labelled_graphs(), 5, consistency=Consistency(1.0, 2, 4, 0.5))


def typed(features):
    """Six nodes of two types in a ring."""
    return Dataset.for_nodes(
        Graph.from_edges(np.arange(6), [1, 2, 3, 4, 5, 0]),
        np.array([0, 1] * 3),
        {"train": np.arange(6)},
        class_names=("x", "y"),
        features=np.array(features, np.float32),
        node_type=[0, 0, 0, 1, 1, 1],
        node_type_names=("a", "b"),
        name="typed",
    )


@pytest.mark.parametrize(
    ("features", "learned"),
    [
        ([[1.0], [2.0], [3.0], [0.0], [0.0], [0.0]], True),
        ([[1.0], [2.0], [3.0], [0.0], [4.0], [0.0]], False),  # one of them has
    ],
)
def test_nodes_are_learned_where_a_type_has_no_features(features, learned):
    assert (classifier(typed(features)).encoder.inputs.embeddings is not None) == learned
    assert classifier(typed(features), node_embedding_size=0).encoder.inputs.embeddings is None


def test_a_single_feature_is_not_normalised_away():
    dataset = typed([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
    nodes = torch.arange(6)

    def inputs(**settings):
        model = classifier(dataset, **settings).eval()
        return model.encoder.inputs(nodes, model.features, NoiseSource(torch.tensor(0), torch.tensor(0)))

    assert len(inputs().unique(dim=0)) == 6
    assert len(inputs(layer_norm=True).unique(dim=0)) == 1
