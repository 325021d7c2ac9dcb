import pytest
import torch
from torch import nn

from gatas.ops.nadam import Moments, NAdamInputs, cpu, cuda, nadam_step_torch
from gatas.training import NAdam

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(7, 300), nn.ELU(), nn.Linear(300, 5)).to(DEVICE)


def trained(network, optimiser, clip, l2):
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(30):
        x, y = (torch.randn(20, size, generator=generator).to(DEVICE) for size in (7, 5))
        optimiser.zero_grad()
        loss = (network(x) - y).square().mean()
        losses.append(loss.item())
        if l2:
            loss = loss + sum(l2 * 0.5 * parameter.square().sum() for parameter in network.parameters())
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimiser.step()
    return losses, torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


@pytest.mark.parametrize("max_norm", [None, 0.05])
@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_steps_are_those_of_torch(max_norm, l2):
    theirs, ours = model(), model()
    expected, weights = trained(theirs, torch.optim.NAdam(theirs.parameters(), lr=0.01), max_norm, l2)
    losses, own = trained(ours, NAdam(ours.parameters(), lr=0.01, max_norm=max_norm, l2=l2), None, 0.0)
    assert losses == pytest.approx(expected, rel=1e-4) and losses[-1] < losses[0]
    torch.testing.assert_close(own, weights, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_without_nesterovs_momentum_steps_are_adams(l2):
    theirs, ours = model(), model()
    expected, weights = trained(theirs, torch.optim.Adam(theirs.parameters(), lr=0.01), None, l2)
    losses, own = trained(ours, NAdam(ours.parameters(), lr=0.01, l2=l2, nesterov=False), None, 0.0)
    assert losses == pytest.approx(expected, rel=1e-4) and losses[-1] < losses[0]
    torch.testing.assert_close(own, weights, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("max_norm", [None, 0.5])
@pytest.mark.parametrize("with_l2", [False, True])
@pytest.mark.parametrize("nesterov", [False, True])
def test_the_gpu_kernel_is_the_same_step(max_norm, with_l2, nesterov):
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(2_500, generator=generator)
    l2 = torch.rand(2_500, generator=generator) * 0.1 if with_l2 else None
    slow, quick = NAdam([nn.Parameter(values.clone())], lr=0.01, max_norm=max_norm, nesterov=nesterov), values.to(DEVICE)[None]
    slow.l2, moments = l2, Moments.of(quick)
    for _ in range(4):
        gradient = torch.randn(2_500, generator=generator)
        slow.parameters[0].grad = gradient.clone()
        slow.step()
        own = (moments, torch.tensor(0.01, device=DEVICE), None if l2 is None else l2.to(DEVICE))
        decay = 4e-3 if nesterov else None
        cuda.nadam_step(NAdamInputs(quick, gradient.to(DEVICE)[None], *own, (0.9, 0.999), 1e-8, decay, max_norm))
    torch.testing.assert_close(quick.cpu(), slow.values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("max_norm", [None, 0.5])
@pytest.mark.parametrize("l2", [None, "shared", "own"])
@pytest.mark.parametrize("decay", [None, 4e-3])
@pytest.mark.parametrize("rate", [0.01, (0.01, 0.002, 0.05)])
def test_the_cpu_kernel_is_the_same_step(max_norm, l2, decay, rate):
    generator, size = torch.Generator().manual_seed(3), 2 * cpu.CHUNK + 5
    quick = torch.randn(3, size, generator=generator)
    slow, moments = quick.clone(), (Moments.of(quick), Moments.of(quick))
    shares = None if l2 is None else torch.rand(3 if l2 == "own" else 1, size, generator=generator).squeeze(0) * 0.1
    settings = (torch.tensor(rate), shares, (0.9, 0.999), 1e-8, decay, max_norm)
    for _ in range(4):
        gradient = torch.randn(3, size, generator=generator)
        cpu.nadam_step(NAdamInputs(quick, gradient.clone(), moments[0], *settings))
        nadam_step_torch(NAdamInputs(slow, gradient.clone(), moments[1], *settings))
    torch.testing.assert_close(quick, slow, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(moments[0], moments[1], rtol=1e-5, atol=1e-7)


def test_the_cpu_kernel_gives_the_same_bits_on_any_number_of_threads():
    generator, found, before = torch.Generator().manual_seed(3), [], torch.get_num_threads()
    values, gradient = torch.randn(2, 1, 5 * cpu.CHUNK, generator=generator)
    for threads in (1, 3):
        torch.set_num_threads(threads)
        own = values.clone()
        cpu.nadam_step(
            NAdamInputs(own, gradient.clone(), Moments.of(own), torch.tensor(0.01), None, (0.9, 0.999), 1e-8, 4e-3, None)
        )
        found.append(own)
    torch.set_num_threads(before)
    assert torch.equal(*found) and not torch.equal(found[0], values)


def test_a_parameter_without_a_gradient_and_one_per_l2():
    parameters = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))]
    optimiser = NAdam(parameters, lr=0.1, l2=[0.0, 0.5])
    parameters[0].grad = torch.zeros(3)
    optimiser.step()
    assert parameters[0].tolist() == [1, 1, 1] and (parameters[1] < 1).all()


def test_a_parameter_named_twice_counts_once_and_l2_may_be_whole():
    once, twice = (nn.Parameter(torch.ones(3)) for _ in range(2))
    for parameters in ([once], [twice, twice]):
        optimiser = NAdam(parameters, lr=0.1, l2=1, max_norm=0.5)
        parameters[0].grad = torch.ones(3)
        optimiser.step()
    assert torch.equal(once, twice)


@pytest.mark.parametrize("max_norm", [None, 0.5])
@pytest.mark.parametrize(("rates", "factors"), [(0.01, None), ([0.01, 0.1, 0.001], [1.0, 0.0, 3.0])])
def test_many_models_take_the_steps_each_takes_alone(max_norm, rates, factors):
    generator = torch.Generator().manual_seed(5)
    shapes, l2 = [(4, 3), (2,)], [0.1, 0.0]
    start = [torch.randn(3, *shape, generator=generator) for shape in shapes]
    alone = [[nn.Parameter(part[m].clone()) for part in start] for m in range(3)]
    together = [nn.Parameter(part.clone()) for part in start]
    each = zip(alone, [rates] * 3 if factors is None else rates, factors or [1.0] * 3, strict=True)
    optimisers = [NAdam(own, lr=rate, l2=[factor * part for part in l2], max_norm=max_norm) for own, rate, factor in each]
    joint = NAdam(together, lr=rates, l2=l2, l2_of_models=factors, max_norm=max_norm, num_models=3)
    kernel = joined(start).to(DEVICE)
    moments = Moments.of(kernel)
    for _ in range(3):
        gradients = [torch.randn(3, *shape, generator=generator) for shape in shapes]
        for m, optimiser in enumerate(optimisers):
            for parameter, gradient in zip(optimiser.parameters, gradients, strict=True):
                parameter.grad = gradient[m].clone()
            optimiser.step()
        for parameter, gradient in zip(joint.parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        joint.step()
        assert joint.l2 is not None
        own = (moments, torch.tensor(rates, device=DEVICE), joint.l2.to(DEVICE))
        cuda.nadam_step(NAdamInputs(kernel, joined(gradients).to(DEVICE), *own, (0.9, 0.999), 1e-8, 4e-3, max_norm))
    for number, parameter in enumerate(together):
        torch.testing.assert_close(parameter.data, torch.stack([parameters[number].data for parameters in alone]))
    torch.testing.assert_close(kernel.cpu(), joint.values, rtol=1e-4, atol=1e-5)


def joined(tensors):
    return torch.cat([tensor.flatten(1) for tensor in tensors], dim=1)
