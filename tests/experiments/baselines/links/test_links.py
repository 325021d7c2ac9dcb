"""Link peers: every one learns, and what they are made of is what it says."""

from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

from gatas.errors import ConfigError, TrainingError
from gatas.experiments.baselines.links import LINK_PEERS, fit_link_peer, run_link_peer
from gatas.experiments.baselines.links.decoders import Bilinear, DistMult
from gatas.experiments.baselines.links.edges import typed_edges
from gatas.experiments.baselines.links.embeddings import EMBEDDINGS
from gatas.experiments.baselines.links.encoders import GATEncoder, GCNEncoder, RGCNEncoder
from gatas.experiments.baselines.links.gatne import GATNE
from gatas.experiments.baselines.links.mne import MNE
from gatas.experiments.baselines.links.mve import MVE
from gatas.experiments.baselines.links.neighbours import HEURISTICS
from gatas.experiments.baselines.links.runs import WALKERS
from gatas.experiments.baselines.links.scores import thresholds
from gatas.experiments.baselines.links.skipgram import (
    SkipGramSettings,
    cumulative_noise,
    of_type,
    shuffled,
    transformed,
)
from gatas.experiments.baselines.links.walks import Layers
from gatas.training.config import Config
from gatas.training.loop import fit_models
from tests.experiments.baselines.links.toys import NUM_NODES, clubs
from tests.tasks.toys import likes

QUICK: dict[str, Any] = {"device": "cpu", "size": 16, "epochs": 12, "batch_size": 100, "learning_rate": 0.03}
WALKS: dict[str, Any] = {"epochs": 5, "num_walks": 3, "batch_size": 64, "learning_rate": 0.01}


def settings_of(name):
    if name in HEURISTICS:
        return {"device": "cpu"}
    if name in EMBEDDINGS:
        return {**QUICK, "epochs": 30, "batch_size": 32, "learning_rate": 0.05}
    return {**QUICK, **WALKS} if name in WALKERS else {**QUICK, "size": 20} if name == "rgcn" else QUICK


@pytest.mark.parametrize("name", [name for name in LINK_PEERS if name != "popularity"])
def test_every_peer_tells_links_from_other_pairs(name):
    (result,) = run_link_peer(name, clubs(), [3], **settings_of(name))
    assert result.seed == 3
    assert result.test["roc_auc"] > 0.7
    assert result.test["f1"] > 0.6
    assert set(result.test["gatne"]) == {"roc_auc", "pr_auc", "f1"}


@pytest.mark.parametrize("name", ["gcn-bilinear", "rgcn-distmult", "mve", "gatne-t"])
def test_a_result_is_a_function_of_the_seed(name):
    settings = {**settings_of(name), "epochs": 2}
    first, other = run_link_peer(name, clubs(), [1, 2], **settings)
    torch.rand(7)  # whatever torch's own generator has been used for
    (again,) = run_link_peer(name, clubs(), [1], **settings)
    assert again == first
    assert other.valid != first.valid


@pytest.mark.parametrize("kind", [GCNEncoder, GATEncoder, RGCNEncoder])
def test_peers_of_several_seeds_learn_side_by_side(kind):
    dataset = clubs()
    models = [kind(dataset, "bilinear", size=8, seed=seed) for seed in (0, 1)]
    training = {"epochs": 10, "batch_size": 100, "optimiser": "adam", "learning_rate": 0.03}
    runs = fit_models(models, dataset, Config.model_validate({"training": training}), [0, 1], device="cpu")
    assert all(run.metrics["valid"]["roc_auc"] > 0.6 for run in runs)
    one, other = (run.model.state_dict()["embedding"] for run in runs)
    assert not torch.equal(one, other)


def test_walkers_that_diverge_say_so_in_one_line():
    with pytest.raises(TrainingError, match=r"the loss became .* in epoch \d, seed 4\. Try a smaller learning_rate\.$"):
        fit_link_peer("mne", clubs(), 4, **{**QUICK, **WALKS, "learning_rate": 1e38})


def test_an_epoch_has_every_pair_at_most_once_and_negatives_for_each_step():
    pairs = torch.arange(30).view(3, 10)
    settings = SkipGramSettings(batch_size=4, num_negatives=2)
    batches = shuffled(pairs, torch.tensor([0.0, 1.0]).double(), settings, torch.Generator().manual_seed(0))
    assert batches["centre"].shape == (2, 4) and batches["negatives"].tolist() == [[1, 1]] * 2
    seen = batches["centre"].flatten()
    assert len(seen.unique()) == 8
    assert torch.equal(batches["edge_type"].flatten(), seen + 10) and torch.equal(batches["context"].flatten(), seen + 20)


@pytest.mark.parametrize("kind", WALKERS.values())
def test_a_walkers_step_makes_no_tensor_elsewhere_and_never_waits_for_the_host(kind):
    layers = Layers.of(typed_edges(clubs()), torch.device("cpu"))
    model = kind(layers, 8, torch.ones(NUM_NODES), torch.Generator().manual_seed(0)).to("meta")
    batch, negatives = (torch.empty(size, dtype=torch.int64, device="meta") for size in (4, 5))
    model(batch, batch, batch, negatives).backward()
    assert all(parameter.grad.device.type == "meta" for parameter in model.parameters())


