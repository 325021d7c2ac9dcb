"""Learned embeddings that a node does not see of itself: others do."""

import numpy as np
import pytest
import torch

import gatas
from gatas.inference.explanation import Answer
from tests.tasks.test_label_inputs import tangled
from tests.tasks.toys import camps, classifier

HIDDEN = {"hide_own_embedding": True, "node_embedding_size": 3, "sample_size": 100, "num_steps": 2, "dropout": 0.0}


def reached(model, nodes):
    """Return which nodes' logits, along columns, change with which node's embedding, along rows."""
    weight, changed = model.encoder.inputs.embeddings.weight, np.zeros((len(nodes), len(nodes)), bool)

    def logits():
        model.encoder.passes.zero_()
        return model(nodes, draw=torch.tensor(1), mode="all").detach()

    before = logits()
    for node in nodes.tolist():
        kept = weight[node].detach().clone()
        with torch.no_grad():
            weight[node] += 1
            changed[node] = (logits() != before).any(1)
            weight[node] = kept
    return changed


@pytest.mark.parametrize("settings", [{}, {"skip_connection": True}, {"path_mean_size": 4}, {"path_attention": "mlp"}], ids=str)
@pytest.mark.parametrize("training", [False, True])
def test_an_embedding_reaches_others_but_never_its_own_node(training, settings):
    model = classifier(tangled(), **HIDDEN, **settings).train(training)
    changed = reached(model, torch.arange(12))
    assert not changed.diagonal().any() and changed.sum() > 60
    model.encoder.hide_own_embedding = False
    assert reached(model, torch.arange(12)).diagonal().all()


@pytest.mark.parametrize("settings", [{}, {"skip_connection": True, "path_mean_size": 4}], ids=str)
@pytest.mark.parametrize("nodes", [[3, 0, 7, 3], list(range(12))], ids=str)
def test_shapes_that_do_not_depend_on_the_data_give_the_same(monkeypatch, nodes, settings):
    model = classifier(tangled(), **HIDDEN, **settings).eval()
    expected = model(torch.tensor(nodes), draw=torch.tensor(1), mode="all")
    monkeypatch.setattr("gatas.nn.encoder.shapes_are_fixed", lambda _: True)
    torch.testing.assert_close(model(torch.tensor(nodes), draw=torch.tensor(1), mode="all"), expected)


def test_answers_and_explanations_hide_it_too():
    dataset = camps()
    settings = {**HIDDEN, "skip_connection": True, "path_mean_size": 4}
    model = classifier(dataset, seed=0, **settings)
    gatas.fit(model, dataset, seed=0, device="cpu", epochs=2)
    predictor = gatas.Predictor(model, dataset, mode="all")
    before, explained = predictor.predict([3]).probabilities, predictor.explain(3, mode="all")
    with torch.no_grad():
        model.encoder.inputs.embeddings.weight[3] += 1
    again = gatas.Predictor(model, dataset, mode="all")
    assert np.array_equal(again.predict([3]).probabilities, before)
    for one in (explained, again.explain(3, mode="all")):
        assert isinstance(one.answer, Answer) and one.answer.probability == pytest.approx(before.max(), abs=1e-6)
