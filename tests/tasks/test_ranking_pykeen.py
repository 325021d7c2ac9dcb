"""Ranking is that of PyKEEN's RankBasedEvaluator: filtered, both ends, realistic ranks."""

import logging

import numpy as np
import pytest
import torch
from pytest import approx

from gatas.datasets.held_out import IndexedPairs
from gatas.tasks.ranking import LinkRanking, ranking_metrics
from tests.tasks.test_ranking import Table

METRICS = {"mrr": "inverse_harmonic_mean_rank", "hits_at_1": "hits_at_1", "hits_at_3": "hits_at_3", "hits_at_10": "hits_at_10"}
SIDES = {"target": "tail", "source": "head"}


@pytest.fixture(scope="module")
def pykeen(tmp_path_factory):
    """Import PyKEEN, which makes a folder for data sets where it is told to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSTOW_HOME", str(tmp_path_factory.mktemp("pystow")))
        yield pytest.importorskip("pykeen", exc_type=ImportError)


def looked_up(factory, scores):
    """Make a PyKEEN model that looks scores up."""
    from pykeen.models.mocks import FixedModel

    class LookedUp(FixedModel):
        def _generate_fake_scores(self, h, r, t):
            return scores[tuple(torch.broadcast_tensors(r, h, t))]

    return LookedUp(triples_factory=factory)


def indexed(triples, num_nodes):
    source, kind, target = triples.numpy().T.astype(np.int64)
    return IndexedPairs(source, kind, target, num_nodes)


@pytest.mark.parametrize("name", ["Nations", "UMLS"])
@pytest.mark.parametrize("num_scores", [None, 3])
def test_metrics_are_those_of_pykeen(pykeen, name, num_scores):
    from pykeen import datasets
    from pykeen.evaluation import RankBasedEvaluator

    logging.getLogger("pykeen").setLevel(logging.ERROR)
    dataset = getattr(datasets, name)()
    training, validation, testing = (part.mapped_triples for part in (dataset.training, dataset.validation, dataset.testing))
    shape = (dataset.num_relations, dataset.num_entities, dataset.num_entities)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator)
    if num_scores is not None:
        scores = torch.randint(num_scores, shape, generator=generator).float()
    expected = RankBasedEvaluator(filtered=True).evaluate(
        looked_up(dataset.training, scores),
        testing,
        batch_size=64,
        use_tqdm=False,
        additional_filter_triples=[training, validation],
    )
    asked = indexed(testing, dataset.num_entities)
    known = indexed(torch.cat([training, validation, testing]), dataset.num_entities)
    ranks = LinkRanking(asked, known).ranks(Table(scores), 50)
    found = ranking_metrics(ranks, tuple(map(str, range(dataset.num_relations))))
    for ours, theirs in METRICS.items():
        assert found[ours] == approx(expected.get_metric(f"both.realistic.{theirs}"), abs=1e-6)
        for side, called in SIDES.items():
            assert found["by_direction"][side][ours] == approx(expected.get_metric(f"{called}.realistic.{theirs}"), abs=1e-6)
    means = [expected.get_metric(f"{called}.realistic.arithmetic_mean_rank") for called in SIDES.values()]
    assert [ranks.target.mean(), ranks.source.mean()] == approx(means, rel=1e-6)
