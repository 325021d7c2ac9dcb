"""A final test with links of validation as edges is the same wherever it is measured, and says so."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pytest import approx

import gatas
from gatas.datasets import Dataset, Pairs
from gatas.experiments.ranked import with_ranking
from gatas.graph import Graph
from gatas.training.config import Config
from gatas.training.evaluation import evaluate, evaluate_run
from tests.tasks.toys import SMALL

PARTS = {"link_score": ("vectors", "paths"), "num_steps": 2, "vector_size": 4}
LISTS = {"loss": "list", "hidden_folds": 2, "epochs": 2, "batch_size": 5}


def scattered():
    """Links between any of 30 nodes, which are ranked: so few are edges that those of validation change most ranks."""
    generator = np.random.default_rng(0)
    found = np.unique(generator.integers(30, size=(90, 2)), axis=0)
    source, target = generator.permutation(found[found[:, 0] != found[:, 1]]).T
    kind = np.arange(len(source)) % 2
    graph = Graph.from_edges(source[:40], target[:40], kind[:40], num_nodes=30, edge_type_names=["a", "b"], inverse=True)
    splits = {}
    for name, rows in (("train", slice(40)), ("valid", slice(40, 60)), ("test", slice(60, None))):
        ones = np.ones(len(source[rows]), np.int8)
        asked = [(source[rows], kind[rows], target[rows], ones)]
        asked += [] if name == "train" else [(target[rows], kind[rows], (source[rows] + 7) % 30, 0 * ones)]
        splits[name] = Pairs(*(np.concatenate(column) for column in zip(*asked, strict=True)))
    dataset = Dataset.for_links(graph, splits, ("a", "b"), name="scattered")
    return replace(dataset, targets=replace(dataset.link_targets, ranked=True))


def trained(folder, model, training, validation_edges=True):
    data = {"name": "kinship", "validation_edges": validation_edges}
    config = Config(data=data, model=model, training={**training, "evaluation_mode": "all"})
    return gatas.fit_many(config, [0], dataset=scattered(), device="cpu", folder=folder)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("final")


@pytest.fixture(scope="module")
def run(folder):
    return trained(folder, PARTS, LISTS)


def test_a_run_is_measured_again_on_the_graph_of_its_final_test(run, folder):
    again = evaluate_run(folder, "test", device="cpu")
    assert again["validation_edges"] and again["roc_auc"] == approx(run.metrics["test"]["roc_auc"])
    assert again["loss"] == approx(run.metrics["test"]["loss"], abs=1e-6)
    assert evaluate_run(folder, "valid", device="cpu")["loss"] == approx(run.metrics["valid"]["loss"], abs=1e-6)
    assert "validation_edges" not in evaluate_run(folder, "valid", device="cpu")
    without = evaluate(run.model, run.dataset, device="cpu", **run.config.training.model_dump())
    assert without["loss"] != approx(again["loss"], abs=1e-6) and "validation_edges" not in without


def test_links_are_ranked_on_the_graph_of_the_final_test(run, folder):
    own = run.metrics["test"]["ranking"]
    for predictor in (run.predictor, gatas.load(folder, device="cpu"), gatas.load(folder, device="cpu").prepare()):
        found = predictor.evaluate_ranking("test")
        assert found["validation_edges"] and found["mrr"] == approx(own["mrr"])
        assert predictor.dataset.graph.num_edges == run.dataset.graph.num_edges
        assert "validation_edges" not in predictor.evaluate_ranking("valid")
    assert trained(None, PARTS, LISTS, validation_edges=False).predictor.evaluate_ranking("test")["mrr"] != approx(own["mrr"])


def test_neighbourhoods_are_those_of_the_final_test_too(tmp_path):
    run = trained(tmp_path, {**SMALL, "node_embedding_size": 4, "link_score": ("pair",)}, {"epochs": 1})
    (compared,) = with_ranking([run], run.dataset, torch.device("cpu"))
    found = run.predictor.evaluate_ranking("test")
    assert found["validation_edges"] and found["mrr"] == approx(compared.metrics["test"]["ranking"]["mrr"])
    assert gatas.load(tmp_path, device="cpu").evaluate_ranking("test")["mrr"] == approx(found["mrr"])
    plain = trained(None, {**SMALL, "node_embedding_size": 4, "link_score": ("pair",)}, {"epochs": 1}, False)
    assert plain.predictor.evaluate_ranking("test")["mrr"] != approx(found["mrr"])


def test_a_comparison_ranks_on_the_graph_of_the_final_test(run):
    (compared,) = with_ranking([run], run.dataset, torch.device("cpu"))
    assert compared.metrics["test"]["ranking"] == run.metrics["test"]["ranking"]
    assert compared.metrics["valid"]["ranking"] == run.metrics["valid"]["ranking"]
