"""Scorers of peers give every pair the score that the model gives it."""

from functools import partial

import pytest
import torch

from gatas.experiments.baselines.links import fit_link_peer
from gatas.experiments.baselines.links.encoders import BlockRGCNEncoder, GCNEncoder, RGCNEncoder
from gatas.experiments.baselines.links.scorers import DecoderScorer, PairScorer, scorer_of
from gatas.tasks import LinkPredictor
from gatas.tasks.ranking import LinkRanking, ranking_metrics
from tests.experiments.baselines.links.toys import NUM_NODES, clubs, family

CPU = torch.device("cpu")
NODES = torch.arange(NUM_NODES)


def expected(score, node, kind, *, as_source):
    """(B, N) by asking for one pair after another."""
    rows = []
    for own, asked in zip(node.tolist(), kind.tolist(), strict=True):
        ends = (NODES, torch.full_like(NODES, own)) if as_source else (torch.full_like(NODES, own), NODES)
        rows.append(score(*ends, torch.full_like(NODES, asked)))
    return torch.stack(rows)


def check(scorer, score):
    node, kind = torch.tensor([0, 7, 7, 29]), torch.tensor([0, 0, 1, 1])
    assert torch.allclose(scorer.score_targets(node, kind), expected(score, node, kind, as_source=False), atol=1e-5)
    assert torch.allclose(scorer.score_sources(node, kind), expected(score, node, kind, as_source=True), atol=1e-5)


@pytest.mark.parametrize("kind", [GCNEncoder, RGCNEncoder, BlockRGCNEncoder])
@pytest.mark.parametrize("decoder", ["bilinear", "distmult"])
def test_encoders_score_all_nodes_by_one_product(kind, decoder):
    model = kind(clubs(), decoder, size=10)
    scorer = scorer_of(model, NUM_NODES, CPU)
    encoded = model.encode().detach()
    assert isinstance(scorer, DecoderScorer)
    check(scorer, lambda source, target, asked: model.score(encoded[source], encoded[target], asked).detach())


@pytest.mark.parametrize("name", ["mve", "mne", "gatne-t"])
def test_walkers_score_all_nodes_by_cosines(name):
    run = fit_link_peer(name, clubs(), 0, "cpu", size=8, epochs=1, num_walks=1)
    check(scorer_of(run.model, NUM_NODES, CPU), lambda source, target, asked: run.model.score(source, asked, target))


def test_any_other_model_scores_all_pairs_of_representations():
    model = LinkPredictor(
        clubs(), link_score=("pair",), num_steps=2, sample_size=5, num_heads=1, node_embedding_size=4, pair_hidden_size=8
    )
    scorer = scorer_of(model, NUM_NODES, CPU, draw=torch.tensor(-1), mode="all")
    assert isinstance(scorer, PairScorer)
    represent = partial(model.eval().represent, draw=torch.tensor(-1), mode="all")
    check(scorer, lambda source, target, asked: model.score(represent(source), represent(target), asked).detach())


@pytest.mark.parametrize("name", ["gcn-bilinear", "rgcn-distmult", "rgcn"])
def test_encoders_of_ranked_data_are_stopped_by_mrr_and_learn(name):
    dataset = family()
    run = fit_link_peer(name, dataset, 0, "cpu", size=20, epochs=60, batch_size=64)
    ranks = LinkRanking.of_split(dataset, "valid").ranks(scorer_of(run.model, dataset.graph.num_nodes, CPU))
    measured = ranking_metrics(ranks, dataset.names)["mrr"]
    assert run.history[run.metrics["best_epoch"]]["valid_mrr"] == pytest.approx(measured)
    assert measured > 0.3 and run.metrics["test"]["roc_auc"] > 0.5


def test_links_are_ranked_where_data_came_without_negatives(tmp_path):
    assert family().ranked and not clubs().ranked
    assert family(folder=tmp_path).ranked and not family(folder=tmp_path, negatives=True).ranked
