import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gatas.ops.attend import AttendInputs, attend, attend_torch

NAMES = ("target_terms", "keys", "score", "values", "log_probability")


def oracle(**tensors):
    return attend_torch(AttendInputs(**tensors))


def problem(batch=4, sample=7, heads=3, size=5, width=6, pairs=9, *, dtype=torch.float64, dropout=False, seed=0, holes=0.3):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    mask = torch.rand(batch, sample, generator=generator) >= holes
    tensors = {
        "target_terms": normal(batch, heads, size),
        "keys": normal(pairs, heads, size),
        "score": normal(heads, size),
        "values": normal(pairs, heads, width),
        "index": torch.randint(pairs, (batch, sample), generator=generator),
        "log_probability": normal(batch, sample).masked_fill(~mask, -torch.inf),
        "mask": mask,
        "keep": (torch.rand(batch, sample, heads, generator=generator) > 0.5).to(dtype) * 2 if dropout else None,
    }
    return tensors


def outcome(function, tensors):
    """The result and the gradients of a weighted sum of it."""
    leaves = {name: tensors[name].clone().requires_grad_() for name in NAMES}  # with the strides they have
    out = function(**{**tensors, **leaves})
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    gradients = torch.autograd.grad((out * weights).sum(), list(leaves.values()))
    return [out.detach(), *gradients]


def relative_error(ours, exact):
    return float((ours.double() - exact).norm() / exact.norm().clamp_min(1e-30))


@settings(max_examples=40)
@given(
    batch=st.integers(1, 5),
    sample=st.integers(1, 9),
    heads=st.integers(1, 3),
    size=st.integers(1, 9),
    width=st.integers(1, 9),
    pairs=st.integers(1, 8),
    dropout=st.booleans(),
    holes=st.sampled_from([0.0, 0.4, 1.0]),
    seed=st.integers(0, 100),
)
def test_the_fused_operator_is_the_oracle(batch, sample, heads, size, width, pairs, dropout, holes, seed):
    tensors = problem(batch, sample, heads, size, width, pairs, dropout=dropout, seed=seed, holes=holes)
    for ours, exact in zip(outcome(attend, tensors), outcome(oracle, tensors), strict=True):
        torch.testing.assert_close(ours, exact.nan_to_num(), rtol=1e-10, atol=1e-12)


def test_single_precision_is_close_to_the_exact_result():
    single, exact = (problem(20, 50, 8, 50, 50, 300, dtype=kind, dropout=True) for kind in (torch.float32, torch.float64))
    for ours, theirs in zip(outcome(attend, single), outcome(oracle, exact), strict=True):
        assert ours.dtype == torch.float32 and relative_error(ours, theirs) < 1e-5


def test_gradients_pass_gradcheck():
    tensors = problem(2, 4, 2, 3, 3, 5, holes=0.2)
    leaves = [tensors[name].requires_grad_() for name in NAMES[:4]]

    def function(*values):
        return attend(**{**tensors, **dict(zip(NAMES[:4], values, strict=True))})

    assert torch.autograd.gradcheck(function, leaves)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_bit(threads):
    tensors, before = problem(33, 60, 8, 50, 50, 400, dtype=torch.float32, dropout=True), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = outcome(attend, tensors)
        torch.set_num_threads(threads)
        together = outcome(attend, tensors)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(left, right) for left, right in zip(alone, together, strict=True))


def test_a_target_without_neighbours_gets_zeros_and_no_gradient():
    tensors = problem(3, 4)
    tensors["mask"][1] = False
    tensors["log_probability"][1] = -torch.inf
    out, of_targets, *_ = outcome(attend, tensors)
    assert not out[1].any() and not of_targets[1].any() and out[0].any()


def test_one_neighbour_passes_its_value_on():
    tensors = problem(1, 1, holes=0.0)
    torch.testing.assert_close(attend(**tensors)[0], tensors["values"][tensors["index"][0, 0]])


def test_extreme_logits_do_not_overflow():
    tensors = problem(2, 5, dtype=torch.float32, holes=0.0)
    tensors["score"] *= 1e4
    tensors["log_probability"] -= 80
    assert attend(**tensors).isfinite().all()


@pytest.mark.parametrize("size", [30.0, 50.0, 100.0, 300.0])
def test_large_terms_and_keys_that_cancel_are_exact(size):
    single, exact = (problem(4, 9, dtype=kind, holes=0.0) for kind in (torch.float32, torch.float64))
    for tensors in (single, exact):
        tensors["target_terms"] += size
        tensors["keys"] -= size
    exact = {name: tensor if tensor is None else tensor.clone() for name, tensor in exact.items()}
    exact["target_terms"], exact["keys"] = single["target_terms"].double(), single["keys"].double()  # rounded alike
    for ours, theirs in zip(outcome(attend, single), outcome(oracle, exact), strict=True):
        assert relative_error(ours, theirs) < 1e-4


def test_the_operator_is_well_behaved_for_torch():
    tensors = problem(3, 4, dtype=torch.float32)
    arguments = [tensors[name][None].requires_grad_() for name in ("target_terms", "keys", "score", "values")]
    slots = (tensors["index"], tensors["log_probability"].nan_to_num(neginf=-50.0), tensors["mask"])
    torch.library.opcheck(torch.ops.gatas.attend.default, (*arguments, *(tensor[None] for tensor in slots), None))


@pytest.mark.parametrize("mapped", [False, True])
def test_many_models_at_once_are_each_as_alone(mapped):
    several = [problem(3, 6, seed=seed, dropout=True) for seed in range(3)]
    alone = [outcome(attend, tensors) for tensors in several]
    stacked = {name: torch.stack([tensors[name] for tensors in several]) for name in several[0]}

    def by_vmap(**tensors):
        return torch.vmap(lambda *given: attend(*given))(*tensors.values())

    leaves = {name: stacked[name].requires_grad_() for name in NAMES}
    out = (by_vmap if mapped else attend)(**{**stacked, **leaves})
    weights = torch.linspace(-1, 1, out[0].numel(), dtype=out.dtype).view_as(out[0])
    together = [out.detach(), *torch.autograd.grad((out * weights).sum(), list(leaves.values()))]
    for ours, theirs in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(ours, torch.stack(theirs), rtol=0, atol=0)


def test_tensors_that_are_not_contiguous_have_the_same_gradients():
    tensors = problem(3, 6)
    odd = {name: tensors[name].transpose(0, -1).contiguous().transpose(0, -1) for name in NAMES}
    for ours, exact in zip(outcome(attend, {**tensors, **odd}), outcome(attend, tensors), strict=True):
        torch.testing.assert_close(ours, exact)


def test_a_target_whose_neighbours_are_all_impossible_gets_zeros():
    tensors = problem(2, 4, holes=0.0, dtype=torch.float32)
    tensors["log_probability"][0] = -torch.inf
    out = attend(**tensors)
    assert not out[0].any() and out[1].isfinite().all()
