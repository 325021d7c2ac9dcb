"""How far walks go where settings leave it open."""

import numpy as np
import pytest

import gatas
from gatas.datasets import Dataset
from gatas.graph import Graph
from gatas.tasks import NodeClassifier
from gatas.tasks.walk_limits import WalkLimits, count_walks
from gatas.transitions.cost import entry_bytes
from tests.tasks.toys import camps


def around_a_hub(num_nodes=400):
    """Nodes in a ring, all of them beside one hub."""
    ring = np.arange(1, num_nodes)
    source, target = np.concatenate([ring, ring]), np.concatenate([np.roll(ring, 1), np.zeros_like(ring)])
    graph = Graph.from_edges(source, target, num_nodes=num_nodes, undirected=True)
    splits = {"train": np.arange(20), "valid": np.arange(20, 40)}
    features = np.random.default_rng(0).normal(size=(num_nodes, 3)).astype(np.float32)
    return Dataset.for_nodes(graph, np.arange(num_nodes) % 2, splits, class_names=("a", "b"), features=features, name="hub")


def test_nodes_have_three_steps_through_all_nodes_where_these_fit():
    config = NodeClassifier(camps()).config
    assert config.num_steps == 3 and config.max_degree is None


@pytest.mark.parametrize("bound", ["MOST_ENTRIES", "MOST_LOOKS"])
def test_a_graph_with_a_hub_is_trained_past_it(monkeypatch, bound, capsys):
    dataset = around_a_hub()
    monkeypatch.setattr(f"gatas.tasks.walk_limits.{bound}", 20_000)
    model = NodeClassifier(dataset, sample_size=5)
    assert model.config.num_steps == 2 and model.config.max_degree == 256
    assert not WalkLimits(dataset.graph, links=False).fits(2, None)
    run = gatas.fit(model, dataset, seed=0, device="cpu", epochs=1, progress=True)
    said = capsys.readouterr().err
    assert "num_steps: 2, since the walks of three are too many\nmax_degree: 256, since" in said
    assert run.config.model.num_steps == 2


def test_settings_that_are_given_stay():
    config = NodeClassifier(camps(), num_steps=1, max_degree=3).config
    assert config.num_steps == 1 and config.max_degree == 3


@pytest.mark.parametrize("links", [True, False])
def test_tables_of_links_fit_into_half_of_the_memory(monkeypatch, links):
    graph = around_a_hub().graph
    limits, needed = WalkLimits(graph, links=links), 3 * count_walks(graph, 2, None) * entry_bytes(graph.num_relations, 2)
    monkeypatch.setattr("gatas.tasks.walk_limits.total_memory", lambda: int(2 * needed))
    assert limits.degree(2) is None
    monkeypatch.setattr("gatas.tasks.walk_limits.total_memory", lambda: int(2 * needed) - 1)
    assert limits.degree(2) == (256 if links else None)
