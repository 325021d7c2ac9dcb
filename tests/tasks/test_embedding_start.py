"""Embeddings that start from the structure of the graph."""

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gatas
from gatas.errors import ConfigError
from gatas.graph import Graph
from gatas.inference import fit_many
from gatas.tasks import embedding_start
from gatas.tasks.embedding_start import STRUCTURE_SCALE, shared_factors
from gatas.training.config import Config
from gatas.transitions.factors import structure_factors
from tests.tasks.toys import SMALL, camps, classifier, heights, likes, predictor, regressor

START = {"node_embedding_size": 4, "node_embedding_start": "structure"}


def embeddings(model):
    return model.encoder.inputs.embeddings.weight.detach()


@pytest.fixture
def computed(monkeypatch):
    """Widths of the factors that were computed."""
    widths = []

    def counted(graph, size):
        widths.append(size)
        return structure_factors(graph, size)

    monkeypatch.setattr(embedding_start, "structure_factors", counted)
    return widths


@pytest.mark.parametrize("make, dataset", [(classifier, camps()), (regressor, heights()), (predictor, likes())])
def test_embeddings_start_from_factors_and_all_else_as_drawn(make, dataset):
    model, drawn = make(dataset, **START), make(dataset, node_embedding_size=4)
    expected = torch.from_numpy(structure_factors(dataset.graph, 4)) * STRUCTURE_SCALE * 2
    torch.testing.assert_close(embeddings(model), expected)
    others = {name: weight for name, weight in drawn.state_dict().items() if "embeddings.weight" not in name}
    assert others and all(torch.equal(model.state_dict()[name], weight) for name, weight in others.items())


def test_links_by_neighbourhoods_start_from_factors_too():
    model = predictor(likes(), **START, link_score=("vectors", "neighbourhood"), vector_size=6)
    assert torch.equal(embeddings(model), embeddings(predictor(likes(), **START)))


def test_the_scale_is_the_root_mean_square():
    rows = embeddings(classifier(camps(), **START, node_embedding_scale=1.5))
    assert rows.square().mean().sqrt().item() == pytest.approx(1.5, rel=1e-4)


def test_models_without_embeddings_compute_no_factors(computed):
    classifier(camps(), node_embedding_start="structure")
    classifier(camps(), **START, ablation="without_embeddings")
    assert not computed


def test_seeds_share_factors(computed):
    config = Config(model={**SMALL, **START}, training={"epochs": 1})
    runs = fit_many(config, [0, 1, 2], dataset=camps(), device="cpu")
    assert computed == [4] and len(runs) == 3


def test_weights_from_factors_are_a_models_own(computed):
    dataset = camps()
    model = classifier(dataset, **START)
    assert model.has_own_weights()
    with torch.no_grad():
        model.encoder.inputs.embeddings.weight[0, 0] += 1
    assert not model.has_own_weights()
    model.reset(3)
    assert model.has_own_weights() and computed == [4]


def test_fits_are_repeatable_and_a_warm_start_keeps_what_was_learned():
    dataset = camps()
    model = classifier(dataset, **START)
    first = gatas.fit(model, dataset, epochs=2, device="cpu").history[0]["loss"]
    learned = embeddings(model).clone()
    again = gatas.fit(model, dataset, epochs=2, device="cpu").history[0]["loss"]
    assert first == again and torch.equal(embeddings(model), learned)
    warm = gatas.fit(model, dataset, epochs=1, device="cpu", warm_start=True, learning_rate=1e-9)
    assert warm.history[0]["loss"] != first
    torch.testing.assert_close(embeddings(model), learned)


def test_a_saved_run_answers_as_before_and_computes_no_factors(tmp_path: Path, computed):
    dataset = camps()
    run = gatas.fit(classifier(dataset, **START), dataset, epochs=2, device="cpu", folder=tmp_path / "run")
    del computed[:]
    loaded = gatas.load(tmp_path / "run", device="cpu")
    assert not computed and loaded.model.config == run.model.config
    assert torch.equal(embeddings(loaded.model), embeddings(run.model))
    nodes = list(range(10))
    assert np.array_equal(loaded.predict(nodes).probabilities, run.predictor.predict(nodes).probabilities)


def test_a_training_that_goes_on_ends_with_the_same_weights(tmp_path):
    dataset, seen = camps(), 0

    def stop(entry):
        nonlocal seen
        seen += 1
        if seen == 2:
            raise KeyboardInterrupt

    settings: Any = {"epochs": 4, "device": "cpu", "patience": 10}
    whole = gatas.fit(classifier(dataset, **START), dataset, **settings)
    with pytest.raises(KeyboardInterrupt):
        gatas.fit(classifier(dataset, **START), dataset, folder=tmp_path, checkpoint_seconds=0, report=stop, **settings)
    assert list(tmp_path.glob("checkpoints/*"))
    rest = gatas.fit(classifier(camps(), **START), dataset, folder=tmp_path, **settings)
    assert rest.metrics == whole.metrics
    assert all(torch.equal(rest.model.state_dict()[name], own) for name, own in whole.model.state_dict().items())


def test_new_nodes_are_embedded_by_their_neighbours():
    dataset = camps()
    trained = gatas.fit(classifier(dataset, **START), dataset, epochs=1, device="cpu").predictor
    features = np.zeros((1, 5), np.float32)
    one, other = (trained.embed_new(features, ([30], [node])) for node in (2, 3))
    assert np.isfinite(one).all() and not np.array_equal(one, other)


def test_data_in_a_store_is_refused(tmp_path):
    mapped = replace(camps(), store=tmp_path)
    with pytest.raises(ConfigError, match="node_embedding_start is structure, but the data lies in a store") as refusal:
        classifier(mapped, **START)
    assert "\n" not in str(refusal.value)


def test_factors_are_let_go_with_their_graph(computed):
    graph = Graph.from_edges([0, 1], [1, 2], undirected=True)
    factors = shared_factors(graph, 2)
    assert shared_factors(graph, 2) is factors and shared_factors(graph, 3).shape == (3, 3) and computed == [2, 3]
    known = weakref.ref(graph)
    del graph
    assert known() is None
