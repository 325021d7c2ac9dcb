"""Sparse features give what dense ones give, and only their rows are ever made dense."""

import pytest
import torch

from gatas.nn import Encoder
from gatas.nn.inputs import Inputs
from gatas.nn.sparse_rows import dense_rows, join_rows, select_rows, sparse_form, sparse_tensor
from gatas.ops.random import NoiseSource

NOISE = NoiseSource(torch.tensor(5), torch.tensor(3))
NODES = torch.tensor([7, 2, 2, 0, 11])


def features(dtype=torch.float64):
    given = torch.randn(12, 30, generator=torch.Generator().manual_seed(0), dtype=dtype)
    given[given.abs() < 1] = 0
    given[2] = 0  # a node without any
    return given


def as_sparse(given, index=torch.int64):
    rows, columns = given.nonzero(as_tuple=True)
    indptr = torch.searchsorted(rows, torch.arange(len(given) + 1))
    return sparse_tensor(indptr.to(index), columns.to(index), given[rows, columns], given.shape[1])


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_rows_are_selected_in_the_order_asked_for(index):
    given = features()
    rows = select_rows(as_sparse(given, index), NODES)
    assert torch.equal(rows.to_dense(), given[NODES]) and torch.equal(dense_rows(as_sparse(given, index), NODES), given[NODES])
    assert torch.equal(join_rows(rows, as_sparse(given)).to_dense(), torch.cat([given[NODES], given]))
    assert select_rows(as_sparse(given, index), NODES[:0]).shape == (0, 30)


@pytest.mark.parametrize("noise", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("layer_norm", [True, False])
def test_sparse_features_are_projected_as_dense_ones_with_the_same_gradients(noise, layer_norm, monkeypatch):
    monkeypatch.setattr("gatas.nn.inputs.DENSE_NUMBERS", 60)  # two rows at a time
    found = []
    for given in (features(), as_sparse(features())):
        torch.manual_seed(0)
        inputs = Inputs(30, 6, 12, 4, layer_norm=layer_norm, input_noise=noise).double().train()
        if isinstance(inputs.norm, torch.nn.LayerNorm):
            torch.nn.init.normal_(inputs.norm.weight)
            torch.nn.init.normal_(inputs.norm.bias)
        out = inputs(NODES, given, NOISE)
        out.square().sum().backward()
        found.append([out.detach(), *(parameter.grad for parameter in inputs.parameters())])
    for sparse, dense in zip(*found, strict=True):
        torch.testing.assert_close(sparse, dense)


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("density", [0.1, 0.9])  # looked at as sparse rows, and as dense ones
def test_noise_that_comes_first_leaves_zeros_and_the_moments_of_whole_rows(layer_norm, density):
    torch.manual_seed(0)
    given = torch.where(torch.rand(12, 30) < density, torch.randn(12, 30), 0).double()
    inputs = Inputs(30, 6, 12, 0, layer_norm=layer_norm, input_noise=0.4, noise_first=True).double().train()
    if isinstance(inputs.norm, torch.nn.LayerNorm):
        torch.nn.init.normal_(inputs.norm.weight)
        torch.nn.init.normal_(inputs.norm.bias)
    rows = given[NODES] * inputs.noise.keep(30, NOISE, NODES).double()
    if isinstance(inputs.norm, torch.nn.LayerNorm):
        mean, deviation = given[NODES].mean(1, keepdim=True), (given[NODES].var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        rows = (rows - mean) / deviation * inputs.norm.weight + inputs.norm.bias
    expected = torch.nn.functional.elu(inputs.dense(rows))
    wanted = torch.autograd.grad(expected.square().sum(), list(inputs.parameters()))
    for features_given in (given, as_sparse(given)):
        found = inputs(NODES, features_given, NOISE)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found.square().sum(), list(inputs.parameters())), wanted)
    torch.testing.assert_close(inputs.eval()(NODES, given, NOISE), inputs(NODES, as_sparse(given), NOISE))


def test_noise_that_comes_first_is_the_same_for_models_that_are_called_as_one():
    torch.manual_seed(0)
    given = torch.where(torch.rand(12, 30) < 0.2, torch.randn(12, 30), 0)
    inputs = Inputs(30, 6, 12, 0, input_noise=0.4, noise_first=True).train()
    weights = {name: torch.stack([weight, -weight]) for name, weight in inputs.named_parameters()}

    def one(own):
        return torch.func.functional_call(inputs, own, (NODES, given, NOISE))

    together = torch.func.vmap(one, randomness="different")(weights)
    for number, found in enumerate(together):
        torch.testing.assert_close(found, one({name: stacked[number] for name, stacked in weights.items()}))


def test_the_sparse_form_of_features_is_made_once_and_goes_with_them():
    given = torch.zeros(12, 30)
    given[3, 4] = 2.0
    found = sparse_form(given)
    assert found is not None and torch.equal(found.to_dense(), given) and sparse_form(given) is found
    assert sparse_form(torch.ones(12, 30)) is None


def test_nodes_without_any_features_are_projected():
    inputs = Inputs(30, 6, 12, 0)
    given = torch.zeros(12, 30)
    torch.testing.assert_close(inputs(NODES, as_sparse(given), NOISE), inputs(NODES, given, NOISE))


def test_large_sparse_features_are_scaled_as_dense_ones():
    inputs = Inputs(30, 6, 12, 0).eval()
    given = features(torch.float32)
    given[7] *= 1e30
    torch.testing.assert_close(inputs(NODES, as_sparse(given), NOISE), inputs(NODES, given, NOISE))


def test_an_encoder_takes_sparse_features_in_single_precision():
    encoder = Encoder(30, 2, num_nodes=12, num_steps=1)
    given = features(torch.float32)
    torch.testing.assert_close(encoder.inputs(NODES, as_sparse(given), NOISE), encoder.inputs(NODES, given, NOISE))
