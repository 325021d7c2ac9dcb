"""How far walks go where settings leave it open."""

import numpy as np
import pytest

import gatas
from gatas.datasets import Dataset
from gatas.graph import Graph
from gatas.tasks import NodeClassifier
from gatas.tasks.config import ModelConfig
from gatas.tasks.link_paths import count_paths
from gatas.tasks.walk_limits import WalkLimits, count_walks, resolved
from gatas.training import Config
from gatas.transitions import OnDemand, Transitions
from gatas.transitions.ahead import ReadAhead
from gatas.transitions.cost import entry_bytes, estimate_cost
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


def of_memory(monkeypatch, num_bytes):
    """A machine that has so much memory, all of it free."""
    for module in ("gatas.tasks.walk_limits.total_memory", "gatas.transitions.cost.available_memory"):
        monkeypatch.setattr(module, lambda: int(num_bytes))


def needed(dataset, num_steps, **limits):
    return estimate_cost(dataset.graph, num_steps, **limits).num_bytes


def trained(dataset, **settings):
    run = gatas.fit(NodeClassifier(dataset, sample_size=5, seed=0, **settings), dataset, seed=0, device="cpu", epochs=2)
    return run.model, run.metrics


def test_nodes_have_fewer_steps_where_a_table_of_three_does_not_fit_into_half_of_the_memory(monkeypatch):
    dataset = camps()
    of_memory(monkeypatch, 2 * needed(dataset, 3))
    assert NodeClassifier(dataset).config.num_steps == 3
    of_memory(monkeypatch, 2 * needed(dataset, 3) - 1)
    model, _ = trained(dataset)
    assert model.config.num_steps == 2 and model.config.max_degree is None and model.config.max_candidates is None


def test_nodes_keep_the_likeliest_candidates_where_no_limit_on_degrees_is_enough(monkeypatch):
    dataset = camps(300)
    monkeypatch.setattr("gatas.tasks.walk_limits.CANDIDATES", (16, 8, 4))
    of_memory(monkeypatch, 2 * needed(dataset, 2, max_candidates=8, max_degree=16))
    model, _ = trained(dataset)
    assert (model.config.num_steps, model.config.max_degree, model.config.max_candidates) == (2, 16, 8)
    assert model.choices[-1] == "max_candidates: 8, since a table of all does not fit into memory"
    assert isinstance(model.transitions, Transitions)
    assert NodeClassifier(dataset, num_steps=2, max_degree=None).config.max_candidates is None  # what is given stays


@pytest.mark.parametrize("seeds", [1, 2])
def test_nodes_of_a_machine_with_next_to_no_memory_are_learned_on_demand(monkeypatch, seeds):
    dataset = camps(300)
    of_memory(monkeypatch, 2 * needed(dataset, 1, max_degree=16, max_candidates=4))
    runs = gatas.fit_many(Config(training={"epochs": 2}), range(seeds), dataset=dataset, device="cpu")
    model = runs[-1].model
    assert isinstance(model.transitions, ReadAhead) and not model.captures
    assert runs[0].model.choices[-1].startswith("transitions: made on demand for each batch, since a table")


def test_steps_with_rows_on_demand_are_not_captured():
    dataset = camps()
    assert not NodeClassifier(dataset, transitions=OnDemand(dataset.graph, 2), num_steps=2).captures
    assert NodeClassifier(dataset, transitions=Transitions.build(dataset.graph, 2), num_steps=2).captures


def test_rows_on_demand_change_nothing(monkeypatch):
    dataset = camps(300)
    table = trained(dataset, num_steps=3, max_degree=None)
    assert isinstance(table[0].transitions, Transitions)
    of_memory(monkeypatch, 0.8 * table[0].transitions.num_bytes)
    model, metrics = trained(dataset, num_steps=3, max_degree=None)
    assert isinstance(model.transitions, ReadAhead)
    assert metrics == table[1] and model.choices[-1].startswith("transitions: made on demand")


def test_tables_of_links_keep_the_likeliest_candidates_where_memory_asks_for_it(monkeypatch):
    dataset, config = around_a_hub(), ModelConfig(num_steps=2, max_degree="auto")
    walks = count_walks(dataset.graph, 2, 16, 64)
    of_memory(monkeypatch, 2 * 3 * walks * entry_bytes(dataset.graph.num_relations, 2))
    found = resolved(config, WalkLimits(dataset.graph, True))
    assert found.config.max_degree == 16 and found.config.max_candidates == 64 and not found.on_demand


def of_types(num_types, num_nodes=200, num_edges=600):
    """A sparse graph with as many types of links as a knowledge graph may have."""
    generator = np.random.default_rng(0)
    source, target = generator.integers(num_nodes, size=(2, num_edges))
    return Graph.from_edges(source, target, np.arange(num_edges) % num_types, num_nodes=num_nodes, inverse=True)


@pytest.mark.parametrize("num_types", [1, 4, 60])
@pytest.mark.parametrize("num_steps", [1, 2, 3])
def test_typed_paths_are_counted_without_building_rows(num_types, num_steps):
    graph = of_types(num_types)
    shards = Transitions.build(graph, num_steps, revisits=True).shards
    walked = set(np.concatenate([np.unique(shard.path) for shard in shards]).tolist()) - {0}
    count = count_paths(graph, num_steps)
    assert len(walked) <= count <= 1.5 * len(walked)


