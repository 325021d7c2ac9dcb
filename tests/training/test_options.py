"""Every setting of a model and of its training does something: it changes what comes out, or has tests of its own."""

from pathlib import Path
from typing import Any

import pytest
import torch

import gatas
from gatas.graph import Graph
from gatas.tasks.config import ModelConfig
from gatas.training import NAdam
from gatas.training.config import TrainingConfig
from tests.tasks.toys import camps, classifier, labelled_graphs, likes, predictor

MODEL: dict[str, Any] = {"node_embedding_size": 3}
TRAINING: dict[str, Any] = {"epochs": 3, "batch_size": 4, "l2": 0.1, "ema_decay": 0.0, "monitor": "loss"}
AGREE: dict[str, Any] = {"consistency": 1.0, "consistency_nodes": 5}

NODES: list[dict[str, Any]] = [
    {"num_steps": 1}, {"sample_size": 3}, {"transition_kind": "count"}, {"max_candidates": 2}, {"max_degree": 4},
    {"layer_norm": True}, {"hidden_size": 4}, {"node_embedding_size": 0}, {"node_embedding_scale": 2.0},
    {"node_embedding_start": "structure"}, {"hide_own_embedding": True},
    {"relation_embedding_size": 3}, {"neighbour_size": 4}, {"head_size": 3}, {"num_heads": 1}, {"input_noise": 0.5},
    {"dropout": 0.5}, {"path_attention": "mlp"}, {"path_attention": "none"}, {"hidden_sizes": (4,)}, {"late_decay": True},
    {"skip_connection": True}, {"output_norm": True}, {"output_dropout": 0.5}, {"path_mean_size": 4}, {"label_inputs": True},
    {"label_spreading": True},
    {"positions_from_neighbour": True}, {"path_score_dropout": True}, {"l2_on_depth": True}, {"ablation": "base"},
    {"ablation": "without_transitions"}, {"ablation": "without_prior"}, {"ablation": "uniform_steps"},
    {"ablation": "without_embeddings"}, {"ablation": "without_paths"},
    {"epochs": 2}, {"batch_size": 5}, {"optimiser": "adam"}, {"learning_rate": 0.01}, {"schedule": "cosine"},
    {"momentum_decay": 1.0}, {"ema_decay": 0.9}, {"max_norm": 0.01}, {"l2": 0.0}, {"consistency": 1.0},
    {"evaluation_mode": "top"}, {"evaluation_mode": "all"}, {"evaluation_draws": 3}, {"embedding_updates": "seen"},
]  # fmt: skip
LINKS: list[dict[str, Any]] = [
    {"pair_hidden_size": 4},
    {"pair_products": False},
    {"exclude_targets": False},
    {"negatives": "once"},
    {"negative_types": "all alike"},
    {"hidden_folds": 3},
    {"revisits": True},
    {"link_score": ("vectors",)},
]
BY_LISTS: dict[str, Any] = {
    "link_score": ("vectors", "neighbourhood", "paths"), "vector_size": 6, "loss": "list", "hidden_folds": 3,
    "num_negatives": 2, "batch_size": 2,
}  # fmt: skip
LISTS: list[dict[str, Any]] = [
    {"decoder": "distmult"},
    {"decoder": "bilinear"},
    {"vector_size": 8},
    {"num_negatives": 5},
    {"negatives_by": "degree"},
    {"n3": 0.1},
    {"hidden_folds": 4},
    {"link_score": ("vectors", "paths")},
    {"loss": "binary"},
]
AGREEMENT: list[dict[str, Any]] = [{"consistency_draws": 3}, {"consistency_nodes": 8}, {"temperature": 1.0}]
ELSEWHERE = {
    "calibrate": "tests/training/test_folder.py",
    "class_weights": "tests/tasks/test_class_weights.py",
    "label_smoothing": "tests/tasks/test_class_weights.py",
    "regression_loss": "tests/tasks/test_numbers.py",
    "by_graph": "tests/tasks/test_batches.py",
    "label_dropout": "tests/tasks/test_label_inputs.py",
    "path_factors": "tests/nn/test_link_head.py",
    "monitor": "tests/training/test_fit.py",
    "patience": "tests/training/test_stopping.py",
    "precision": "tests/training/test_options.py",
    "storage": "tests/training/test_storage.py",
    "checkpoint_seconds": "tests/training/test_checkpoint.py",
    "keep_checkpoints": "tests/training/test_checkpoint.py",
}


