import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gatas.ops.represent import RepresentInputs, represent, represent_torch


def oracle(*arguments):
    return represent_torch(RepresentInputs(*arguments))


def problem(nodes=6, paths=4, steps=3, size=5, pairs=11, *, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    floats = [
        torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in ((nodes, size), (paths, steps, size), (paths, steps))
    ]
    node, path = (torch.randint(count, (pairs,), generator=generator) for count in (nodes, paths))
    return *floats, node.sort().values if seed % 2 else node, path


def outcome(function, arguments):
    out = function(*arguments)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), arguments[:3])]


@settings(max_examples=30)
@given(
    nodes=st.integers(1, 6),
    paths=st.integers(1, 5),
    steps=st.integers(1, 4),
    size=st.integers(1, 9),
    pairs=st.integers(1, 20),
    seed=st.integers(0, 100),
)
def test_neighbours_are_the_oracle(nodes, paths, steps, size, pairs, seed):
    arguments = problem(nodes, paths, steps, size, pairs, seed=seed)
    for ours, exact in zip(outcome(represent, arguments), outcome(oracle, arguments), strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-10, atol=1e-12)


def test_single_precision_is_close_to_the_exact_result():
    single, exact = (problem(200, 9, 3, 50, 900, dtype=dtype) for dtype in (torch.float32, torch.float64))
    for ours, theirs in zip(outcome(represent, single), outcome(oracle, exact), strict=True):
        assert ours.dtype == torch.float32 and float((ours.double() - theirs).norm() / theirs.norm()) < 1e-5


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_bit(threads):
    arguments, before = problem(200, 9, 3, 50, 900, dtype=torch.float32, seed=1), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = outcome(represent, arguments)
        torch.set_num_threads(threads)
        together = outcome(represent, arguments)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(left, right) for left, right in zip(alone, together, strict=True))


def test_the_operator_is_well_behaved_for_torch():
    torch.library.opcheck(
        torch.ops.gatas.represent.default,
        tuple(tensor.detach()[None].requires_grad_(tensor.requires_grad) for tensor in problem()),
    )
