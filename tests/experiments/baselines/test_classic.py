"""Layers with norm and residual against their formula, on a small graph as a dense matrix."""

import pytest
import torch
from torch.nn import functional as F

from gatas.experiments.baselines import PEERS
from tests.tasks.toys import camps

NAMES = ("mlp-norm", "gcn-norm", "sage-norm", "gat-norm")


def made(name, **settings):
    return PEERS[name](camps(), **{"num_layers": 2, "hidden_size": 6, "dropout": 0.0, **settings}).eval()


def dense(model):
    """(N, N) the values of edges, 1 where there are none, in the rows of the nodes that look."""
    matrix = torch.zeros(30, 30)
    matrix[model.edges[1], model.edges[0]] = 1.0 if model.edge_values is None else model.edge_values
    return matrix


def seen(name, model, layer, x):
    """What a layer makes of all nodes, by dense matrices."""
    beside = dense(model)
    if name == "mlp-norm":
        return F.linear(x, layer.weight, layer.bias)
    if name == "gcn-norm":
        return beside @ F.linear(x, layer.lin.weight) + layer.bias
    if name == "sage-norm":
        means = beside @ x / beside.sum(1, keepdim=True).clamp_min(1)
        return F.linear(means, layer.lin_l.weight, layer.lin_l.bias) + F.linear(x, layer.lin_r.weight)
    sent = F.linear(x, layer.lin.weight)
    scores = F.leaky_relu((sent * layer.att_dst[0]).sum(1)[:, None] + (sent * layer.att_src[0]).sum(1)[None], 0.2)
    return scores.masked_fill(beside == 0, -torch.inf).softmax(1) @ sent


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_is_norm_of_neighbours_and_shortcut(name):
    model = made(name)
    x = model.features
    for number, layer in enumerate(model.layers):
        x = F.relu(F.layer_norm(seen(name, model, layer, x) + model.shortcuts[number](x), (6,)))
    torch.testing.assert_close(model(torch.arange(30)), model.last(x), rtol=1e-4, atol=1e-5)


def test_self_loops_are_in_the_convolution_of_gcn_and_the_attention_of_gat():
    for name in ("gcn-norm", "gat-norm"):
        assert (dense(made(name)).diagonal() > 0).all()


def test_norm_and_residual_can_be_left_out():
    model = made("gcn-norm", norm="none", residual=False)
    assert not model.shortcuts
    x = model.features
    for layer in model.layers:
        x = F.relu(seen("gcn-norm", model, layer, x))
    torch.testing.assert_close(model(torch.arange(30)), model.last(x), rtol=1e-4, atol=1e-5)


def test_batch_norm_takes_the_statistics_of_all_nodes_in_evaluation_too():
    model = made("gcn-norm", norm="batch", num_layers=1)
    (layer,), (norm,) = model.layers, model.norms
    out = seen("gcn-norm", model, layer, model.features) + model.shortcuts[0](model.features)
    expected = (out - out.mean(0)) / (out.var(0, unbiased=False) + norm.eps).sqrt()
    torch.testing.assert_close(model(torch.arange(30)), model.last(F.relu(expected)), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.train()(torch.arange(30)), model.eval()(torch.arange(30)))


def test_heads_stand_side_by_side():
    model = made("gat-norm", num_heads=3)
    assert [(layer.heads, layer.out_channels) for layer in model.layers] == [(3, 2), (3, 2)]
    assert model(torch.arange(4)).shape == (4, 2)


def test_a_perceptron_looks_at_no_neighbours():
    model = made("mlp-norm")
    before = model(torch.arange(5))
    model.features[5:] = 0
    assert torch.equal(model(torch.arange(5)), before)
