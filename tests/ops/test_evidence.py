"""Path evidence of all candidates: by a plain loop, by torch, by numba and by Triton."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gatas.ops.evidence import EvidenceInputs, cpu, cuda, path_evidence, path_evidence_torch
from gatas.ops.evidence.contract import in_pieces, row_entries
from tests.transitions.test_properties import no_gpu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PATH_TYPES = (torch.int8, torch.int16, torch.int32, torch.int64)
quick = settings(max_examples=40)
in_interpreter = settings(max_examples=10, phases=[Phase.explicit, Phase.generate])
problems = st.fixed_dictionaries(
    {
        "num_nodes": st.integers(1, 9),
        "num_paths": st.integers(1, 12),
        "num_rows": st.integers(0, 5),
        "row_size": st.integers(0, 40),
        "num_levels": st.integers(1, 3),
        "num_types": st.integers(1, 4),
        "batch": st.integers(0, 9),
        "unused_slots": st.integers(0, 3),
        "path_type": st.sampled_from(PATH_TYPES),
        "backward": st.booleans(),
        "seed": st.integers(0, 2**32 - 1),
    }
)


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    """The interpreter runs programs one after another."""
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE == "cpu":
            patch.setattr(cuda, "PROGRAMS", 30)
        yield


def random_table(rng, num_nodes, num_paths, num_rows, row_size, num_levels, path_type):
    """Rows ascending by (path, node), the self-loop first; an empty one now and then. Levels are cut anywhere."""
    indptr, node, path = [0], list[int](), list[int]()
    for row in range(num_rows):
        pairs = {(int(rng.integers(1, num_paths)), int(rng.integers(num_nodes))) for _ in range(row_size * (num_paths > 1))}
        entries = [(0, row % num_nodes), *sorted(pairs)] if rng.random() < 0.8 else []
        cuts = np.sort(rng.integers(0, len(entries) + 1, num_levels - 1)).tolist()
        indptr += [len(node) + cut for cut in (*cuts, len(entries))]
        path += [entry[0] for entry in entries]
        node += [entry[1] for entry in entries]
    probability = torch.from_numpy(np.exp(-9 * rng.random(len(node))).astype(np.float32))
    columns = torch.tensor(indptr), torch.tensor(node, dtype=torch.int32), torch.tensor(path, dtype=path_type)
    return *columns, probability


def problem(
    num_nodes=7, num_paths=12, num_rows=5, row_size=40, num_levels=3, num_types=3, batch=20, unused_slots=2,
    path_type=torch.int16, backward=False, seed=0,
):  # fmt: skip
    """Queries with rows in the table and, now and then, without; candidates are some of the nodes; some paths are ignored."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, num_nodes, num_paths, num_rows, row_size, num_levels, path_type)
    candidates = rng.permutation(num_nodes)[: int(rng.integers(0, num_nodes + 1))]
    slots = rng.permutation(len(candidates) + unused_slots)[: len(candidates)]
    slot = np.full(num_nodes, -1, np.int32)
    slot[candidates] = slots
    kept = rng.random(num_paths) < 0.7 if num_paths > 2 else np.ones(num_paths, np.bool_)
    path_place = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)[
        : num_paths - int(rng.integers(0, 2) if num_paths > 2 else 0)
    ]
    row = rng.integers(-1, num_rows + 1, batch)
    columns: Any = (
        torch.from_numpy(rng.standard_normal((num_types, max(1, int(kept.sum())), 3))).float(),
        torch.from_numpy(rng.standard_normal(num_types)).float(),
        torch.from_numpy(rng.integers(num_types, size=batch)),
        torch.from_numpy(rng.integers(num_nodes, size=batch)),
        torch.from_numpy(row),
        torch.from_numpy(slot),
        torch.from_numpy(path_place),
        torch.from_numpy(np.log(rng.integers(1, 50, num_nodes)).astype(np.float32)),
        *table,
        num_levels,
        len(candidates) + unused_slots,
        backward,
    )
    return EvidenceInputs(*columns)


def entries_of(given, b):
    """(node, place of the path, probability) of one query's entries that have weights."""
    num_rows, row = (len(given.indptr) - 1) // given.num_levels, int(given.row[b])
    if not 0 <= row < num_rows:
        return
    for entry in range(int(given.indptr[row * given.num_levels]), int(given.indptr[(row + 1) * given.num_levels])):
        path = int(given.path[entry])
        if path != 0 and path < len(given.path_place) and given.path_place[path] >= 0:
            yield int(given.node[entry]), int(given.path_place[path]), float(given.probability[entry])


