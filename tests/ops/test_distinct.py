import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatas.ops import distinct as module
from gatas.ops.distinct import distinct, distinct_torch


def assert_as_torch(values):
    for ours, theirs in zip(distinct(values), distinct_torch(values), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert torch.equal(ours, theirs)


@given(values=st.integers(0, 63).flatmap(lambda bits: st.lists(st.integers(0, 2**bits - 1))))
def test_numbers_of_any_size_are_told_apart_as_torch_does(values):
    assert_as_torch(torch.tensor(values, dtype=torch.int64))


@pytest.mark.parametrize("largest", [1, 63, 64, 65, 1_000, 64 * module.FEW_WORDS - 1, 64 * module.FEW_WORDS, 10**7])
def test_many_numbers_in_rows_or_columns_are_told_apart_as_torch_does(largest):
    values = torch.randint(0, largest + 1, (40, 50), generator=torch.Generator().manual_seed(0))
    values[3, 7] = largest
    for shaped in (values, values.T, values[:, ::3]):
        assert_as_torch(shaped)


@pytest.mark.parametrize("values", [torch.tensor([3, -1, 3]), torch.tensor([0.5, 0.2, 0.5]), torch.tensor([2, 1, 2]).int()])
def test_what_cannot_be_marked_is_left_to_torch(values):
    assert_as_torch(values)


def test_small_numbers_are_not_sorted(monkeypatch):
    monkeypatch.delattr(torch, "unique")
    unique, inverse = distinct(torch.tensor([[700, 0], [64, 700]]))
    assert unique.tolist() == [0, 64, 700] and inverse.tolist() == [[2, 0], [1, 2]]
