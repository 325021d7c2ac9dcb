"""Means by typed path: what each is the mean of, and which paths may have one."""

import pytest
import torch

from gatas.errors import GatasError
from gatas.nn.path_means import MOST_PATHS, PathMeans
from gatas.sampling import Neighbourhood


@pytest.fixture
def given():
    """Return inputs of six nodes, and slots of two targets; the last slot of the second is empty."""
    torch.manual_seed(0)
    node = torch.tensor([[0, 1, 2, 3], [4, 5, 1, 0]])
    path = torch.tensor([[0, 1, 1, 2], [0, 2, 2, 1]])
    mask = torch.tensor([[True] * 4, [True] * 3 + [False]])
    chance = torch.tensor([[0.4, 0.3, 0.1, 0.2], [0.5, 0.3, 0.2, 0.9]])
    return torch.randn(6, 3, dtype=torch.float64), node, path, Neighbourhood(node, path, chance.log().double(), mask)


def test_each_path_has_a_layer_over_the_mean_of_what_it_leads_to(given):
    inputs, node, path, neighbourhood = given
    means = PathMeans(3, 3, 4).double()
    found = means(inputs, node, path, neighbourhood)
    for target in range(2):
        expected = torch.zeros(4, dtype=torch.float64)
        for kind in range(3):
            rows = neighbourhood.mask[target] & (path[target] == kind)
            if rows.any():
                share = neighbourhood.log_probability[target][rows].exp()
                expected += (share[:, None] * inputs[node[target][rows]]).sum(0) / share.sum() @ means.weight[kind]
        torch.testing.assert_close(found[target], torch.nn.functional.elu(expected))


def with_labels(num_labels, node):
    """Return means that count labels, and (B, S, labels) of 0 and 1."""
    means = PathMeans(3, 3, 4, num_labels).double()
    if means.label_weight is None:
        return means, None
    torch.nn.init.normal_(means.label_weight)
    return means, torch.nn.functional.one_hot(node % num_labels, num_labels).double()


def test_shares_of_labels_stand_beside_the_mean(given):
    inputs, node, path, neighbourhood = given
    means, known = with_labels(2, node)
    rows, share = path[0] == 1, neighbourhood.log_probability[0].exp()  # labels 1 and 0, of 0.3 and 0.1
    expected = torch.tensor([0.1, 0.3], dtype=torch.float64) / 0.4 @ means.label_weight[1]
    expected = expected + (share[rows, None] * inputs[node[0][rows]]).sum(0) / 0.4 @ means.weight[1]
    alone = Neighbourhood(node, path, neighbourhood.log_probability, neighbourhood.mask & (path == 1))
    torch.testing.assert_close(means(inputs, node, path, alone, known)[0], torch.nn.functional.elu(expected))


@pytest.mark.parametrize("num_labels", [0, 2])
def test_rows_add_up_to_the_means(given, num_labels):
    inputs, node, path, neighbourhood = given
    means, known = with_labels(num_labels, node)
    own = None if known is None else known[0]
    values, share = means.values(inputs, node[0], path[0], own), neighbourhood.log_probability[0].exp()
    total = torch.zeros_like(share)
    for kind in range(3):
        total[path[0] == kind] = share[path[0] == kind].sum()
    expected = torch.nn.functional.elu((values * (share / total)[:, None]).sum(0))
    torch.testing.assert_close(means(inputs, node, path, neighbourhood, known)[0], expected)


def test_too_many_paths_are_refused():
    with pytest.raises(GatasError, match=f"there are more than {MOST_PATHS} of them. Use fewer steps"):
        PathMeans(MOST_PATHS + 1, 3, 4)


@pytest.mark.parametrize("num_labels", [0, 3])
def test_more_paths_than_slots_give_what_fewer_give(num_labels):
    torch.manual_seed(0)
    inputs, place, path = torch.randn(9, 4, dtype=torch.float64), torch.randint(9, (5, 6)), torch.randint(5, (5, 6))
    mask = torch.rand(5, 6) < 0.8
    mask[2] = False  # a target without neighbours
    drawn = Neighbourhood(place, path, torch.randn(5, 6).log_softmax(1), mask)
    known = torch.rand(5, 6, num_labels, dtype=torch.float64) if num_labels else None
    few, many = PathMeans(5, 4, 3, num_labels).double(), PathMeans(50, 4, 3, num_labels).double()
    for name, weight in few.named_parameters():
        torch.nn.init.normal_(weight)
        many.get_parameter(name).data[:5] = weight.data
    expected, found = (one(inputs, place, path, drawn, known) for one in (few, many))
    assert torch.allclose(found, expected, atol=1e-6) and not found[2].any()
    expected.square().sum().backward()
    found.square().sum().backward()
    for name, weight in few.named_parameters():
        assert weight.grad is not None and (ours := many.get_parameter(name).grad) is not None
        assert torch.allclose(ours[:5], weight.grad, atol=1e-5) and not ours[5:].any()
