"""Held-out links ranked by a trained model."""

import numpy as np
import pytest
import torch
from pytest import approx

import gatas
from gatas.errors import GatasError
from gatas.inference import Predictor
from gatas.inference import ranking as module
from gatas.inference.ranking import HeadScorer
from gatas.tasks.ranking import LinkRanking


@pytest.mark.parametrize(("mode", "draws"), [("all", 1), ("sample", 3)])
@pytest.mark.parametrize("pairs", [5, 1 << 14])
def test_scores_order_nodes_as_the_probabilities_of_links_do(like_run, monkeypatch, mode, draws, pairs):
    monkeypatch.setattr(module, "PAIRS", pairs)
    predictor = Predictor(like_run.model, like_run.dataset, mode=mode, draws=draws)
    scorer, nodes = HeadScorer(predictor), np.arange(12)
    asked, kinds = np.array([3, 7]), np.array([0, 1])
    given = [torch.from_numpy(column) for column in (asked, kinds)]
    targets, sources = scorer.score_targets(*given).sigmoid(), scorer.score_sources(*given).sigmoid()
    for row, (node, kind) in enumerate(zip(asked, kinds, strict=True)):
        fixed, kinds_of = np.full(12, node), np.full(12, kind)
        assert targets[row].numpy() == approx(predictor.score_indices(fixed, kinds_of, nodes).probabilities, abs=1e-5)
        assert sources[row].numpy() == approx(predictor.score_indices(nodes, kinds_of, fixed).probabilities, abs=1e-5)


def test_a_predictor_ranks_the_links_of_a_split(like_run):
    predictor, shares = like_run.predictor, list[float]()
    found = predictor.evaluate_ranking("test", progress=shares.append)
    ranks = LinkRanking.of_split(like_run.dataset, "test").ranks(HeadScorer(predictor))
    both = np.concatenate([ranks.target, ranks.source])
    assert found["mrr"] == approx((1 / both).mean()) and found["hits_at_3"] == approx((both <= 3).mean())
    assert found["count"] == int((like_run.dataset.splits["test"].label == 1).sum())
    assert shares == sorted(shares) and shares[-1] == approx(1)
    assert predictor.evaluate_ranking("test", batch_size=1) == found


def test_new_nodes_are_not_ranked(like_run):
    extended = like_run.predictor.with_new_nodes(None, ([12], ["likes"], [0]))
    assert extended.evaluate_ranking("test") == like_run.predictor.evaluate_ranking("test")


def test_classes_of_nodes_cannot_be_ranked(camp_run):
    with pytest.raises(GatasError, match="the model predicts classes of nodes, not links"):
        camp_run.predictor.evaluate_ranking()


def test_a_run_is_loaded_with_other_neighbourhoods(kinship_folder):
    predictor = gatas.load(kinship_folder, device="cpu", mode="sample", draws=4)
    assert (predictor.mode, len(predictor.draws)) == ("sample", 4)
