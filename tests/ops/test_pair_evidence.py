"""Path evidence of single pairs: by a plain loop, by torch, by numba and by Triton, and as part of what all candidates have."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatas.ops.evidence import path_evidence
from gatas.ops.pair_evidence import PairInputs, cpu, cuda, pair_entries, pair_evidence, pair_evidence_torch
from tests.ops.test_evidence import (
    DEVICE,
    assert_near,
    gradients,
    in_interpreter,
    leaves,
    long_rows,
    on_device,
    oracle_scores,
    problem,
    problems,
    quick,
    watched_pieces,
)


def pairs_of(given, seed=0):
    """Each query of a problem with one other node."""
    rng = np.random.default_rng(seed)
    other = torch.from_numpy(rng.integers(len(given.slot), size=len(given.query)))
    columns: Any = (*given[:4], other, given.row, *given[6:13], given.backward)
    return PairInputs(*columns)


def oracle(given):
    scores = [oracle_scores(given, b).get(int(other)) for b, other in enumerate(given.other)]
    rest = given.unreached[given.link_type].tolist()
    out = [unreached if score is None else score for score, unreached in zip(scores, rest, strict=True)]
    return torch.tensor(out, dtype=torch.float64), torch.tensor([score is not None for score in scores], dtype=torch.bool)


@quick
@given(shape=problems)
def test_torch_and_numba_are_the_plain_loop(shape):
    given = pairs_of(problem(**shape))
    exact, exact_reached = oracle(given)
    for out, reached in (pair_evidence_torch(leaves(given, torch.float64)), cpu.forward(given)):
        assert torch.equal(reached, exact_reached)
        assert_near(out, exact)


@quick
@given(shape=problems, most=st.integers(1, 90))
def test_pairs_may_be_scored_a_few_at_a_time(shape, most):
    given = leaves(pairs_of(problem(**shape)), torch.float64)
    scores, seen = watched_pieces(pair_evidence_torch, given, ("link_type", "query", "other", "row"), most)
    torch.testing.assert_close(scores, pair_evidence_torch(given)[0], rtol=0, atol=0)
    assert all(entries <= most or count == 1 for count, entries in seen)


@quick
@given(shape=problems)
def test_gradients_are_those_of_plain_torch(shape):
    exact = leaves(pairs_of(problem(**shape)), torch.float64)
    wanted = gradients(pair_evidence_torch(exact)[0], exact)
    for dtype, bound in ((torch.float32, 2e-5), (torch.float64, 1e-9)):
        given = leaves(exact, dtype)
        for ours, theirs in zip(gradients(pair_evidence(given), given), wanted, strict=True):
            assert_near(ours, theirs, bound)


@in_interpreter
@given(shape=problems)
def test_triton_computes_what_numba_computes(shape):
    given = pairs_of(problem(**shape))
    moved = on_device(given)
    (out, reached), (ours, ours_reached) = cpu.forward(given), cuda.forward(moved)
    assert torch.equal(ours_reached.cpu(), reached)
    assert_near(ours, out)
    grad = torch.linspace(-1, 1, out.numel())
    for mine, exact in zip(
        cuda.backward(moved, ours_reached, grad.to(DEVICE)), cpu.backward(given, reached, grad), strict=True
    ):
        assert_near(mine, exact)


@pytest.mark.parametrize("num_paths", [2, 6, 3000])
def test_a_pair_has_the_score_of_its_slot_among_all_candidates(num_paths):
    all_slots = long_rows(num_paths=num_paths, batch=150)
    given = pairs_of(all_slots._replace(slot=torch.arange(900, dtype=torch.int32), num_slots=900))
    every = path_evidence(all_slots._replace(slot=torch.arange(900, dtype=torch.int32), num_slots=900))
    expected = every.gather(1, given.other[:, None])[:, 0]
    assert 0 < int(cpu.forward(given)[1].sum()) < 150
    assert_near(pair_evidence(given), expected)
    assert_near(cuda.forward(on_device(given))[0], expected)


@given(node=st.integers(-1, 60), path=st.integers(0, 8), first=st.integers(0, 90), seed=st.integers(0, 5))
def test_galloping_comes_to_the_first_entry_that_is_not_before(node, path, first, seed):
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.permutation(7 * 60)[:90]) + 60  # paths 1 to 7
    nodes, paths = (keys % 60).astype(np.int32), (keys // 60).astype(np.int16)
    expected = next((n for n in range(first, 90) if (paths[n], nodes[n]) >= (path, node)), 90)
    assert cpu.seek(nodes, paths, first, 90, path, node) == expected


@quick
@given(shape=problems, seed=st.integers(0, 5))
def test_the_entries_of_a_pair_are_those_of_its_row(shape, seed):
    given = pairs_of(problem(**shape), seed)
    pair, path, probability = pair_entries(given.other, given.row, *given[8:13])
    expected = []
    for b, (row, other) in enumerate(zip(given.row.tolist(), given.other.tolist(), strict=True)):
        if 0 <= row < (len(given.indptr) - 1) // given.num_levels:
            ends = given.indptr[row * given.num_levels], given.indptr[(row + 1) * given.num_levels]
            expected += [
                (b, int(given.path[entry]), float(given.probability[entry]))
                for entry in range(int(ends[0]), int(ends[1]))
                if given.path[entry] != 0 and given.node[entry] == other
            ]
    assert list(zip(pair.tolist(), path.tolist(), probability.tolist(), strict=True)) == expected


def test_results_do_not_depend_on_the_number_of_threads():
    given = leaves(pairs_of(long_rows(num_paths=40, batch=400)), torch.float32)
    results, before = [], torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            out = pair_evidence(given)
            results.append((out, *gradients(out, given)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(*results, strict=True))


def test_the_operators_keep_their_promises_to_torch():
    given = leaves(pairs_of(problem()), torch.float32)
    torch.library.opcheck(torch.ops.gatas.pair_evidence.default, tuple(given))
    out, reached = torch.ops.gatas.pair_evidence(*given)
    plain = given._replace(weights=given.weights.detach(), unreached=given.unreached.detach())
    torch.library.opcheck(torch.ops.gatas.pair_evidence_backward.default, (*plain, reached, out.detach()))