def outcome(make, dataset, **changed):
    """All that a training shows of itself: losses and validation metrics by epoch, and the metrics of its best epoch."""
    model = {name: value for name, value in changed.items() if name in ModelConfig.model_fields}
    training = {name: value for name, value in changed.items() if name not in model}
    run = gatas.fit(make(dataset, seed=0, **{**MODEL, **model}), dataset, seed=0, device="cpu", **{**TRAINING, **training})
    history = [{name: value for name, value in entry.items() if "seconds" not in name} for entry in run.history]
    return history, run.metrics["valid"], run.metrics.get("test")


@pytest.fixture(scope="module")
def usual():
    return {
        "nodes": outcome(classifier, camps()),
        "agreement": outcome(classifier, camps(), **AGREE),
        "links": outcome(predictor, likes()),
        "lists": outcome(predictor, likes(), **BY_LISTS),
    }


@pytest.mark.parametrize("changed", NODES, ids=str)
def test_a_setting_of_node_classification_changes_what_comes_out(changed, usual):
    assert outcome(classifier, camps(), **changed) != usual["nodes"]


@pytest.mark.parametrize("changed", AGREEMENT, ids=str)
def test_a_setting_of_agreement_changes_what_comes_out(changed, usual):
    assert outcome(classifier, camps(), **{**AGREE, **changed}) != usual["agreement"]


@pytest.mark.parametrize("changed", LINKS, ids=str)
def test_a_setting_of_links_changes_what_comes_out(changed, usual):
    assert outcome(predictor, likes(), **changed) != usual["links"]


@pytest.mark.parametrize("changed", LISTS, ids=str)
def test_a_setting_of_lists_changes_what_comes_out(changed, usual):
    assert outcome(predictor, likes(), **{**BY_LISTS, **changed}) != usual["lists"]


def test_what_comes_out_is_else_the_same(usual):
    assert outcome(classifier, camps()) == usual["nodes"] and outcome(predictor, likes()) == usual["links"]
    assert outcome(predictor, likes(), **BY_LISTS) == usual["lists"]


def test_every_setting_is_here_or_has_tests_of_its_own():
    here = {name for changed in (*NODES, *LINKS, *LISTS, *AGREEMENT) for name in changed}
    assert here | set(ELSEWHERE) == {*ModelConfig.model_fields, *TrainingConfig.model_fields} and not here & set(ELSEWHERE)
    root = Path(__file__).parents[2]
    assert all(name in (root / path).read_text() for name, path in ELSEWHERE.items())


def test_momentum_decays_as_torchs():
    def trained(kind, **more):
        weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        optimiser = kind([weight], lr=0.1, **more)
        for _ in range(5):
            optimiser.zero_grad()
            (weight**2).sum().backward()
            optimiser.step()
        return weight.detach()

    ours, theirs = (trained(kind, momentum_decay=0.5) for kind in (NAdam, torch.optim.NAdam))
    torch.testing.assert_close(ours, theirs)
    assert not torch.equal(ours, trained(NAdam))


def test_walks_do_not_go_on_through_nodes_of_a_larger_degree():
    #   1 ─ 0 ─ 2, 3, 4        two steps lead from 1 to 2 only through 0, which has four edges
    dataset = camps()
    graph = Graph.from_edges([0, 0, 0, 0], [1, 2, 3, 4], num_nodes=30, undirected=True)
    object.__setattr__(dataset, "graph", graph)
    wide, narrow = (classifier(dataset, max_degree=degree).transitions.row(1) for degree in (4, 3))
    assert sorted(wide.node.tolist()) == [0, 1, 2, 3, 4] and sorted(narrow.node.tolist()) == [0, 1]


def test_embeddings_start_with_the_deviation_asked_for():
    weight = classifier(camps(num_nodes=300), node_embedding_size=20, node_embedding_scale=0.5).encoder.inputs.embeddings.weight
    assert weight.std().item() == pytest.approx(0.5, rel=0.05)


def test_l2_may_be_over_the_depth_too():
    names = {"sampler.depth_logits", "encoder.steps.relation_embeddings.weight"}
    model = classifier(camps(), l2_on_depth=True)
    assert {name for name, _ in model.named_parameters() if not model.l2_share(name)} == names - {"sampler.depth_logits"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="bfloat16 is of products on a GPU")
def test_half_precision_is_near_the_whole():
    half, whole = (
        gatas.fit(classifier(camps(), seed=0), camps(), seed=0, device="cuda", epochs=3, precision=name).history[-1]["loss"]
        for name in ("bfloat16", "float32")
    )
    assert half == pytest.approx(whole, rel=0.05) and half != whole


def test_batches_of_one_graph_each_change_what_comes_out():
    several = labelled_graphs()
    assert outcome(classifier, several, by_graph=True) != outcome(classifier, several)
