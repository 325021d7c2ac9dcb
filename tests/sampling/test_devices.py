"""A sampler on a GPU and one of several under vmap: each draws what it would alone on the CPU."""

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from gatas.errors import TransitionError
from gatas.sampling import NeighbourSampler
from gatas.transitions import OnDemand, Transitions
from tests.sampling.test_sampler import same
from tests.transitions.test_properties import no_gpu, random_graph


@pytest.fixture(scope="module")
def graph():
    return random_graph(400, 3_000, 2, seed=21, inverse=True)


@pytest.fixture(scope="module")
def sources(graph, tmp_path_factory):
    """Every kind of table that has rows for the even nodes."""
    whole, folder = Transitions.build(graph, 2), tmp_path_factory.mktemp("table") / "t"
    whole.save(folder, shard_entries=5_000)
    return {
        "whole": whole,
        "part": Transitions.build(graph, 2, targets=range(0, 400, 2)),
        "sharded": Transitions.open(folder),
        "on demand": OnDemand(graph, 2),
    }


every_source = pytest.mark.parametrize("kind", ["whole", "part", "sharded", "on demand"])
every_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=no_gpu)])


def different_samplers(source, device="cpu"):
    """Three models with their own depth, seed and draw number."""
    samplers = [NeighbourSampler(source, 20, seed=seed) for seed in (3, -7, 2**40)]
    for number, sampler in enumerate(samplers):
        torch.nn.init.normal_(sampler.depth_logits, generator=torch.Generator().manual_seed(number))
        sampler.draws.fill_(5 * number)
    return [sampler.to(device) for sampler in samplers]


@every_device
@every_source
@pytest.mark.parametrize("mode", ["sample", "top", "all"])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_vmapped_samplers_draw_what_they_draw_alone(sources, kind, mode, dim, device):
    samplers = different_samplers(sources[kind], device)
    parameters, buffers = stack_module_state(samplers)
    targets = 2 * torch.arange(30, device=device).view(3, 10)

    def sample(parameters, buffers, targets):
        drawn = functional_call(samplers[0], (parameters, buffers), (targets,), {"mode": mode})
        return drawn.node, drawn.path, drawn.log_probability, drawn.mask

    given = targets[0] if dim is None else targets.movedim(0, dim).contiguous()
    together = vmap(sample, in_dims=(0, 0, dim))(parameters, buffers, given)
    assert buffers["draws"].tolist() == [1, 6, 11]
    (gradient,) = torch.autograd.grad(together[2].masked_fill(~together[3], 0).square().sum(), parameters["depth_logits"])
    for model, sampler in enumerate(samplers):
        alone = sampler(targets[0 if dim is None else model], mode=mode)
        size = alone.node.shape[1]  # with mode "all" that of the longest row, of this model's targets only
        for ours, theirs in zip(together, (alone.node, alone.path, alone.log_probability, alone.mask), strict=True):
            assert torch.equal(ours[model, :, :size], theirs)
        assert not together[3][model, :, size:].any()
        alone.log_probability.masked_fill(~alone.mask, 0).square().sum().backward()
        torch.testing.assert_close(gradient[model], sampler.depth_logits.grad)


def test_a_vmapped_target_without_a_row_is_refused(sources):
    samplers = different_samplers(sources["part"])
    state = stack_module_state(samplers)
    with pytest.raises(TransitionError, match="node 3 has no row"):
        vmap(lambda state, targets: functional_call(samplers[0], state, (targets,)).node)(state, torch.tensor([[2], [3], [4]]))


def test_a_target_without_a_row_is_refused(sources):
    sampler = NeighbourSampler(sources["part"], 5)
    with pytest.raises(TransitionError, match="node 3 has no row: the table was built for 200 nodes"):
        sampler(torch.tensor([2, 3]))
    assert int(sampler.draws) == 0


