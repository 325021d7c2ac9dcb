"""Paths that training never saw have weights where these come from factors: with new nodes, and with validation edges."""

from typing import Any

import numpy as np
import pytest
import torch

import gatas
from gatas.datasets import Dataset, Pairs
from gatas.graph import Graph
from gatas.inference import Predictor
from gatas.tasks import LinkPredictor
from tests.inference.test_link_parts import model_of, trained_on
from tests.tasks.toys import likes

EDGES = np.array([(0, 0, 1), (0, 0, 2), (0, 1, 2), (1, 0, 3), (3, 1, 2), (2, 1, 3)])
"""The first three are known in training: no path leads on from 1 or from 2, but back."""


def of_edges(count, num_nodes):
    source, kind, target = EDGES[:count].T
    graph = Graph.from_edges(source, target, kind, num_nodes=num_nodes, inverse=True, edge_type_names=["a", "b"])
    source, kind, target = EDGES[:3].T
    return Dataset.for_links(graph, {"train": Pairs(source, kind, target, np.ones(3, np.int8))}, ("a", "b"))


@pytest.fixture
def models(monkeypatch):
    """One made over the graph in training, one over all edges, with the same factors."""
    monkeypatch.setattr("gatas.nn.path_weights.TABLE_SIZE", 0)
    small, full = model_of(of_edges(3, 3), ("paths",)), model_of(of_edges(6, 4), ("paths",))
    with torch.no_grad():
        for one, other in zip(small.link_head.paths.parameters(), full.link_head.paths.parameters(), strict=True):
            other.copy_(one.normal_())
    assert set(small.link_head.path_ids.tolist()) < set(full.link_head.path_ids.tolist())
    return small, full


def every_link():
    nodes = np.arange(4)
    pairs = [(one, kind, other) for one in nodes for kind in ("a", "b") for other in nodes]
    return [list(column) for column in zip(*pairs, strict=True)]


def test_links_of_new_nodes_score_as_in_a_model_of_the_whole_graph(models):
    small, full = models
    there = Predictor(small, of_edges(3, 3))
    before = small.link_head.paths, there.predict_links([0, 1], ["a", "b"], [1, 2])
    columns = ([1, 3, 2], ["a", "b", "b"], [3, 2, 3])
    extended, expected = there.with_new_nodes(None, columns), Predictor(full, of_edges(6, 4))
    source, kinds, target = every_link()
    assert extended.predict_links(source, kinds, target) == pytest.approx(expected.predict_links(source, kinds, target))
    ends: list[dict[str, Any]] = [{"source": 3}, {"target": 3}]
    for end in ends:
        one, other = (
            predictor.rank_links(**end, edge_type="a", top=9, known="train").probabilities for predictor in (extended, expected)
        )
        assert one == pytest.approx(other)
    for link in ((0, "a", 3), (2, "a", 3)):
        explained: Any = extended.explain_link(*link)
        known: Any = expected.explain_link(*link)
        assert explained.answer.log_odds == pytest.approx(known.answer.log_odds)
        assert {path.name: path.value for path in explained.paths} == pytest.approx({p.name: p.value for p in known.paths})
    assert small.link_head.paths is before[0]
    assert np.array_equal(there.predict_links([0, 1], ["a", "b"], [1, 2]), before[1])


@torch.no_grad()
def test_a_graph_with_more_edges_is_scored_as_by_a_model_of_it(models):
    full = models[1]
    small = LinkPredictor(of_edges(3, 4), **full.config.model_dump())
    small.link_head.paths.load_state_dict(full.link_head.paths.state_dict())
    source, target = torch.cartesian_prod(torch.arange(4), torch.arange(4)).T
    empty, kinds = torch.empty(16, 0), torch.zeros(16, dtype=torch.int64)
    asked = (empty, empty, kinds, (source, target))
    before, ids = small.score(*asked), small.link_head.path_ids
    with small.looking_at(full.graph):
        torch.testing.assert_close(small.score(*asked), full.score(*asked))
    assert torch.equal(small.score(*asked), before) and torch.equal(small.link_head.path_ids, ids)


def test_where_weights_are_a_table_new_paths_have_none():
    small = model_of(of_edges(3, 3), ("paths",))
    assert small.link_head.paths.is_table
    there = Predictor(small, of_edges(3, 3))
    extended = there.with_new_nodes(None, ([1], ["a"], [3]))
    explained: Any = extended.explain_link(0, "b", 3)
    (only,) = explained.terms[1:]
    assert only.kind == "no path"


def test_validation_edges_are_learned_with(monkeypatch):
    monkeypatch.setattr("gatas.nn.path_weights.TABLE_SIZE", 0)
    run = trained_on(likes(), ("vectors", "paths"))
    assert np.isfinite(run.metrics["test"]["loss"])
    with run.model.looking_at(run.dataset.with_validation_edges().graph):
        assert isinstance(run.model, gatas.LinkPredictor)
