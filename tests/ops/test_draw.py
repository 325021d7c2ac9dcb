"""`gatas::draw` by torch, by numba and by Triton: the same samples, bit for bit."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gatas.ops.draw import DrawInputs, cuda, draw_samples, draw_torch
from gatas.transitions import Transitions
from tests.transitions.conftest import typed_graphs
from tests.transitions.test_properties import random_graph

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
quick = settings(max_examples=12)


def table_of(rows):
    """A table's tensors and its longest row."""
    tensors = [torch.tensor(column) for column in (rows.indptr, rows.node, rows.path, rows.probability)]
    return tensors, int(np.diff(rows.indptr[:: rows.num_steps + 1]).max(initial=0))


def models(count, num_levels, seed=0):
    """Different depths, seeds and draw numbers."""
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(count, num_levels, generator=generator),
        torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator),
        torch.randint(0, 2**40, (count,), generator=generator),
    )


def assert_same_draw(models, targets, positions, rows, sample_size, noisy=True, uniform=False):
    tensors, longest = table_of(rows)
    arguments = (*models, targets, positions, *tensors, longest, sample_size, noisy, uniform)
    expected = draw_samples(*arguments)
    on_device: Any = [value.to(DEVICE) if isinstance(value, torch.Tensor) else value for value in arguments]
    drawn = cuda.draw(DrawInputs(*on_device))
    for name, ours, theirs in zip(("node", "path", "step", "log_step", "mask"), drawn, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
        if name == "log_step":
            torch.testing.assert_close(ours.cpu(), theirs)
        else:
            assert torch.equal(ours.cpu(), theirs), name
    return expected


@quick
@given(
    graph=typed_graphs(),
    num_steps=st.integers(1, 3),
    sample_size=st.integers(1, 12),
    num_models=st.integers(1, 3),
    noisy=st.booleans(),
    uniform=st.booleans(),
    data=st.data(),
)
def test_cudas_what_numba_draws(graph, num_steps, sample_size, num_models, noisy, uniform, data):
    rows = Transitions.build(graph, num_steps).shards[0]
    batch = data.draw(st.integers(0, 3))
    nodes = st.lists(st.integers(0, graph.num_nodes - 1), min_size=num_models * batch, max_size=num_models * batch)
    targets = torch.tensor(data.draw(nodes), dtype=torch.int64).view(num_models, batch)
    assert_same_draw(models(num_models, num_steps + 1), targets, targets, rows, sample_size, noisy, uniform)


@pytest.fixture(scope="module")
def rows():
    return Transitions.build(random_graph(300, 3_000, 2, seed=5, inverse=True), 2).shards[0]


@pytest.mark.parametrize("scratch", [0, cuda.LARGEST_SCRATCH])
@pytest.mark.parametrize("sample_size", [1, 100, 600])
def test_a_row_longer_than_a_block_is_drawn_from_block_by_block(rows, sample_size, scratch, monkeypatch):
    monkeypatch.setattr(cuda, "LARGEST_BLOCK", 512)
    monkeypatch.setattr(cuda, "LARGEST_SCRATCH", scratch)
    assert table_of(rows)[1] > 2 * 512
    targets = torch.arange(4).view(2, 2)
    assert_same_draw(models(2, 3), targets, targets, rows, sample_size)


@pytest.mark.parametrize("block", [512, 4096])
def test_of_equal_candidates_the_first_are_taken(rows, block, monkeypatch):
    monkeypatch.setattr(cuda, "LARGEST_BLOCK", block)
    targets = torch.arange(3)[None]
    node, *_ = assert_same_draw(models(1, 3), targets, targets, rows, 300, noisy=False, uniform=True)
    for target, drawn in enumerate(node[0].tolist()):
        first = rows.indptr[target * 3]
        assert drawn == rows.node[first : first + 300].tolist()


@pytest.mark.parametrize("around", [-1, 0, 1])
def test_a_sample_as_large_as_the_row_is_all_of_it(rows, around):
    target = torch.tensor([[7]])
    size = int(rows.indptr[24] - rows.indptr[21])
    *_, mask = assert_same_draw(models(1, 3), target, target, rows, size + around)
    assert int(mask.sum()) == min(size, size + around)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64])