def test_a_draw_number_may_be_a_tensor(sources):
    sampler, targets = NeighbourSampler(sources["whole"], 20), torch.arange(5)
    assert same(sampler(targets, draw=torch.tensor(4)), sampler(targets, draw=4))
    assert int(sampler.draws) == 0


def test_the_state_holds_seed_and_draws_and_no_table(sources):
    sampler, other = NeighbourSampler(sources["whole"], 20, seed=9), NeighbourSampler(sources["whole"], 20)
    sampler(torch.arange(3))
    state = sampler.state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == {"depth_logits": (3,), "seed": (), "draws": ()}
    other.load_state_dict(state)
    assert same(other(torch.arange(5)), sampler(torch.arange(5)))


def test_a_seed_of_more_than_64_bits_is_refused(sources):
    with pytest.raises(TransitionError, match="64 bits"):
        NeighbourSampler(sources["whole"], 20, seed=2**63)


@no_gpu
@every_source
@pytest.mark.parametrize("mode", ["sample", "top", "all"])
def test_a_gpu_draws_what_a_cpu_draws_and_can_be_left_again(sources, kind, mode):
    targets = torch.tensor([6, 250, 6, 98])
    expected = NeighbourSampler(sources[kind], 30, seed=1)(targets, mode=mode)
    sampler = NeighbourSampler(sources[kind], 30, seed=1).cuda()
    there = sampler(targets.cuda(), mode=mode)
    assert there.node.is_cuda and there.log_probability.is_cuda
    for name in ("node", "path", "mask"):
        assert torch.equal(getattr(there, name).cpu(), getattr(expected, name))
    torch.testing.assert_close(there.log_probability.cpu(), expected.log_probability)
    share = NeighbourSampler(sources[kind], 30, seed=1).coverage(targets, expected)
    torch.testing.assert_close(sampler.coverage(targets.cuda(), there).cpu(), share)
    assert same(sampler.cpu()(targets, draw=0, mode=mode), expected)


@no_gpu
def test_a_gpu_takes_targets_from_the_host_with_the_same_checks(sources):
    sampler = NeighbourSampler(sources["whole"], 30).cuda()
    drawn = sampler([3, 5], draw=0)
    assert torch.equal(drawn.node, sampler(torch.tensor([3, 5]).cuda(), draw=0).node)
    for wrong in ([400], torch.tensor([1.0]).cuda(), torch.tensor([[1]]).cuda()):
        with pytest.raises(TransitionError, match="target"):
            sampler(wrong)


@no_gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("kind", ["whole", "part", "sharded"])
def test_a_captured_graph_replays_successive_draws_without_waiting_for_the_host(sources, kind):
    sampler = NeighbourSampler(sources[kind], 30, seed=1).cuda()
    targets = torch.tensor([6, 250, 6, 98], device="cuda")

    def step():
        drawn = sampler(targets)
        (gradient,) = torch.autograd.grad(drawn.log_probability.masked_fill(~drawn.mask, 0).sum(), sampler.depth_logits)
        coverage = sampler.coverage(targets, drawn)
        return [tensor.detach() for tensor in (drawn.node, drawn.path, drawn.log_probability, drawn.mask, coverage, gradient)]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()  # the table is copied and kernels are compiled
    stream.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        eager = [step() for _ in range(3)]
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            outputs = step()
        sampler.draws.fill_(1)
        replayed = []
        for _ in range(3):
            captured.replay()
            replayed.append([output.clone() for output in outputs])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for ours, theirs in zip(replayed, eager, strict=True):
        assert all(torch.equal(mine, other) for mine, other in zip(ours, theirs, strict=True))
    assert not torch.equal(eager[0][0], eager[1][0])


@no_gpu
def test_a_replayed_target_without_a_row_has_no_neighbours(sources):
    sampler, targets = NeighbourSampler(sources["part"], 30).cuda(), torch.tensor([2, 4], device="cuda")
    sampler(targets)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        drawn = sampler(targets)
    targets.copy_(torch.tensor([3, 2**40]))
    captured.replay()
    assert not drawn.mask.any()
