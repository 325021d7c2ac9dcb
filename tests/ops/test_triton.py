"""The Triton kernels beside plain torch: on a GPU if there is one, else in Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gatas.ops.attend import AttendInputs
from gatas.ops.attend import cuda as attend_cuda
from gatas.ops.attend_neighbours import NeighbourInputs, attend_neighbours, attend_neighbours_torch
from gatas.ops.attend_neighbours.contract import stored_type
from gatas.ops.dropout import KeepInputs, keep_torch
from gatas.ops.dropout import cpu as dropout_cpu
from gatas.ops.dropout import cuda as dropout_cuda
from gatas.ops.normalise import normalise, normalise_torch
from gatas.ops.random import NoiseSource
from tests.ops import test_represent
from tests.ops.test_attend import oracle, problem
from tests.transitions.test_properties import no_gpu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EXACT, TF32, HALF = 2e-5, 3e-3, 2e-2


def noise(seed=5, step=3):
    return NoiseSource(torch.tensor(seed, device=DEVICE), torch.tensor(step, device=DEVICE))


def neighbour_problem(batch, sample, heads, width, hidden, head_size, pairs=None, *, seed=0, holes=0.3, dropout=False):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    mask = torch.rand(batch, sample, generator=generator) >= holes
    tensors = {
        "target_terms": normal(batch, heads, hidden),
        "neighbours": normal(pairs or batch * sample, width),
        "key_weight": normal(heads * hidden, width) / width**0.5,
        "score": normal(heads, hidden) / hidden**0.5,
        "value_weight": normal(heads * head_size, width) / width**0.5,
        "value_bias": normal(heads * head_size),
        "index": torch.randint(pairs // 2 + 1, (batch, sample), generator=generator) if pairs else None,
        "log_probability": normal(batch, sample).masked_fill(~mask, -torch.inf),
        "mask": mask,
        "keep": (torch.rand(batch, sample, heads, generator=generator) > 0.5) * 2.0 if dropout else None,
    }
    return {name: None if tensor is None else tensor.to(DEVICE) for name, tensor in tensors.items()}


def neighbour_oracle(**tensors):
    return attend_neighbours_torch(NeighbourInputs(**tensors))


def outcome(function, tensors, dtype, **settings):
    """The result and the gradients of a weighted sum of it."""
    cast = {
        name: value.to(dtype) if value is not None and value.is_floating_point() else value for name, value in tensors.items()
    }
    names = [name for name, value in cast.items() if value is not None and value.is_floating_point() and name != "keep"]
    leaves = {name: cast[name].clone().requires_grad_() for name in names}
    out = function(**{**cast, **leaves}, **settings)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device).view_as(out)
    gradients = torch.autograd.grad((out * weights).sum(), list(leaves.values()))
    return dict(zip(["out", *names], [out.detach(), *gradients], strict=True))


def assert_close(ours, exact, bound):
    """Relative to the norm, which is of the order of 1 unless terms cancel."""
    for name, value in exact.items():
        error = float((ours[name].double() - value.nan_to_num()).norm() / (value.nan_to_num().norm() + 0.1))
        assert error < bound, (name, error)


@settings(max_examples=10, phases=[Phase.explicit, Phase.generate])  # shrinking is slow in the interpreter
@given(
    batch=st.integers(1, 3),
    sample=st.sampled_from([1, 5, 64, 70]),
    heads=st.integers(1, 3),
    width=st.integers(1, 20),
    hidden=st.integers(1, 20),
    head_size=st.integers(1, 9),
    pairs=st.sampled_from([None, 30, 200]),
    holes=st.sampled_from([0.0, 0.4, 1.0]),
    dropout=st.booleans(),
    seed=st.integers(0, 100),
)
def test_tiles_and_pairs_are_the_oracle(batch, sample, heads, width, hidden, head_size, pairs, holes, dropout, seed):
    shape = (batch, sample, heads, width, hidden, head_size, pairs)
    tensors = neighbour_problem(*shape, seed=seed, holes=holes, dropout=dropout)
    exact = outcome(neighbour_oracle, tensors, torch.float64)
    assert_close(outcome(attend_neighbours, tensors, torch.float32, precision="ieee"), exact, EXACT)


@pytest.mark.parametrize(
    ("precision", "bound"), [("ieee", EXACT), ("tf32", TF32), pytest.param("bfloat16", HALF, marks=no_gpu)]
)
@pytest.mark.parametrize("pairs", [None, 90])
def test_the_papers_width_is_as_exact_as_the_tensor_cores(precision, bound, pairs):
    tensors = neighbour_problem(3, 130, 2, 50, 50, 50, pairs)
    exact = outcome(neighbour_oracle, tensors, torch.float64)
    assert_close(outcome(attend_neighbours, tensors, torch.float32, precision=precision), exact, bound)


@pytest.mark.parametrize(("storage", "bound"), [("float32", TF32), ("float16", TF32), ("bfloat16", HALF)])
def test_keys_and_values_are_as_exact_as_what_they_are_stored_in(storage, bound):
    tensors = neighbour_problem(3, 130, 2, 50, 50, 50, 90)
    exact = outcome(neighbour_oracle, tensors, torch.float64)
    stored = outcome(attend_neighbours, tensors, torch.float32, precision="ieee", storage=storage)
    assert_close(stored, exact, EXACT if storage == "float32" else bound)
    errors = [float((stored[name].double() - exact[name].nan_to_num()).norm()) for name in ("out", "value_weight")]
    assert all(error > EXACT for error in errors) == (storage != "float32")


@pytest.mark.parametrize("which", ["key_weight", "value_weight"])
def test_what_is_too_large_for_float16_is_not_a_number_and_never_a_smaller_one(which):
    tensors = neighbour_problem(6, 5, 2, 9, 9, 9, 60, holes=0.0)
    pair = tensors["index"][0, 0]
    tensors["neighbours"][pair] *= 1e7  # of one pair alone
    single = {name: t.float() if t is not None and t.is_floating_point() else t for name, t in tensors.items()}
    single["value_weight" if which == "key_weight" else "key_weight"] *= 1e-7
    looks = (tensors["index"] == pair).any(1)
    assert not looks.all()
    narrow = attend_neighbours(**single, precision="tf32", storage="float16")
    assert narrow[looks].isnan().flatten(1).any(1).all() and narrow[~looks].isfinite().all()
    for storage in ("bfloat16", "float32"):
        assert attend_neighbours(**single, precision="tf32", storage=storage).isfinite().all()


def test_storage_is_as_exact_as_products_unless_it_is_given():
    own = [stored_type(precision, "auto") for precision in ("ieee", "tf32", "bfloat16")]
    assert own == [torch.float32, torch.float16, torch.bfloat16]
    assert stored_type("ieee", "bfloat16") == torch.bfloat16


def test_a_target_without_neighbours_gets_zeros_and_no_gradient():
    tensors = neighbour_problem(3, 5, 2, 8, 8, 8, holes=0.0)
    tensors["mask"][1], tensors["log_probability"][1] = False, -torch.inf
    results = outcome(attend_neighbours, tensors, torch.float32, precision="ieee")
    assert not results["out"][1].any() and not results["target_terms"][1].any() and results["out"][0].any()


@pytest.mark.parametrize("dropout", [False, True])
def test_keys_and_values_of_pairs_give_the_same(dropout):
    tensors = {name: None if t is None else t.to(DEVICE) for name, t in problem(4, 70, 3, 5, 6, 9, dropout=dropout).items()}
    exact = outcome(oracle, tensors, torch.float64)
    single = {name: t.float() if t is not None and t.is_floating_point() else t for name, t in tensors.items()}
    batched: Any = [None if tensor is None else tensor[None] for tensor in single.values()]
    given = AttendInputs(*batched)
    out, state = attend_cuda.forward(given)
    weights = torch.linspace(-1, 1, out.numel(), device=DEVICE).view_as(out)
    grads = attend_cuda.backward(given, out, state, weights)
    found = dict(zip(("target_terms", "keys", "score", "values", "log_probability"), (grad[0] for grad in grads), strict=True))
    assert_close({"out": out[0], **found}, exact, EXACT)


@pytest.mark.parametrize("pairs", [None, 70])
def test_many_models_at_once_are_each_as_alone(pairs):
    several = [neighbour_problem(3, 20, 2, 9, 9, 9, pairs, seed=seed) for seed in range(3)]
    single: Any = [
        {name: None if t is None else t.float() if t.is_floating_point() else t for name, t in p.items()} for p in several
    ]
    alone = torch.stack([attend_neighbours(**tensors, precision="ieee") for tensors in single])
    names = [name for name, tensor in single[0].items() if tensor is not None]
    stacked = [torch.stack([tensors[name] for tensors in single]) for name in names]
    constant: Any = {"index": None} if pairs is None else {}

    def one(*given):
        return attend_neighbours(**dict(zip(names, given, strict=True)), **constant, precision="ieee")

    torch.testing.assert_close(torch.vmap(one)(*stacked), alone)


@pytest.mark.parametrize("pairs", [None, 70])
def test_tensors_that_are_not_contiguous_have_the_same_gradients(pairs):
    tensors = neighbour_problem(3, 20, 2, 9, 9, 9, pairs)
    exact = outcome(attend_neighbours, tensors, torch.float32, precision="ieee")
    for name in ("target_terms", "neighbours", "key_weight", "score"):
        tensors[name] = tensors[name].transpose(0, -1).contiguous().transpose(0, -1)
    assert_close(outcome(attend_neighbours, tensors, torch.float32, precision="ieee"), exact, EXACT)


def test_wide_heads_go_by_pairs():
    tensors = neighbour_problem(2, 5, 2, 70, 70, 20)
    exact = outcome(neighbour_oracle, tensors, torch.float64)
    assert_close(outcome(attend_neighbours, tensors, torch.float32, precision="ieee"), exact, EXACT)


def test_deterministic_gradients_are_the_same_gradients():
    tensors = neighbour_problem(3, 20, 2, 9, 9, 9)
    quick = outcome(attend_neighbours, tensors, torch.float32, precision="ieee")
    torch.use_deterministic_algorithms(True)
    try:
        ordered = outcome(attend_neighbours, tensors, torch.float32, precision="ieee")
    finally:
        torch.use_deterministic_algorithms(False)
    assert_close(ordered, {name: value.double() for name, value in quick.items()}, EXACT)


@pytest.mark.parametrize(("num_paths", "num_pairs"), [(1, 5), (14, 200), (40, 70)])
def test_neighbours_along_their_paths_are_the_oracle(num_paths, num_pairs):
    generator = torch.Generator().manual_seed(num_paths)
    given = [torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((7, 11), (num_paths, 3, 11))]
    given.append(torch.rand(num_paths, 3, generator=generator, dtype=torch.float64))
    rows = [torch.randint(count, (num_pairs,), generator=generator) for count in (7, num_paths)]
    names = ("of_input", "of_step", "path_weights", "node", "path")
    tensors = {name: tensor.to(DEVICE) for name, tensor in zip(names, [*given, *rows], strict=True)}
    exact = outcome(lambda **t: test_represent.oracle(*t.values()), tensors, torch.float64)
    assert_close(
        outcome(lambda **t: torch.ops.gatas.represent(*(t[n][None] for n in names))[0], tensors, torch.float32), exact, EXACT
    )


@pytest.mark.parametrize("width", [1, 2, 7, 150])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_same_elements(width, probability):
    first, second = torch.arange(70, device=DEVICE), torch.arange(70, device=DEVICE) * 7919 % 2**31
    where = noise(2**40 + 3, 8)
    given = KeepInputs(where.seed[None], where.step[None], 4, first[None], second[None], width, probability)
    out = dropout_cuda.keep(given)
    torch.testing.assert_close(out[0], keep_torch(where, 4, first, second, width, probability))


@pytest.mark.parametrize("device_kernel", [True, False])
def test_each_model_keeps_elements_by_its_own_rate(device_kernel):
    rates = (0.0, 0.1, 0.37, 0.5, 0.9)
    first, second = torch.arange(70), torch.arange(70) * 7919 % 2**31
    where = noise(2**40 + 3, 8)
    several = [tensor.expand(len(rates), *tensor.shape) for tensor in (where.seed.cpu(), where.step.cpu(), first, second)]
    device = DEVICE if device_kernel else "cpu"
    seed, step, firsts, seconds = (tensor.to(device) for tensor in several)
    given = KeepInputs(seed, step, 4, firsts, seconds, 33, 0.0, torch.tensor(rates, dtype=torch.float64, device=device))
    kept = (dropout_cuda if device_kernel else dropout_cpu).keep(given).cpu()
    for own, rate in zip(kept, rates, strict=True):
        alone = KeepInputs(seed[:1].cpu(), step[:1].cpu(), 4, first[None], second[None], 33, rate)
        assert torch.equal(own, dropout_cpu.keep(alone)[0])


def test_normalised_features_have_noise_by_each_models_own_rate():
    generator = torch.Generator().manual_seed(1)
    features, nodes = torch.randn(40, 9, generator=generator).to(DEVICE), torch.arange(0, 40, 3, device=DEVICE)
    rates = torch.tensor([0.0, 0.4, 0.9], dtype=torch.float64, device=DEVICE)
    weight, bias = (torch.randn(3, 9, generator=generator).to(DEVICE).requires_grad_() for _ in range(2))

    def one(weight, bias, rate):
        return normalise(features, nodes, weight, bias, noise(), 2, 0.0, 1e-5, rate)

    together = torch.vmap(one)(weight, bias, rates)
    alone = torch.stack(
        [
            normalise(features, nodes, own, shift, noise(), 2, rate, 1e-5)
            for own, shift, rate in zip(weight, bias, rates.tolist(), strict=True)
        ]
    )
    assert torch.equal(together, alone)
    slopes = torch.randn(together.shape, generator=generator).to(DEVICE)
    ours, theirs = (torch.autograd.grad((out * slopes).sum(), (weight, bias)) for out in (together, alone))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("width", "probability"), [(1, 0.0), (50, 0.0), (7, 0.4), (130, 0.9)])
def test_normalised_features_with_noise_are_the_oracle(width, probability):
    generator = torch.Generator().manual_seed(width)
    features, nodes = torch.randn(40, width, generator=generator).double() + 3, torch.arange(0, 40, 3)
    weight, bias = (torch.randn(width, generator=generator).double() for _ in range(2))
    tensors = {name: t.to(DEVICE) for name, t in zip(("weight", "bias"), (weight, bias), strict=True)}
    features, nodes = features.to(DEVICE), nodes.to(DEVICE)

    def with_precision(function, kind):
        return lambda weight, bias: function(features.to(kind), nodes, weight, bias, noise(), 2, probability, 1e-5)

    exact = outcome(with_precision(normalise_torch, torch.float64), tensors, torch.float64)
    assert_close(outcome(with_precision(normalise, torch.float32), tensors, torch.float32), exact, EXACT)


@pytest.mark.parametrize("deterministic", [False, True])
def test_slots_are_grouped_by_the_pair_they_hold(deterministic):
    generator = torch.Generator().manual_seed(2)
    index, mask = torch.randint(40, (2, 30, 50), generator=generator), torch.rand(2, 30, 50, generator=generator) > 0.3
    torch.use_deterministic_algorithms(deterministic)
    try:
        indptr, slots = attend_cuda.slots_by_pair(index.to(DEVICE), mask.to(DEVICE), 45)
    finally:
        torch.use_deterministic_algorithms(False)
    for model in range(2):
        for pair in range(45):
            held = torch.nonzero((index[model] == pair).flatten() & mask[model].flatten()).flatten().tolist()
            ours = slots[model, indptr[model, pair] : indptr[model, pair + 1]].tolist()
            assert (ours if deterministic else sorted(ours)) == held


@pytest.mark.parametrize(
    ("precision", "drop", "width"), [("tf32", "drop", 50), ("bfloat16", "plain", 50), ("tf32", "plain", 128)]
)
def test_every_kernel_compiles_for_a_gpu_and_fits(precision, drop, width):
    command = [sys.executable, "-m", "tests.ops.compile_kernels", precision, drop, str(width)]
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
