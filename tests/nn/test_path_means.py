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


def test_rows_add_up_to_the_means(given):
    inputs, node, path, neighbourhood = given
    means = PathMeans(3, 3, 4).double()
    values, share = means.values(inputs, node[0], path[0]), neighbourhood.log_probability[0].exp()
    total = torch.zeros_like(share)
    for kind in range(3):
        total[path[0] == kind] = share[path[0] == kind].sum()
    expected = torch.nn.functional.elu((values * (share / total)[:, None]).sum(0))
    torch.testing.assert_close(means(inputs, node, path, neighbourhood)[0], expected)


def test_too_many_paths_are_refused():
    with pytest.raises(GatasError, match=f"there are more than {MOST_PATHS} of them. Use fewer steps"):
        PathMeans(MOST_PATHS + 1, 3, 4)