def test_a_pair_is_contrasted_with_the_negatives_of_its_step():
    #   e = (1, 0), (0, 2)   contexts: own (3, 1), (1, 1)   negatives (1, 0), (0, −1)
    #   true 3, 2            false 1, 0 and 0, −2
    layers = Layers.of(typed_edges(likes()), torch.device("cpu"))
    model = MNE(layers, 2, torch.ones(12), torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.context[:4] = torch.tensor([[3.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    loss = model.contrast(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1]), torch.tensor([2, 3]))
    terms = [np.log1p(np.exp(-true)) for true in (3, 2)] + [np.log1p(np.exp(false)) for false in (1, 0, 0, -2)]
    assert loss.item() == approx(sum(terms) / 2)


def test_an_unknown_peer_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match="gatne-t"):
        fit_link_peer("gatne", clubs(), 0)


def test_a_bilinear_score_is_the_product_with_the_matrix_of_its_type():
    decoder = Bilinear(2, 2)
    with torch.no_grad():
        decoder.weight.copy_(torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [-1.0, 0.0]]]))
    source, target = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[3.0, 5.0], [3.0, 5.0]])
    # [1 2] [1 2; 3 4] = [7 10], · [3 5] = 71        [1 2] [0 1; -1 0] = [-2 1], · [3 5] = -1
    assert decoder(source, target, torch.tensor([0, 1])).tolist() == [71, -1]


def test_a_distmult_score_is_the_sum_weighted_by_its_type():
    decoder = DistMult(2, 2)
    with torch.no_grad():
        decoder.weight.copy_(torch.tensor([[1.0, 1.0], [2.0, -1.0]]))
    source, target = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[3.0, 5.0], [3.0, 5.0]])
    assert decoder(source, target, torch.tensor([0, 1])).tolist() == [13, -4]


def test_edges_go_both_ways_once_under_the_numbers_of_the_types_asked_for():
    dataset = likes()  # with inverse types
    edges = typed_edges(dataset)
    rows = list(zip(edges.edge_type, edges.source, edges.target, strict=True))
    train = dataset.splits["train"]
    links = {*zip(train.edge_type, train.source, train.target, strict=True)}
    assert edges.num_types == 2
    assert rows == sorted(links | {(kind, target, source) for kind, source, target in links})
    assert edges.indptr[12 + 1] - edges.indptr[12] == 1  # node 0 knows one other
    pairs = edges.untyped()
    assert {*zip(*pairs, strict=True)} == {(source, target) for _, source, target in rows}


def test_encoders_see_no_links_of_validation_and_test():
    dataset = clubs()
    known = {*zip(*GCNEncoder(dataset, "bilinear", size=4).edges.tolist(), strict=True)}
    train = dataset.splits["train"]
    pairs = {*zip(train.source, train.target, strict=True)}
    loops = {(node, node) for node in range(NUM_NODES)}
    assert known == pairs | {(target, source) for source, target in pairs} | loops


def test_a_vector_is_transformed_by_the_matrix_of_its_type():
    generator = torch.Generator().manual_seed(0)
    vectors, matrices = torch.randn(5, 3, generator=generator), torch.randn(2, 3, 4, generator=generator)
    edge_type = torch.tensor([0, 1, 1, 0, 1])
    expected = torch.stack([vector @ matrices[kind] for vector, kind in zip(vectors, edge_type, strict=True)])
    torch.testing.assert_close(transformed(vectors, edge_type, matrices), expected)
    assert torch.equal(of_type(matrices, edge_type, torch.tensor([2, 0, 1, 1, 0])), matrices[edge_type, [2, 0, 1, 1, 0]])


def test_gatne_embeddings_have_length_one_and_contexts_are_corrected_for_how_often_they_are_drawn():
    generator = torch.Generator().manual_seed(0)
    layers = Layers.of(typed_edges(likes()), torch.device("cpu"))
    model = GATNE(layers, 8, torch.full((12,), 0.5), generator)
    node, edge_type = torch.tensor([0, 5]), torch.tensor([1, 0])
    torch.testing.assert_close(model.embed(node, edge_type).norm(dim=1), torch.ones(2))
    with torch.no_grad():
        model.bias[5] = 3.0
    assert model.offset(node).tolist() == approx([np.log(2), 3 + np.log(2)])


def test_mve_votes_are_over_views_that_a_node_has_edges_in():
    layers = Layers.of(typed_edges(clubs()), torch.device("cpu"))
    model = MVE(layers, 4, torch.ones(NUM_NODES), torch.Generator().manual_seed(0))
    robust = model.final(torch.tensor([0, 2]), torch.tensor([0, 1]))  # club 0 has both views, club 2 is friends only
    torch.testing.assert_close(robust, torch.stack([model.views[0].mean(0), model.views[2, 0]]))


def test_negatives_are_drawn_by_count_or_by_rank():
    counts = torch.tensor([1, 16, 0])
    assert cumulative_noise(counts, "power").diff(prepend=torch.zeros(1)).tolist() == approx([1 / 9, 8 / 9, 0])
    weight = np.log([3 / 2, 2, 4 / 3])  # ranks 1, 0, 2
    found = cumulative_noise(counts, "log-uniform").diff(prepend=torch.zeros(1))
    assert found.tolist() == approx(list(weight / weight.sum()))


def test_as_many_validation_pairs_are_accepted_as_are_links():
    dataset = clubs()
    pairs = dataset.splits["valid"]
    scores = torch.rand(len(pairs), generator=torch.Generator().manual_seed(0))
    accepted = (scores > thresholds(scores, dataset)[torch.from_numpy(np.array(pairs.edge_type))]).numpy()
    for kind in (0, 1):
        assert accepted[pairs.edge_type == kind].sum() == pairs.label[pairs.edge_type == kind].sum()
