"""Sparse features give what dense ones give, and only their rows are ever made dense."""

import pytest
import torch

from gatas.nn import Encoder
from gatas.nn.inputs import Inputs
from gatas.nn.sparse_rows import dense_rows, join_rows, select_rows, sparse_tensor
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


def test_noise_over_sparse_rows_never_makes_them_dense(monkeypatch):
    monkeypatch.setattr("gatas.nn.sparse_rows.dense_rows", None)
    inputs = Inputs(30, 6, 12, 0, input_noise=0.5).train()
    out = inputs(NODES, as_sparse(features(torch.float32)), NOISE)
    (gradient,) = torch.autograd.grad(out.sum(), inputs.dense.weight)
    assert gradient.isfinite().all()
