"""Every peer learns by our loop, alone and beside others of its kind."""

from typing import Any

import pytest
import torch
from pytest import approx
from torch_geometric.nn import GATConv

from gatas.errors import ConfigError
from gatas.experiments.baselines import PEERS, recipe_of, seeded
from gatas.experiments.baselines.gat import DroppingGATConv
from gatas.experiments.baselines.peer import edges_of
from gatas.training.config import Config
from gatas.training.limit import Limit
from gatas.training.loop import fit_models
from tests.tasks.toys import camps, labelled_graphs, likes

CITATIONS = ("cora", "citeseer", "pubmed")
NORMALISED = ("mlp-norm", "gcn-norm", "sage-norm", "gat-norm")
SEVERAL = ("mlp", "sage", "gat", "gatv2", "gcnii", *NORMALISED)
RANDOM = ("sgat", "grand")  # gates, or the nodes that are dropped, are drawn whatever the dropout is
ON_HOST = ("rgcn", "hgt", "grand")  # PyG's layers choose rows by type on the host; GRAND's matrix is sparse
NO_LIMIT, TEN = Limit(), Limit(epochs=10)
SMALL: dict[str, dict[str, Any]] = {
    "gcnii": {"num_layers": 4, "hidden_size": 16},
    "nagphormer": {"hidden_size": 16, "attention_dropout": 0.0},
    **{name: {"num_layers": 2, "hidden_size": 16} for name in NORMALISED},
}


def made(name, dataset, **more):
    model, training = recipe_of(name, dataset)
    peer = PEERS[name](dataset, **{**model, **SMALL.get(name, {}), **more})
    changed = {"monitor": "loss"} if training.monitor == "metric" else {}  # accuracies of ten nodes say little
    return peer, training.model_copy(update={"epochs": 30, "learning_rate": 0.02, **changed})


def trained(name, dataset, seeds, limit=NO_LIMIT, **more):
    peer, training = made(name, dataset, **more)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return fit_models(seeded(peer, seeds), dataset, Config(training=training), seeds, device="cpu", limit=limit)


@pytest.mark.filterwarnings("ignore:the training loss rose")
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns_a_toy_alone_and_beside_others(name):
    dataset = camps()
    (alone,) = trained(name, dataset, [0], dropout=0.1)
    assert alone.history[-1]["loss"] < 0.8 * alone.history[0]["loss"]
    assert alone.metrics["test"]["accuracy"] > 0.6
    for run in trained(name, dataset, [0, 1], dropout=0.1) if PEERS[name].vmaps else ():
        assert run.history[-1]["loss"] < 0.8 * run.history[0]["loss"]
        assert run.metrics["valid"]["accuracy"] > 0.6


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.vmaps and name not in RANDOM])
def test_peers_side_by_side_learn_what_each_learns_alone(name):
    for run in trained(name, camps(), [0, 1], TEN, dropout=0.0):
        (alone,) = trained(name, camps(), [run.seed], TEN, dropout=0.0)
        assert len(alone.history) == 10
        assert [entry["loss"] for entry in run.history] == approx([entry["loss"] for entry in alone.history], rel=1e-2)


@pytest.mark.parametrize("name", SEVERAL)
def test_a_peer_learns_several_labels_on_several_graphs(name):
    dataset = labelled_graphs()
    sizes = {"hidden_size": 8, "num_layers": 2} if name in SMALL else {"hidden_sizes": (16, 16)}
    peer, training = made(name, dataset, **sizes)
    assert not peer.vmaps and training.by_graph
    (run,) = fit_models([peer], dataset, Config(training=training), [0], device="cpu")
    assert run.history[-1]["loss"] < 0.8 * run.history[0]["loss"]


@pytest.mark.parametrize("name", SEVERAL)
def test_one_graph_of_several_is_seen_as_it_is_among_all(name):
    dataset = labelled_graphs()
    sizes = {"hidden_size": 8, "num_layers": 2} if name in SMALL else {"hidden_sizes": (16, 16)}
    peer, _ = made(name, dataset, **sizes)
    target, first = torch.tensor([9, 11]), torch.tensor([8, 8])  # the third ring
    with torch.no_grad():
        torch.testing.assert_close(peer.eval()(target, first_node=first), peer(target))


@pytest.mark.parametrize("name", PEERS)
def test_weights_are_a_function_of_the_seed(name):
    peer, _ = made(name, camps())
    first, second, again = (one.state_dict() for one in seeded(peer, [3, 4, 3]))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], second[key]) for key in first)
    assert "features" not in first and "edges" not in first


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_has_settings_for_every_citation_network(name):
    assert set(CITATIONS) <= set(PEERS[name].recipes)
    for recipe in PEERS[name].recipes.values():
        assert recipe.training.optimiser == "adam" and recipe.training.max_norm is None


def test_only_some_have_settings_for_several_labels():
    assert {name for name, peer in PEERS.items() if "ppi" in peer.recipes} == set(SEVERAL)
    with pytest.raises(ConfigError, match="gcn has no settings for multi-label data"):
        recipe_of("gcn", labelled_graphs())


