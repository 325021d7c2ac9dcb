"""SGAT's gates against hand computation and against their frequencies."""

import math

import torch
from pytest import approx

from gatas.experiments.baselines.sgat import SGAT, chance_open, drawn_gates, likely_gates
from tests.tasks.toys import camps


def test_a_gate_without_noise_is_stretched_and_cut():
    #   sigmoid(0) = 1/2 stretches to 1/2 · 1.2 − 0.1 = 1/2; sigmoid(1 / (2/3)) = 0.81757 to 0.88109; far out it is 0 or 1
    assert likely_gates(torch.tensor([0.0, 1.0, 9.0, -9.0])).tolist() == approx([0.5, 0.88109, 1, 0], abs=1e-5)


def test_the_chance_that_a_gate_is_open_is_that_of_the_draws():
    #   sigmoid(0 − 2/3 · ln(0.1 / 1.1)) = 1 / (1 + 11^(−2/3)) = 0.83184
    logits = torch.tensor([0.0, -2.0])
    assert chance_open(logits).tolist() == approx([1 / (1 + 11 ** (-2 / 3)), 1 / (1 + math.e**2 * 11 ** (-2 / 3))])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        often = (drawn_gates(logits.expand(100_000, 2)) > 0).float().mean(0)
    assert often.tolist() == approx(chance_open(logits).tolist(), abs=4 * math.sqrt(0.25 / 100_000))


def test_the_gradient_flows_to_the_logits():
    logits = torch.zeros(100, requires_grad=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn_gates(logits).sum().backward()
    assert logits.grad is not None and logits.grad.count_nonzero() > 50


def sgat(**settings):
    return SGAT(camps(), **{"hidden_size": 4, "num_heads": 2, "dropout": 0.0, "l0": 0.1, **settings})


def test_shares_of_a_node_sum_to_one_and_the_way_to_itself_is_open():
    model = sgat().eval()
    hidden = torch.full((30, 4), -50.0) * model.of_source.sign()
    model.of_source.data.abs_(), model.of_target.data.zero_()
    shares = model.shares(hidden.abs() * -1, model.edges, model.edge_values)  # every other gate is shut
    assert shares.tolist() == approx(model.edge_values.tolist())
    model = sgat().train()
    shares = model.shares(torch.randn(30, 4), model.edges, model.edge_values)
    assert torch.zeros(30).index_add(0, model.edges[1], shares).tolist() == approx([1] * 30, abs=1e-5)


def test_the_penalty_counts_the_gates_that_are_likely_open():
    model = sgat().train()
    for weight in (model.of_source, model.of_target):
        weight.data.zero_()
    model(torch.arange(3))
    count = int((model.edges[0] != model.edges[1]).sum())
    assert model.penalty().item() == approx(0.1 * count / (1 + 11 ** (-2 / 3)), rel=1e-4)
