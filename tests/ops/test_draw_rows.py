"""The draw on a CPU against its slow twin: the same samples, however close the candidates are."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatas.ops.draw import cpu
from gatas.ops.random import threefry, uniform

KEY = (123, 456)
TINY = float(np.float32(1.1754944e-38))


def times(target, node, path):
    """E ~ Exp(1) of each candidate."""
    own = threefry(KEY, target, 0)
    words = threefry(own, torch.from_numpy(node.astype(np.int64)), torch.from_numpy(path.astype(np.int64)))
    return np.array([-math.log(u) for u in uniform(words).tolist()])


def draw_slowly(levels, node, path, probability, target, depth, sample_size, noisy, uniform):
    """Which entries are drawn: all are sorted by float32(P / E), equals as they come."""
    step = np.repeat(np.arange(len(depth)), np.diff(levels))
    chance = np.ones(len(node)) if uniform else depth[step] * probability.astype(np.float64)
    rank = (chance / times(target, node, path) if noisy else chance).astype(np.float32)
    entries = np.sort(np.argsort(-rank, kind="stable")[:sample_size])
    return node[entries], path[entries], step[entries], probability[entries]


def draw(levels, node, path, probability, target, depth, sample_size, noisy, uniform):
    kinds = (np.int64, np.int64, np.int8, np.float32)
    *outputs, count = (*(np.zeros((1, sample_size), kind) for kind in kinds), np.zeros(1, np.int64))
    rows, key = (np.zeros(1, np.int64), np.array([target])), [np.uint32(word) for word in KEY]
    cpu.draw_rows(levels, node, path, probability, *rows, depth, *key, noisy, uniform, *outputs, count)
    return [column[0, : count[0]] for column in outputs]


def assert_same(*arguments):
    for ours, theirs in zip(draw(*arguments), draw_slowly(*arguments), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def candidates(sizes, seed):
    """Where levels begin, and nodes and paths."""
    generator = np.random.default_rng(seed)
    levels, size = np.concatenate([[0], np.cumsum(sizes)]), sum(sizes)
    return levels, generator.integers(2**31, size=size, dtype=np.int32), generator.integers(100, size=size, dtype=np.int16)


PROBABILITIES = {
    "skewed": lambda generator, size: generator.exponential(size=size) ** 8 / 1e6,
    "few values": lambda generator, size: generator.choice([0.5, 0.25, 1e-3], size=size),
    "as small as stored": lambda generator, size: np.where(generator.random(size) < 0.9, TINY, generator.random(size)),
}


@given(
    sizes=st.lists(st.integers(0, 400), min_size=3, max_size=3).filter(any),
    depth=st.lists(st.sampled_from([0.0, 1e-45, 1e-30, 0.1, 1.0]), min_size=3, max_size=3),
    probabilities=st.sampled_from(sorted(PROBABILITIES)),
    share=st.floats(0, 1.1),
    noisy=st.booleans(),
    uniform=st.booleans(),
    seed=st.integers(0, 2**31 - 1),
)
def test_the_draw_is_that_of_its_slow_twin(sizes, depth, probabilities, share, noisy, uniform, seed):
    levels, node, path = candidates(sizes, seed)
    probability = PROBABILITIES[probabilities](np.random.default_rng(seed), len(node)).astype(np.float32)
    sample_size = 1 + int(share * len(node))
    assert_same(levels, node, path, probability, seed, np.array(depth), sample_size, noisy, uniform)


@pytest.mark.parametrize("spread", [0, 1e-7, 1e-6, 1e-5])
@pytest.mark.parametrize("height", [1e-3, 1e-36, 3e-38, 1e-38, 1e-40])
def test_candidates_that_only_the_last_bits_tell_apart_are_told_apart(height, spread):
    for seed in range(20):  # P is made from E, so that all P / E are almost the same
        levels, node, path = candidates([3, 200, 500], seed)
        around = 1 + spread * np.random.default_rng(seed).normal(size=len(node))
        probability = (times(seed, node, path) * around / 64).astype(np.float32)
        depth = np.full(3, 64 * height)
        for sample_size in (1, 77, 350, 702):
            assert_same(levels, node, path, probability, seed, depth, sample_size, True, False)


def test_a_depth_that_is_not_a_number_draws_as_many():
    levels, node, path = candidates([3, 200, 500], 0)
    drawn = draw(levels, node, path, np.ones(703, np.float32), 0, np.full(3, np.nan), 50, True, False)
    assert all(len(column) == 50 for column in drawn) and set(drawn[0]) <= set(node)


def test_the_quick_logarithm_is_as_accurate_as_the_draw_assumes():
    generator = np.random.default_rng(0)
    half = np.sqrt(0.5) * 2.0 ** -np.arange(52)
    near = [2.0 ** -np.arange(1, 54), 1 - 2.0 ** -np.arange(1, 54), half, np.nextafter(half, 0), np.nextafter(half, 1)]
    for u in np.concatenate([*near, generator.random(20_000), generator.random(20_000) ** 20 + 2.0**-53]).tolist():
        if 0 < u < 1:
            assert abs(cpu.negative_log(u) / -math.log(u) - 1) < 1e-7
