import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatas.ops.random import cpu, stream, threefry, uniform

words = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [  # the known answers that come with Random123, where Threefry was published
        ((0x0, 0x0), (0x0, 0x0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_answers(key, counter, expected):
    assert threefry(key, *counter) == expected


@given(key=st.tuples(words, words), first=words, second=words)
def test_numba_and_torch_and_plain_numbers_give_the_same_bits(key, first, second):
    expected = threefry(key, first, second)
    assert cpu.threefry(*(np.uint32(word) for word in (*key, first, second))) == expected
    tensors = threefry(key, torch.tensor([first]), torch.tensor([second]))
    assert tuple(int(word) for word in tensors) == expected


def test_streams_of_different_use_differ():
    keys = {stream(seed, kind, step) for seed in range(3) for kind in range(3) for step in range(3)}
    assert len(keys) == 27 and stream(2**40, 1) != stream(0, 1)


def test_uniform_numbers_are_spread_evenly_and_stay_inside():
    numbers = uniform(threefry(stream(0, 1), torch.arange(100_000), torch.zeros(100_000, dtype=torch.int64)))
    assert numbers.min() > 0 and numbers.max() < 1
    counts = torch.histc(numbers, 20, 0, 1)
    assert ((counts - 5_000).abs() < 5 * 5_000**0.5).all()  # five standard deviations
    extreme = uniform((torch.tensor([0, 2**32 - 1]), torch.tensor([0, 2**32 - 1])))
    assert 0 < extreme[0] < 1e-15 and 1 - 1e-15 < extreme[1] < 1
