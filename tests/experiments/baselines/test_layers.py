"""Layers that are written anew say what PyG's say."""

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.nn import ChebConv, SAGEConv
from torch_geometric.utils import get_laplacian

from gatas.experiments.baselines.appnp import APPNP
from gatas.experiments.baselines.chebyshev import ProjectingChebConv
from gatas.experiments.baselines.sage import ProjectingSAGEConv
from tests.tasks.toys import camps

#   0 ─ 1 ─ 2     4 is alone
#   └── 3 ──┘
EDGES = torch.tensor([[0, 1, 1, 2, 0, 3, 2, 3], [1, 0, 2, 1, 3, 0, 3, 2]])
INPUTS = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("num_filters", [1, 2, 3, 4])
def test_chebyshev_filters_are_pygs(num_filters):
    theirs, ours = ChebConv(6, 3, num_filters), ProjectingChebConv(6, 3, num_filters)
    ours.load_state_dict(theirs.state_dict())
    edges, weights = get_laplacian(EDGES, normalization="sym", num_nodes=5)
    weights = 2 * weights / 1.5 - (edges[0] == edges[1]).float()
    torch.testing.assert_close(ours(INPUTS, edges, weights), theirs(INPUTS, EDGES, lambda_max=torch.tensor(1.5)))


@pytest.mark.parametrize("out_size", [3, 9])
def test_means_are_pygs(out_size):
    theirs, ours = SAGEConv(6, out_size), ProjectingSAGEConv(6, out_size)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(INPUTS, EDGES), theirs(INPUTS, EDGES))


def test_appnp_walks_as_pygs_does():
    model = APPNP(camps(), hidden_size=4, num_steps=3, teleport=0.2, dropout=0.0)
    local = model.second(model.first(model.features).relu())
    walked = pyg.APPNP(3, 0.2, normalize=False)(local, model.edges, model.edge_values)
    torch.testing.assert_close(model(torch.arange(30)), walked)
