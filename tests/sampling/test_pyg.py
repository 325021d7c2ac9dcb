"""Our samples in PyG's loaders."""

import builtins

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader

from gatas.graph import Graph
from gatas.sampling import NeighbourSampler
from gatas.sampling.pyg import EdgePaths, TransitionSampler
from gatas.transitions import Transitions

NUM_NODES = 25


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    source, target = generator.integers(NUM_NODES, size=(2, 80))
    graph = Graph.from_edges(source, target, generator.integers(2, size=80), num_nodes=NUM_NODES)
    edge_index = torch.from_numpy(np.stack([graph.source, graph.neighbour]).astype(np.int64))
    data = Data(x=torch.arange(NUM_NODES)[:, None].float(), edge_index=edge_index, y=torch.arange(NUM_NODES))
    return data, Transitions.build(graph, num_steps=2)


@pytest.fixture(autouse=True)
def no_pyg_lib(monkeypatch):
    """As where it is not installed, which is everywhere it can be."""
    original = builtins.__import__

    def guarded(name, *rest):
        assert not name.startswith(("pyg_lib", "torch_sparse")), name
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", guarded)


def test_a_node_loader_gives_targets_first_and_an_edge_for_every_sample(data):
    data, transitions = data
    paths = EdgePaths()
    loader = NodeLoader(
        data,
        TransitionSampler(NeighbourSampler(transitions, sample_size=4, seed=3)),
        input_nodes=torch.arange(10),
        batch_size=5,
        transform_sampler_output=paths.take,
        transform=paths.put,
    )
    twin = NeighbourSampler(transitions, sample_size=4, seed=3)
    for number, batch in enumerate(loader):
        targets = torch.arange(5 * number, 5 * number + 5)
        drawn = twin(targets)
        assert batch.batch_size == 5 and torch.equal(batch.n_id[:5], targets)
        assert torch.equal(batch.x[:, 0].long(), batch.n_id) and torch.equal(batch.y, batch.n_id)
        assert len(torch.unique(batch.n_id)) == len(batch.n_id)
        neighbour, target = batch.edge_index
        assert torch.equal(batch.n_id[neighbour], drawn.node[drawn.mask])
        assert torch.equal(batch.n_id[target], targets[:, None].expand_as(drawn.node)[drawn.mask])
        assert torch.equal(batch.path, drawn.path[drawn.mask])
        torch.testing.assert_close(batch.log_probability, drawn.log_probability[drawn.mask].detach())
    assert number == 1


@pytest.mark.parametrize("negatives", [None, "binary", "triplet"])
def test_a_link_loader_gives_both_ends_of_every_link(data, negatives):
    data, transitions = data
    loader = LinkLoader(
        data,
        TransitionSampler(NeighbourSampler(transitions, sample_size=4)),
        edge_label_index=data.edge_index[:, :12],
        batch_size=6,
        neg_sampling=negatives,
    )
    for number, batch in enumerate(loader):
        given = data.edge_index[:, 6 * number : 6 * number + 6]
        if negatives == "triplet":
            found = torch.stack([batch.n_id[batch.src_index], batch.n_id[batch.dst_pos_index]])
            assert batch.dst_neg_index.shape == (6,)
        else:
            found = batch.n_id[batch.edge_label_index][:, :6]
            assert batch.edge_label_index.shape[1] == (12 if negatives else 6)
        assert torch.equal(found, given)
        assert batch.edge_index.max() < len(batch.n_id) and len(batch.edge_index[0]) > 6
    assert number == 1


def test_workers_give_what_one_process_gives(data):
    data, transitions = data
    sampler = TransitionSampler(NeighbourSampler(transitions, sample_size=4, mode="top"))
    settings = {"input_nodes": torch.arange(12), "batch_size": 6}
    alone, several = ([*NodeLoader(data, sampler, num_workers=count, **settings)] for count in (0, 2))
    assert all(torch.equal(one.edge_index, other.edge_index) for one, other in zip(alone, several, strict=True))
