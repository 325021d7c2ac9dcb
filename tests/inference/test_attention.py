"""Attention weights, as read from a model."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gatas.datasets import Dataset, Pairs
from gatas.graph import Graph
from gatas.inference import Predictor, attention, shares_by_path
from gatas.tasks import LinkPredictor, NodeClassifier
from gatas.transitions.paths import path_of


@pytest.fixture(scope="module")
def family():
    #   0 ─parent→ 1 ─parent→ 2      0 ─parent→ 3 ─parent→ 2
    graph = Graph.from_edges([0, 1, 0, 3], [1, 2, 3, 2], num_nodes=4, edge_type_names=["parent"], inverse=True)
    pairs = Pairs(np.array([0, 0]), np.array([0, 0]), np.array([2, 1]), np.array([1, 0], np.int8))
    return Dataset.for_links(graph, {"train": pairs, "test": pairs}, ("grandparent",), name="family")


@pytest.fixture(scope="module")
def nodes():
    generator = np.random.default_rng(0)
    graph = Graph.from_edges(*generator.integers(20, size=(2, 60)), num_nodes=20)
    features, labels = generator.normal(size=(20, 6)).astype(np.float32), np.arange(20) % 3
    splits = {"train": np.arange(20)}
    return Dataset.for_nodes(graph, labels, splits, class_names=("a", "b", "c"), features=features, name="nodes")


def predictor_of(dataset, **settings):
    kind = LinkPredictor if dataset.task == "link prediction" else NodeClassifier
    alone: Any = {"skip_connection": False, "output_norm": False, "path_mean_size": 0}  # nothing stands beside attention
    model = kind(dataset, num_steps=2, sample_size=4, num_heads=3, head_size=5, neighbour_size=6, **alone, **settings)
    with torch.no_grad():  # attention begins at the prior, which would hide mistakes
        model.encoder.neighbours.score.mul_(20)
    return Predictor(model, dataset)


@pytest.mark.parametrize("settings", [{}, {"path_attention": "mlp"}, {"path_attention": "none"}, {"dropout": 0.5}], ids=str)
@pytest.mark.parametrize("mode", ["sample", "all"])
def test_weights_add_up_to_1_and_make_the_representation(nodes, settings, mode):
    predictor, targets = predictor_of(nodes, **settings), torch.tensor([3, 0, 3, 19])
    model = predictor.model
    found = attention(predictor, targets, mode=mode, draw=7)
    torch.testing.assert_close(found.weights.sum(1), torch.ones(4, 3))
    assert not found.weights[~found.neighbourhood.mask].any()

    seen = []
    hook = model.encoder.neighbours.register_forward_pre_hook(lambda _, given: seen.append(given))
    expected = model.represent(targets, draw=torch.tensor(7), mode=mode)
    hook.remove()
    _, neighbours, index, *_ = seen[0]
    index = torch.arange(len(neighbours)).view_as(found.neighbourhood.node) if index is None else index
    values = F.elu(model.encoder.neighbours.value(neighbours)).view(-1, 3, 5)[index]  # (B, S, K, F'')
    mixed = F.elu(torch.einsum("bsk,bskf->bkf", found.weights, values)).flatten(1)
    torch.testing.assert_close(mixed, expected, atol=1e-5, rtol=0)


def test_shares_are_those_of_the_paths_that_lead_to_the_other_node(family):
    found = attention(predictor_of(family), torch.tensor([0, 1]))
    shares = shares_by_path(found, torch.tensor([2, 2]))
    assert set(shares) == {path_of([1, 1], 3), path_of([1], 3)}  # parent → parent from 0, parent from 1
    own = found.neighbourhood
    wanted = (own.node == 2) & own.mask
    total = (found.weights.mean(-1) * wanted).sum() / 2
    assert sum(share for share, _ in shares.values()) == pytest.approx(total.item())


def test_attention_is_the_prior_where_nothing_is_scored(family):
    predictor = predictor_of(family)
    with torch.no_grad():
        predictor.model.encoder.neighbours.score.zero_()
    found = attention(predictor, torch.tensor([0, 2]))
    torch.testing.assert_close(found.shares, found.prior)


def test_looking_changes_nothing(family):
    predictor = predictor_of(family)
    model = predictor.model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    attention(predictor, torch.tensor([0]))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
