from typing import Any

import pytest
import torch

from gatas.ops.noisy_linear import noisy_linear
from gatas.ops.random import NoiseSource
from gatas.ops.sparse_noisy_linear import sparse_noisy_linear, sparse_noisy_linear_torch
from tests.nn.test_sparse_rows import as_sparse

NOISE = NoiseSource(torch.tensor(17), torch.tensor(3))


def problem(nodes=30, rows=20, width=7, size=5, *, dtype=torch.float64, index=torch.int64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((nodes, width), (width,), (width,), (size, width), (size,))
    features, *parameters = (torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)
    features[features.abs() < 1] = 0
    features[3] = 0  # a node without any
    chosen = torch.randperm(nodes, generator=generator)[:rows]
    return as_sparse(features, index), chosen, *(parameter.requires_grad_() for parameter in parameters)


def outcome(function, arguments, probability):
    out = function(*arguments, NOISE, 2, probability, 1e-5)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), arguments[2:])]


@pytest.mark.parametrize("width", [2, 7, 50, 300])
@pytest.mark.parametrize("probability", [0.3, 0.5, 0.8])
def test_sparse_rows_are_projected_as_the_oracle_projects_dense_ones(width, probability):
    arguments = problem(width=width)
    exact = outcome(sparse_noisy_linear_torch, arguments, probability)
    for ours, theirs in zip(outcome(sparse_noisy_linear, arguments, probability), exact, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)  # keep is in single precision there
    single = problem(width=width, dtype=torch.float32, index=torch.int32)
    for ours, theirs in zip(outcome(sparse_noisy_linear, single, probability), exact, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)


def test_the_operator_of_dense_features_gives_the_same():
    features, *others = problem(width=90, dtype=torch.float32)
    dense = outcome(noisy_linear, (features.to_dense(), *others), 0.8)
    for ours, theirs in zip(outcome(sparse_noisy_linear, (features, *others), 0.8), dense, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_threads_do_not_change_a_bit():
    arguments, before = problem(300, 200, 150, 50, dtype=torch.float32), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = outcome(sparse_noisy_linear, arguments, 0.8)
        torch.set_num_threads(3)
        together = outcome(sparse_noisy_linear, arguments, 0.8)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(left, right) for left, right in zip(alone, together, strict=True))


def test_nodes_beyond_the_features_are_refused():
    features, _, *layers = problem()
    given: Any = (features, torch.tensor([30]), *layers, NOISE, 2, 0.5, 1e-5)
    with pytest.raises(IndexError, match="30 rows"):
        sparse_noisy_linear(*given)


def test_the_operator_is_well_behaved_for_torch():
    features, *own = problem()
    parts = [part.clone() for part in (features.crow_indices(), features.col_indices(), features.values())]
    batched = [tensor.detach()[None].requires_grad_(tensor.requires_grad) for tensor in (*own, *NOISE)]
    torch.library.opcheck(torch.ops.gatas.sparse_noisy_linear.default, (*parts, *batched, 2, 0.5, 1e-5))
