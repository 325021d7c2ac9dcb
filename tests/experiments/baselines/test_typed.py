"""Peers on typed graphs: R-GCN and HGT against direct computation, and embeddings of nodes without features."""

from typing import Any

import pytest
import torch
from pytest import approx
from torch.nn import functional as F

from gatas.errors import ConfigError
from gatas.experiments.baselines import PEERS, recipe_of, space_of
from gatas.experiments.baselines.hgt import HGT
from gatas.experiments.baselines.peer import featureless
from gatas.experiments.baselines.rgcn import RGCN
from gatas.experiments.contenders import check_models, is_for
from gatas.training.config import Config
from gatas.training.loop import fit_models
from tests.experiments.baselines.typed_toys import NUM_AUTHORS, NUM_PAPERS, authors_and_papers
from tests.tasks.toys import camps, labelled_graphs


def test_r_gcn_takes_the_mean_of_each_type():
    dataset = authors_and_papers()
    model = RGCN(dataset, hidden_size=4, num_layers=1, dropout=0.0, num_bases=2, embedding_size=3).eval()
    layer: Any = model.layers[0]
    weights = torch.einsum("rb,bio->rio", layer.comp, layer.weight)
    x = F.relu(model.first(model.with_embeddings(model.features)))
    found = x @ layer.root + layer.bias
    for kind in range(dataset.graph.num_edge_types):
        beside = torch.zeros(len(x), len(x))
        own = model.edge_values == kind
        beside[model.edges[1, own], model.edges[0, own]] = 1
        found = found + beside @ x / beside.sum(1, keepdim=True).clamp_min(1) @ weights[kind]
    expected = model.last(F.relu(found))[:NUM_AUTHORS]
    torch.testing.assert_close(model(torch.arange(NUM_AUTHORS)), expected, rtol=1e-4, atol=1e-5)


def test_hgt_gives_pygs_layer_nodes_and_edges_by_their_types():
    dataset = authors_and_papers()
    model = HGT(dataset, hidden_size=8, num_layers=1, num_heads=2, dropout=0.0, embedding_size=3).eval()
    assert model.sizes == {"n0": NUM_AUTHORS, "n1": NUM_PAPERS}
    x = model.with_embeddings(model.features)
    parts = {"n0": F.relu(model.first["n0"](x[:NUM_AUTHORS])), "n1": F.relu(model.first["n1"](x[NUM_AUTHORS:]))}
    graph, edges = dataset.graph, {}
    # PyG's layer takes edges in the order in which their types were given
    ends = {2: ("n0", 0, NUM_AUTHORS), 3: ("n0", 0, NUM_AUTHORS), 0: ("n1", NUM_AUTHORS, 0), 1: ("n1", NUM_AUTHORS, 0)}
    for kind, (name, start, end) in ends.items():
        own = torch.from_numpy(graph.edge_type == kind)
        both = torch.tensor(graph.neighbour.astype(int))[own] - start, torch.tensor(graph.source.astype(int))[own] - end
        edges[name, f"e{kind}", "n0" if name == "n1" else "n1"] = torch.stack(both)
    expected = model.last(model.layers[0](parts, edges)["n0"])
    torch.testing.assert_close(model(torch.arange(NUM_AUTHORS)), expected, rtol=1e-4, atol=1e-5)


def test_nodes_of_types_without_features_are_found():
    assert featureless(authors_and_papers()).tolist() == [False] * NUM_AUTHORS + [True] * NUM_PAPERS
    assert featureless(authors_and_papers(features="none")).all() and not featureless(camps()).any()


def test_embeddings_are_for_nodes_without_features_alone():
    model = PEERS["gcn"](authors_and_papers(), hidden_size=4, dropout=0.0, embedding_size=3)
    x = model.with_embeddings(model.features)
    assert x.shape == (NUM_AUTHORS + NUM_PAPERS, 4 + 3) and model.embedding.shape == (NUM_PAPERS, 3)
    assert (x[:NUM_AUTHORS, 4:] == 0).all() and torch.equal(x[NUM_AUTHORS:, 4:], model.embedding)
    assert not PEERS["gcn"](camps(), hidden_size=4, dropout=0.0, embedding_size=3).num_embedded


@pytest.mark.parametrize("name", ["gcn", "gat-norm", "gcnii", "pprgo", "grand", "nagphormer", "rgcn", "hgt"])
def test_a_peer_learns_from_edges_alone_where_nobody_has_features(name):
    dataset = authors_and_papers(features="none")
    model, training = recipe_of(name, dataset)
    assert model["embedding_size"] == 64
    small = {"hidden_size": 16} if "hidden_size" in model else {}
    peer = PEERS[name](dataset, **{**model, **small, "dropout": 0.0})
    training = training.model_copy(update={"epochs": 15, "learning_rate": 0.02})
    (run,) = fit_models([peer], dataset, Config(training=training), [0], device="cpu")
    assert run.history[-1]["loss"] < 0.9 * run.history[0]["loss"]
    if peer.num_embedded:
        assert run.model.embedding.shape == (NUM_AUTHORS + NUM_PAPERS, 64)


def test_a_search_may_leave_embeddings_out_where_others_have_features():
    assert space_of("rgcn", authors_and_papers())["embedding_size"] == (0, 64)
    assert "embedding_size" not in space_of("rgcn", authors_and_papers(features="none"))
    assert "embedding_size" not in space_of("gcn", camps())


def test_typed_peers_are_for_typed_graphs():
    assert is_for("rgcn", authors_and_papers()) and is_for("hgt", authors_and_papers())
    assert not is_for("rgcn", camps()) and is_for("gcn", camps())
    with pytest.raises(ConfigError, match="hgt is for graphs with types, and camps has neither"):
        check_models(["hgt"], [camps()])


def test_embeddings_start_at_the_scale_of_one():
    peer = PEERS["gcn"](authors_and_papers(features="none"), hidden_size=4, dropout=0.0, embedding_size=64)
    assert float(peer.embedding.detach().square().sum(1).mean()) == approx(1, rel=0.1)


@pytest.mark.parametrize("name", ["rgcn", "hgt", "grand", "nagphormer", "gcn-norm"])
def test_one_graph_of_several_is_seen_as_it_is_among_all(name):
    dataset = labelled_graphs(several=False)
    model, training = recipe_of(name, dataset)
    assert training.by_graph == (name != "grand")  # which looks at nodes of all graphs
    peer = PEERS[name](dataset, **model).eval()
    target, first = torch.tensor([9, 11]), torch.tensor([8, 8])  # the third ring
    torch.testing.assert_close(peer(target, first_node=first), peer(target))
