"""The typed paths that speak most for a type of link: on kinship, what the relation is defined by."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gatas
from gatas.errors import GatasError
from gatas.inference import LinkExplanation, Predictor
from gatas.tasks import LinkPredictor, LinkTask
from tests.inference.test_explain_link import by_parts
from tests.tasks.toys import likes, predictor

DEFINITIONS = {
    "grandparent": "parent → parent",
    "uncle or aunt": "parent → sibling",
    "cousin": "parent → sibling → child",
    "parent-in-law": "spouse → parent",
}


@pytest.fixture(scope="module")
def kinship():
    dataset = gatas.load_dataset("kinship")
    settings: Any = {"link_score": ("vectors", "paths"), "revisits": True, "vector_size": 16, "num_steps": 3}
    training: Any = {"loss": "list", "hidden_folds": 4, "n3": 0.01, "l2": 0, "epochs": 10, "batch_size": 256}
    return gatas.fit(gatas.LinkPredictor(dataset, **settings), dataset, seed=0, device="cpu", **training).predictor


def test_the_strongest_path_of_each_relation_is_its_definition(kinship):
    assert {name: kinship.strongest_paths(name, top=1)[0].name for name in kinship.names} == DEFINITIONS


def test_means_are_those_of_the_explanations(kinship):
    pairs = kinship.dataset.targets.splits["valid"]
    for label in (1, 0):
        own = (pairs.edge_type == 3) & (pairs.label == label)
        links = [
            kinship.explain_link(kinship.graph.id_of(source), "parent-in-law", kinship.graph.id_of(target))
            for source, target in zip(pairs.source[own].tolist(), pairs.target[own].tolist(), strict=True)
        ]
        for strong in kinship.strongest_paths("parent-in-law", top=3):
            values = [path.value for link in links for path in link.paths if path.name == strong.name]
            mean = sum(values) / len(links)
            if label == 0:
                assert strong.of_negatives == pytest.approx(mean, rel=1e-9)
                continue
            assert strong.contribution == pytest.approx(mean, rel=1e-9)
            assert strong.share_of_links == len(values) / len(links) and strong.where_present == pytest.approx(np.mean(values))


def test_a_model_or_a_split_without_them_is_refused():
    for trained in (by_parts(("vectors",)), Predictor(predictor(likes()), likes())):
        with pytest.raises(GatasError, match="scores nothing by typed paths"):
            trained.strongest_paths("likes")
        with pytest.raises(GatasError, match="scores nothing by typed paths"):
            trained.strongest_paths("likes", split="test")
    trained = by_parts(("paths",))
    with pytest.raises(GatasError, match="no split 'held'; the data has train, valid, test"):
        trained.strongest_paths("likes", split="held")
    with pytest.raises(GatasError, match="the valid split has no links of type 'knows'; choose train"):
        trained.strongest_paths("knows", split="valid")
    with pytest.raises(GatasError, match="Did you mean 'likes'"):
        trained.strongest_paths("liked")


def test_a_type_without_validation_links_is_looked_at_in_test_or_training_links():
    trained = by_parts(("paths",))
    dataset, splits = trained.dataset, trained.dataset.link_targets.splits
    assert trained.strongest_paths("knows") == trained.strongest_paths("knows", split="train")
    without = Predictor(trained.model, dataset.with_splits({name: splits[name] for name in ("train", "test")}))
    assert without.strongest_paths("likes") == trained.strongest_paths("likes", split="test") != []


def test_training_links_are_hidden_while_they_are_looked_at():
    trained = by_parts(("paths",))
    before = trained.score_links([0], "likes", [1]).probabilities
    train = trained.dataset.link_targets.splits["train"]
    task = LinkTask(trained.dataset, 1, hidden_folds=10)
    sums = dict[str, float]()
    for fold in range(10):
        rows = (task.folds == fold) & (train.edge_type == 0)
        gone = {(a, k, b) for a, k, b in zip(train.source[task.folds == fold], train.edge_type[task.folds == fold],
                                             train.target[task.folds == fold], strict=True)}  # fmt: skip
        graph = trained.dataset.graph
        edges = list(zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True))
        hidden = [(a, k, b) in gone or (b, graph.inverse_of[k], a) in gone for a, k, b in edges]
        model = trained.model
        assert isinstance(model, LinkPredictor)
        with model.looking_at(graph.without_edges(np.array(hidden))):
            seen = Predictor(model, replace(trained.dataset, graph=model.graph), mode=trained.mode)
            for source, target in zip(train.source[rows].tolist(), train.target[rows].tolist(), strict=True):
                link = seen.explain_link(source, "likes", target)
                assert isinstance(link, LinkExplanation)
                for path in link.paths:
                    sums[path.name] = sums.get(path.name, 0.0) + path.value
    found = trained.strongest_paths("likes", top=100, split="train")
    assert {one.name: one.contribution for one in found} == pytest.approx(
        {name: value / int((train.edge_type == 0).sum()) for name, value in sums.items()}
    )
    assert trained.score_links([0], "likes", [1]).probabilities == before