def test_paths_may_be_integers_of_any_width(rows, kind):
    path = rows.path.astype(kind) if kind != np.int64 else rows.path.astype(kind) * 2**40
    targets = torch.arange(4)[None]
    changed = type(rows)(rows.num_steps, rows.indptr, rows.node, path, rows.probability, rows.dropped_mass)
    assert_same_draw(models(1, 3), targets, targets, changed, 50)


def test_a_position_outside_the_table_is_an_empty_row(rows):
    positions = torch.tensor([[-1, 0, 300, 2**40, -(2**40)]])
    *_, mask = assert_same_draw(models(1, 3), torch.arange(5)[None], positions, rows, 10)
    assert mask.any(-1).tolist() == [[False, True, False, False, False]]


def test_a_table_without_rows_has_no_neighbours(rows):
    columns = (rows.indptr[:1], rows.node[:0], rows.path[:0], rows.probability[:0], rows.dropped_mass[:0])
    *_, mask = assert_same_draw(models(1, 3), torch.arange(2)[None], torch.arange(2)[None], type(rows)(2, *columns), 10)
    assert not mask.any()


@pytest.mark.parametrize(("noisy", "uniform"), [(True, False), (True, True), (False, False), (False, True)])
def test_numba_draws_what_the_contract_says(rows, noisy, uniform):
    tensors, longest = table_of(rows)
    targets, positions = torch.tensor([[3, 7, 299], [0, 0, 5]]), torch.tensor([[3, 7, 299], [0, -1, 300]])
    arguments: Any = (*models(2, 3), targets, positions, *tensors, longest, 40, noisy, uniform)
    given = DrawInputs(*arguments)
    for ours, theirs in zip(draw_samples(*given), draw_torch(given), strict=True):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)


def test_each_of_several_models_draws_what_it_draws_alone(rows):
    (logits, seed, draw), (tensors, longest) = models(3, 3), table_of(rows)
    targets = torch.arange(30).view(3, 10)
    together = draw_samples(logits, seed, draw, targets, targets, *tensors, longest, 20, True, False)
    for model in range(3):
        own = [column[model : model + 1] for column in (logits, seed, draw, targets, targets)]
        alone = draw_samples(*own, *tensors, longest, 20, True, False)
        assert all(torch.equal(ours[model], theirs[0]) for ours, theirs in zip(together, alone, strict=True))


@pytest.mark.parametrize("in_dims", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 1), (0, 0, None, None, None)])
def test_vmapped_models_draw_what_they_draw_alone(rows, in_dims):
    (logits, seed, draw), (tensors, longest) = models(3, 3), table_of(rows)
    targets = torch.arange(30).view(3, 10)
    inputs = [column[:, None] for column in (logits, seed, draw, targets, targets)]  # each has an M of its own, of one
    expected = draw_samples(
        *(
            (column if dim is not None else column[:1].expand(3, *column.shape[1:])).flatten(0, 1)
            for column, dim in zip(inputs, in_dims, strict=True)
        ),
        *tensors, longest, 20, True, False,
    )  # fmt: skip
    given = [column[0] if dim is None else column.movedim(0, dim) for column, dim in zip(inputs, in_dims, strict=True)]
    drawn = torch.func.vmap(lambda *own: draw_samples(*own, *tensors, longest, 20, True, False), in_dims)(*given)
    assert all(torch.equal(ours[:, 0], theirs) for ours, theirs in zip(drawn, expected, strict=True))


def test_the_operator_keeps_its_promises_to_torch(rows):
    (logits, seed, draw), (tensors, longest) = models(2, 3), table_of(rows)
    targets = torch.arange(8).view(2, 4)
    torch.library.opcheck(draw_samples, (logits, seed, draw, targets, targets, *tensors, longest, 20, True, False))
