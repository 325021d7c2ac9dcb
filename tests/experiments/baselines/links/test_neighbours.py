"""Scores without training are what they are by definition."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from pytest import approx

from gatas.experiments.baselines.links.edges import typed_edges
from gatas.experiments.baselines.links.neighbours import HEURISTICS, AdamicAdar, CommonNeighbours, Popularity, fit_heuristic
from gatas.experiments.baselines.links.triples import triples_of
from tests.experiments.baselines.links.toys import NUM_NODES, clubs, family

CPU = torch.device("cpu")


def every_pair():
    source, target = np.triu_indices(NUM_NODES, 1)
    return torch.from_numpy(source), torch.from_numpy(target)


def test_adamic_adar_and_common_neighbours_equal_those_of_networkx():
    dataset = clubs()
    graph: Any = nx.Graph(list(zip(*typed_edges(dataset).untyped().tolist(), strict=True)))
    source, target = every_pair()
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    shared = CommonNeighbours(dataset).score_pairs(source, torch.zeros_like(source), target)
    assert shared.tolist() == [len(list(nx.common_neighbors(graph, *pair))) for pair in pairs]
    weighted = AdamicAdar(dataset).score_pairs(source, torch.zeros_like(source), target)
    assert weighted.tolist() == approx([score for _, _, score in nx.adamic_adar_index(graph, pairs)], rel=1e-5)


@pytest.mark.parametrize("name", ["common-neighbours", "adamic-adar"])
def test_ranking_and_pairs_have_the_same_scores(name):
    model = HEURISTICS[name](clubs())
    node = torch.arange(NUM_NODES)
    kind = torch.zeros_like(node)
    all_targets = model.score_targets(node, kind)
    pairs = model.score_pairs(node.repeat_interleave(NUM_NODES), kind.repeat(NUM_NODES), node.repeat(NUM_NODES))
    assert torch.allclose(all_targets.flatten(), pairs) and torch.equal(all_targets, model.score_sources(node, kind))


def test_popularity_counts_ends_of_links_of_a_type():
    dataset = family()
    model, triples = Popularity(dataset), triples_of(dataset)
    for kind in range(len(dataset.names)):
        sources, targets = (np.bincount(triples[triples[:, 1] == kind, end], minlength=18) for end in (0, 2))
        asked = torch.tensor([kind, kind]), torch.tensor([3, 4])
        assert model.score_sources(asked[1], asked[0]).tolist() == [sources.tolist()] * 2
        assert model.score_targets(asked[1], asked[0]).tolist() == [targets.tolist()] * 2


def test_a_run_without_training_has_every_metric():
    run = fit_heuristic("adamic-adar", clubs(), 5, CPU)
    assert run.seed == 5 and run.metrics["epochs"] == 1 and run.metrics["test"]["roc_auc"] > 0.9
    assert set(run.metrics["valid"]["gatne"]) == {"roc_auc", "pr_auc", "f1"}