def oracle_scores(given, b):
    """The score of every node that some path leads to, one entry after another."""
    scores, weights = defaultdict[int, float](float), given.weights[int(given.link_type[b])].double()
    for node, place, probability in entries_of(given, b):
        own = math.log(probability)
        other = own + float(given.log_degree[given.query[b]]) - float(given.log_degree[node])
        forth, back = (other, own) if given.backward else (own, other)
        w = weights[place].tolist()
        scores[node] += w[0] + w[1] * (forth + 6) / 4 + w[2] * (back + 6) / 4
    return scores


def oracle(given):
    out = torch.empty(len(given.query), given.num_slots, dtype=torch.float64)
    reached = torch.zeros(out.shape, dtype=torch.bool)
    for b in range(len(given.query)):
        out[b] = given.unreached[given.link_type[b]]
        for node, score in oracle_scores(given, b).items():
            if given.slot[node] >= 0:
                out[b, given.slot[node]], reached[b, given.slot[node]] = score, True
    return out, reached


def leaves(given, dtype):
    return given._replace(
        weights=given.weights.detach().to(dtype).requires_grad_(), unreached=given.unreached.detach().to(dtype).requires_grad_()
    )


def gradients(out, given):
    """Of a weighted sum of what came out."""
    factors = torch.linspace(-1, 1, out.numel(), dtype=torch.float64, device=out.device).view(out.shape).to(out.dtype)
    return torch.autograd.grad((out * factors).sum(), (given.weights, given.unreached))


def on_device(given: Any) -> Any:
    return type(given)(*(value.to(DEVICE) if isinstance(value, torch.Tensor) else value for value in given))


def assert_near(ours, exact, bound=2e-5):
    assert ours.shape == exact.shape
    ours, exact = ours.detach().cpu().double(), exact.detach().double()
    assert float((ours - exact).norm()) < bound * (float(exact.norm()) + 1)


@quick
@given(shape=problems)
def test_torch_and_numba_are_the_plain_loop(shape):
    given = problem(**shape)
    exact, exact_reached = oracle(given)
    for out, reached in (path_evidence_torch(leaves(given, torch.float64)), cpu.forward(given)):
        assert torch.equal(reached, exact_reached)
        assert_near(out, exact)
    assert path_evidence(given).dtype == torch.float32


@quick
@given(shape=problems)
def test_gradients_are_those_of_plain_torch(shape):
    exact = leaves(problem(**shape), torch.float64)
    wanted = gradients(path_evidence_torch(exact)[0], exact)
    for dtype, bound in ((torch.float32, 2e-5), (torch.float64, 1e-9)):
        given = leaves(exact, dtype)
        for ours, theirs in zip(gradients(path_evidence(given), given), wanted, strict=True):
            assert_near(ours, theirs, bound)


def watched_pieces(work, given, queries, most):
    """What `in_pieces` gives, and of each piece how many queries and entries it has."""
    seen = []

    def watched(piece):
        seen.append((len(piece.row), len(row_entries(piece.row, piece.indptr, piece.num_levels)[0])))
        return work(piece)

    return in_pieces(watched, given, queries, most), seen


@quick
@given(shape=problems, most=st.integers(1, 90))
def test_queries_may_be_scored_a_few_at_a_time(shape, most):
    given = leaves(problem(**shape), torch.float64)
    scores, seen = watched_pieces(path_evidence_torch, given, ("link_type", "query", "row"), most)
    torch.testing.assert_close(scores, path_evidence_torch(given)[0], rtol=0, atol=0)
    assert sum(count for count, _ in seen) == len(given.row)
    assert all(entries <= most or count == 1 for count, entries in seen)


def test_gradients_are_numerically_right():
    given = leaves(problem(seed=4), torch.float64)
    assert torch.autograd.gradcheck(
        lambda w, u: path_evidence(given._replace(weights=w, unreached=u)), (given.weights, given.unreached)
    )


@in_interpreter
@given(shape=problems)
def test_triton_computes_what_numba_computes(shape):
    given = problem(**shape)
    moved = on_device(given)
    (out, reached), (ours, ours_reached) = cpu.forward(given), cuda.forward(moved)
    assert torch.equal(ours_reached.cpu(), reached)
    assert_near(ours, out)
    grad = torch.linspace(-1, 1, out.numel()).view(out.shape)
    for mine, exact in zip(
        cuda.backward(moved, ours_reached, grad.to(DEVICE)), cpu.backward(given, reached, grad), strict=True
    ):
        assert_near(mine, exact)


def long_rows(**changes):
    """Rows of more than one block: long runs of few paths, or hardly any runs at all."""
    shape: Any = {"num_nodes": 900, "num_rows": 3, "row_size": 1700, "batch": 9, "seed": 2, "path_type": torch.int32} | changes
    return problem(**shape)


