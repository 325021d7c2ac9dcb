"""PyKEEN's models: they learn what is asked, are stopped as other peers are, and score all nodes as they score pairs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

from gatas.datasets import Dataset, Pairs
from gatas.errors import GatasError
from gatas.experiments.baselines.links import embeddings, fit_link_peer
from gatas.experiments.baselines.links.embedding_batches import training_loop
from gatas.experiments.baselines.links.embedding_settings import COMPLEX_M, COMPLEX_S, embedding_settings
from gatas.experiments.baselines.links.embeddings import EMBEDDINGS, KnowledgeGraphEmbedding, fit_embedding, loss_of
from gatas.experiments.baselines.links.triples import triples_of
from gatas.graph import Graph
from gatas.tasks.ranking import LinkRanking, ranking_metrics
from gatas.training.limit import Limit
from tests.experiments.baselines.links.toys import clubs, family, ranked_clubs

CPU = torch.device("cpu")
QUICK: dict[str, Any] = {"size": 16, "epochs": 30, "batch_size": 32, "learning_rate": 0.05, "every": 5}


def mrr(run):
    return ranking_metrics(LinkRanking.of_split(run.dataset, "test").ranks(run.model), run.dataset.names)["mrr"]


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings_rank_links(name):
    run = fit_link_peer(name, ranked_clubs(), 0, "cpu", **QUICK)
    assert "valid_mrr" in run.history[run.metrics["best_epoch"]] and "valid_mrr" not in run.history[0]
    assert mrr(run) > 0.5  # by chance 0.2


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_all_nodes_are_scored_as_pairs_are(name):
    dataset = family()
    settings = replace(embedding_settings(name, dataset), size=4, inverse=False)
    model = KnowledgeGraphEmbedding(name, dataset, settings, 0).eval()
    node, kind = torch.arange(18), torch.arange(18) % len(dataset.names)
    targets, sources = model.score_targets(node, kind), model.score_sources(node, kind)
    for other in range(18):
        same = torch.full_like(node, other)
        assert torch.allclose(targets[:, other], model.score_pairs(node, kind, same), atol=1e-5)
        assert torch.allclose(sources[:, other], model.score_pairs(same, kind, node), atol=1e-5)


def test_a_result_is_a_function_of_the_seed():
    settings: dict[str, Any] = {**QUICK, "epochs": 5}
    one, again, other = (fit_link_peer("complex", family(), seed, "cpu", **settings).metrics for seed in (1, 1, 2))
    torch.rand(3)
    assert one == again and one["valid"] != other["valid"]


def test_where_data_has_negatives_macro_roc_auc_stops_a_training():
    run = fit_link_peer("complex", clubs(), 0, "cpu", **QUICK)
    assert run.history[run.metrics["best_epoch"]]["valid_roc_auc"] == run.metrics["valid"]["roc_auc"] > 0.7


def test_a_training_that_is_cut_says_so_and_keeps_the_best_epoch():
    run = fit_embedding("transe", family(), 0, CPU, limit=Limit(epochs=3))
    assert run.metrics["cut"] == "3 epochs" and len(run.history) == 3 and run.metrics["best_epoch"] == 2


def test_without_pykeen_one_line_names_the_extra(monkeypatch):
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(GatasError, match=r"^rotate is PyKEEN's, which is not installed: pip install 'gatas\[pykeen\]'$"):
        fit_link_peer("rotate", family(), 0, "cpu")


@pytest.mark.filterwarnings("ignore:Training instances are always shuffled")
@pytest.mark.parametrize("kind", ["lcwa", "slcwa"])
def test_batches_on_the_device_hold_what_those_of_pykeen_do(kind):
    model = KnowledgeGraphEmbedding("complex", family(), replace(COMPLEX_S, size=4), 0)
    given = {"model": model.model, "triples_factory": model.triples, "optimizer": torch.optim.Adam(model.parameters())}
    asked: dict[str, Any] = {"batch_size": 7, "drop_last": False, "num_workers": 0, "shuffle": True, "sampler": None}
    own = training_loop(kind, **given)
    theirs = super(type(own), own)._create_training_data_loader(model.triples, **asked)

    def rows(loader):
        batches = list(loader)
        assert len(batches) == len(loader) and {len(batch[names[0]]) for batch in batches[:-1]} == {7}
        return sorted(tuple(row) for batch in batches for row in torch.cat([batch[name] for name in names], dim=1).tolist())

    names = ("pairs", "target") if kind == "lcwa" else ("positives",)
    theirs = DataLoader(theirs.dataset, batch_size=7) if kind == "lcwa" else theirs
    assert rows(own._create_training_data_loader(model.triples, **asked)) == rows(theirs)


def test_one_versus_all_is_the_mean_over_triples():
    loss = loss_of(COMPLEX_S)["loss"]
    scores = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[1.0, 0, 1, 1, 0], [0, 1, 0, 0, 0]])
    rows, targets = labels.nonzero().T
    assert torch.allclose(loss.process_lcwa_scores(scores, labels, 0.0, 5), F.cross_entropy(scores[rows], targets))


def test_triples_are_training_links_and_edges_of_other_types_as_directed():
    dataset = family()
    train, found = dataset.splits["train"], triples_of(dataset)
    links = np.stack([train.source, train.edge_type, train.target], axis=1)
    assert {*map(tuple, links.tolist())} <= {*map(tuple, found.tolist())}
    assert set(np.unique(found[:, 1])) == {0, 1, 2} and len(dataset.names) == 2  # siblings are never asked for
    assert len(np.unique(found, axis=0)) == len(found)


def test_settings_are_those_of_the_nearest_published_graph():
    assert embedding_settings("complex", clubs()).source.startswith("ours")
    small, large = (of_size(count) for count in (2_000, 20_000))
    assert embedding_settings("complex", small) == COMPLEX_S and embedding_settings("complex", large) == COMPLEX_M
    assert embedding_settings("rotate", large).source == embedding_settings("transe", small).source


def of_size(num_nodes):
    return Dataset.for_links(
        Graph.from_edges([0], [1], num_nodes=num_nodes), {"train": Pairs(*np.array([[0], [0], [1], [1]]))}, ("0",)
    )