def test_a_peer_needs_features():
    with pytest.raises(ConfigError, match="likes has no features"):
        PEERS["gcn"](likes(), hidden_size=4, dropout=0.5)


def test_rows_of_features_can_be_made_to_sum_to_one():
    peer, _ = made("mlp", camps())
    scaled, _ = made("mlp", camps(), rows_sum_to_one=True)
    positive = peer.features.sum(1) > 0
    assert scaled.features.sum(1)[positive].tolist() == approx([1] * int(positive.sum()), abs=1e-4)
    assert torch.equal(scaled.features[~positive], peer.features[~positive])


def test_only_features_that_are_there_are_dropped_each_on_its_own():
    peer, _ = made("mlp", camps(), dropout=0.25)
    assert torch.equal(peer.eval().dropped_features(), peer.features)
    filled = peer.features != 0
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = torch.stack([peer.train().dropped_features() for _ in range(1000)])
    kept = dropped != 0
    torch.testing.assert_close(dropped, kept * peer.features / 0.75)
    often = kept.float().mean(0)[filled]
    assert not kept[:, ~filled].any() and ((often - 0.75).abs() < 5 * (0.1875 / 1000) ** 0.5).all()


def test_peers_side_by_side_drop_different_features():
    peer, _ = made("mlp", camps(), dropout=0.5)
    drop = torch.vmap(lambda _: peer.train().dropped_features(), randomness="different")
    first, second = drop(torch.zeros(2))
    assert not torch.equal(first, second)


def test_gcnii_starts_within_the_bound_of_its_authors():
    peer, _ = made("gcnii", camps())
    largest = max(float(layer.weight1.detach().abs().max()) for layer in peer.layers)
    assert 0.9 / 4 < largest <= 1 / 4  # 1 / √16


@pytest.mark.parametrize(("name", "monitor"), [("gat", "both"), ("gatv2", "both"), ("appnp", "either")])
def test_patience_of_some_counts_from_loss_or_accuracy(name, monitor):
    assert {PEERS[name].recipes[data].training.monitor for data in CITATIONS} == {monitor}


def test_only_some_are_not_captured():
    assert {name for name, peer in PEERS.items() if not peer.captures} == set(ON_HOST)


@pytest.mark.parametrize("name", [name for name in PEERS if name not in ON_HOST])
def test_a_step_makes_no_tensor_elsewhere_and_never_waits_for_the_host(name):
    peer, _ = made(name, camps())
    peer.to("meta").train()  # has no values to wait for, and mixes with no other device
    logits = peer(torch.empty(4, dtype=torch.int64, device="meta"))
    loss, penalty = logits.sum(), peer.penalty()
    (loss if penalty is None else loss + penalty).backward()
    assert peer.captures and all(parameter.grad.device.type == "meta" for parameter in peer.parameters())


def test_edges_point_to_the_node_that_looks():
    edges = edges_of(likes(inverse=False))
    assert [0, 11] in edges.T.tolist() and [11, 0] not in edges.T.tolist()  # 11 likes 0, so 11 looks at 0


def test_decay_is_for_the_layers_that_the_papers_say():
    gcn, gcnii = made("gcn", camps())[0], PEERS["gcnii"](camps(), **{**PEERS["gcnii"].recipes["cora"].model, "num_layers": 2})
    assert {name: gcn.l2_share(name) for name in gcn.state_dict() if "weight" in name} == {
        "first.lin.weight": 1, "second.lin.weight": 0,
    }  # fmt: skip
    assert gcnii.l2_share("layers.0.weight1") == 1 and gcnii.l2_share("first.weight") == approx(0.05)


def test_gcnii_sees_the_same_along_edges_and_by_a_matrix():
    peer, _ = made("gcnii", labelled_graphs(), hidden_size=8, num_layers=2)
    peer.eval()
    found = {}
    for peer.vmaps in (False, True):
        logits = peer(torch.arange(12))
        found[peer.vmaps] = logits, *torch.autograd.grad(logits.square().sum(), list(peer.parameters()))
    for by_matrix, along_edges in zip(*found.values(), strict=True):
        torch.testing.assert_close(by_matrix, along_edges, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("concat", [True, False])
def test_gat_is_pygs_but_for_what_it_drops(concat):
    edges = edges_of(camps())
    layer = DroppingGATConv(6, 4, 3, concat=concat, dropout=0.5, add_self_loops=False)
    same = GATConv(6, 4, 3, concat=concat, dropout=0.5, add_self_loops=False)
    same.load_state_dict(layer.state_dict())
    x = torch.randn(int(edges.max()) + 1, 6)
    torch.testing.assert_close(layer.eval()(x, edges), same.eval()(x, edges))


def test_gat_drops_attention_and_what_is_sent():
    layer = DroppingGATConv(6, 4, 3, dropout=0.5, add_self_loops=False)
    x, one = torch.randn(2, 6), torch.tensor([[0], [1]])
    shares = torch.stack([layer(x, one)[1] for _ in range(100)]) / layer.lin(x)[0]  # the attention to the only neighbour is 1
    assert set(shares.round().flatten().tolist()) == {0.0, 4.0}