@pytest.mark.parametrize("num_paths", [2, 6, 3000])
@pytest.mark.parametrize("backward", [False, True])
def test_rows_longer_than_a_block_are_taken_block_by_block(num_paths, backward):
    given = long_rows(num_paths=num_paths, backward=backward)
    assert int(given.indptr[::3].diff().max()) > 512
    exact, reached = oracle(given)
    assert reached.any()
    out, found = cuda.forward(on_device(given))
    assert torch.equal(found.cpu(), reached)
    for ours in (path_evidence(given), out):
        assert_near(ours, exact)
    plain = leaves(given, torch.float64)
    wanted = gradients(path_evidence_torch(plain)[0], plain)
    given = leaves(given, torch.float32)
    factors = torch.linspace(-1, 1, out.numel(), device=DEVICE).view(out.shape)
    for results in (gradients(path_evidence(given), given), cuda.backward(on_device(given), found, factors)):
        for mine, theirs in zip(results, wanted, strict=True):
            assert_near(mine, theirs)


@pytest.mark.parametrize("num_types", [1, 40])
def test_results_do_not_depend_on_the_number_of_threads(num_types):
    given = leaves(long_rows(num_paths=40, num_types=num_types, batch=200), torch.float32)
    results, before = [], torch.get_num_threads()
    try:
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            out = path_evidence(given)
            results.append((out, *gradients(out, given)))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(other, results[0], strict=True))


def test_terms_that_cancel_or_are_zero_are_still_reached():
    given = problem(seed=3)
    exact = oracle(given)[1]
    assert exact.any() and not exact.all()
    for value in (0.0, -0.0, 1e-45, -1e-45):
        silent = given._replace(weights=torch.full_like(given.weights, value), unreached=torch.ones_like(given.unreached))
        for out, reached in (cpu.forward(silent), cuda.forward(on_device(silent))):
            assert torch.equal(reached.cpu(), exact) and torch.equal(out.cpu() == 1, ~exact)


def test_weights_need_not_be_contiguous():
    given = problem()
    turned = given._replace(weights=given.weights.transpose(0, 1).contiguous().transpose(0, 1))
    for ours in (path_evidence(turned), cuda.forward(on_device(turned))[0]):
        assert_near(ours, path_evidence(given))
    plain, moved = leaves(given, torch.float32), turned._replace(weights=turned.weights.requires_grad_())
    moved = moved._replace(unreached=plain.unreached)
    for ours, theirs in zip(gradients(path_evidence(moved), moved), gradients(path_evidence(plain), plain), strict=True):
        assert torch.equal(ours, theirs)


def test_slots_without_a_node_have_the_score_of_what_is_not_reached():
    given = problem(unused_slots=3)
    used = set(given.slot.tolist())
    unused = [slot for slot in range(given.num_slots) if slot not in used]
    out = path_evidence(given)
    assert len(unused) == 3 and torch.equal(out[:, unused], given.unreached[given.link_type][:, None].expand(-1, 3))


def test_impossible_entries_count_as_very_unlikely_ones():
    given = problem()
    out = path_evidence(given._replace(probability=torch.zeros_like(given.probability)))
    assert out.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logarithms_are_exact_to_the_last_bits(dtype):
    chances = torch.logspace(-37, 0, 2000, dtype=torch.float64).float()
    out = torch.empty(2000, dtype=dtype)
    cpu.scale_logs(chances.numpy(), 0, 2000, out.numpy())
    torch.testing.assert_close(out.double(), (chances.double().log() + 6) / 4, rtol=3e-7, atol=3e-7)


@no_gpu
def test_the_operators_can_be_captured():
    side = torch.cuda.Stream()  # that of the capture: gradients are computed where their inputs were
    with torch.cuda.stream(side):
        given = leaves(on_device(long_rows(num_paths=40, batch=30)), torch.float32)
        out = path_evidence(given)
        expected = [out, *gradients(out, given)]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        found = path_evidence(given)
        replayed = [found, *gradients(found, given)]
    graph.replay()
    for ours, theirs in zip(replayed, expected, strict=True):
        assert_near(ours, theirs.cpu())


def test_the_operators_keep_their_promises_to_torch():
    given = leaves(problem(), torch.float32)
    torch.library.opcheck(torch.ops.gatas.path_evidence.default, tuple(given))
    out, reached = torch.ops.gatas.path_evidence(*given)
    plain = given._replace(weights=given.weights.detach(), unreached=given.unreached.detach())
    torch.library.opcheck(torch.ops.gatas.path_evidence_backward.default, (*plain, reached, out.detach()))