def test_links_of_hundreds_of_types_have_so_few_steps_that_their_paths_can_have_weights():
    graph, config = of_types(250), ModelConfig(num_steps="auto", max_degree="auto")
    assert resolved(config, WalkLimits(graph, True)).config.num_steps == 3  # a head over both representations, without paths
    config = config.model_copy(update={"link_score": "auto"})
    found = resolved(config, WalkLimits(graph, True, num_types=250))
    assert found.config.num_steps == 2
    assert found.reasons[0] == "num_steps: 2, since typed paths of three are too many for 250 types of links"
    assert WalkLimits(graph, True, num_types=250).steps_on_demand() == 2
    assert resolved(config, WalkLimits(graph, True, num_types=2)).config.num_steps == 2  # ids of paths are too many


def test_paths_of_one_step_are_left_where_those_of_two_are_too_many(monkeypatch):
    monkeypatch.setattr("gatas.tasks.walk_limits.MOST_TYPED_PATHS", {3: 1e3, 2: 1e3})
    config = ModelConfig(num_steps="auto", max_degree="auto", link_score=("vectors", "paths"))
    found = resolved(config, WalkLimits(of_types(60), True, num_types=60))
    assert found.config.num_steps == 1 and "typed paths of two are too many for 60 types" in found.reasons[0]
    without = config.model_copy(update={"link_score": ("vectors",)})
    assert resolved(without, WalkLimits(of_types(60), True)).config.num_steps == 3


def test_walks_over_the_same_path_to_the_same_node_count_once():
    """Of 60 nodes that all have edges of one type, walks of three steps come to each node over one typed path."""
    generator = np.random.default_rng(0)
    graph = Graph.from_edges(*generator.integers(60, size=(2, 1500)), num_nodes=60, undirected=True)
    limits = WalkLimits(graph, True, num_types=1, num_links=1500)
    walks, entries = count_walks(graph, 3, None), Transitions.build(graph, 3, revisits=True).num_entries
    assert walks > 50 * entries and limits.entries(3, None) == walks  # few walks are not looked into


def test_entries_of_many_walks_are_told_by_those_of_some_nodes(monkeypatch):
    graph = of_types(4, num_nodes=2000, num_edges=8000)
    monkeypatch.setattr("gatas.tasks.walk_limits.MOST_LINK_ENTRIES", 1000)
    limits, entries = WalkLimits(graph, True, num_types=4), Transitions.build(graph, 3, revisits=True).num_entries
    assert limits.entries(3, None) == pytest.approx(entries, rel=0.05)
    assert not limits.fits(3, None)
    monkeypatch.setattr("gatas.tasks.walk_limits.MOST_LINK_ENTRIES", 1.1 * entries)
    assert WalkLimits(graph, True, num_types=4).fits(3, None)


@pytest.mark.parametrize(("num_types", "steps"), [(2, 2), (20, 3)])
def test_three_steps_go_past_hubs_where_edges_have_many_types(monkeypatch, num_types, steps):
    hub, other = np.zeros(400, np.int64), np.arange(1, 401)
    types = np.arange(400) % num_types
    graph = Graph.from_edges(np.r_[hub, other], np.r_[other, np.roll(other, 1)], np.r_[types, types], inverse=True)
    monkeypatch.setattr("gatas.tasks.walk_limits.MOST_WALKS", {3: 1e5, 2: 3e8})
    config = ModelConfig(num_steps="auto", max_degree="auto", link_score=("vectors", "paths"))
    found = resolved(config, WalkLimits(graph, True, num_types, num_links=10**6))
    assert found.config.num_steps == steps and found.config.max_degree == (256 if steps == 3 else None)
    if steps == 3:
        assert found.reasons[0] == "num_steps: 3, since three fit past hubs, and edges have many types"
    assert resolved(config.model_copy(update={"max_degree": None}), WalkLimits(graph, True, num_types)).config.num_steps == 2


def test_typed_paths_of_three_steps_need_links_to_learn_from():
    graph, config = of_types(30), ModelConfig(num_steps="auto", max_degree="auto", link_score=("vectors", "paths"))
    few, many = (resolved(config, WalkLimits(graph, True, 30, num_links=count)) for count in (600, 60_000))
    assert (few.config.num_steps, many.config.num_steps) == (2, 3)
    assert few.reasons[0] == "num_steps: 2, since typed paths of three are too many for 600 links to learn their weights from"
    without = config.model_copy(update={"link_score": ("vectors",)})
    assert resolved(without, WalkLimits(graph, True, 0, num_links=600)).config.num_steps == 3


def test_reasons_speak_of_typed_paths_only_where_links_are_scored_by_them(monkeypatch):
    monkeypatch.setattr("gatas.tasks.walk_limits.MOST_WALKS", {3: 10, 2: 3e8})
    config = ModelConfig(num_steps="auto", max_degree="auto", link_score=("vectors", "neighbourhood"))
    reasons = resolved(config, WalkLimits(of_types(30), True, 0, num_links=600)).reasons
    assert reasons[0] == "num_steps: 2, since the walks of three are too many"
