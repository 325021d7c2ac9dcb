"""Explanations: sums that must come out, and answers with rows left out, by the model's own encoder."""

import json
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gatas.datasets import NodeTargets
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.inference import Predictor, fit
from gatas.inference.attention import evaluating
from gatas.inference.explain import attended_rows
from gatas.ops.attend import attend
from gatas.sampling import Neighbourhood
from gatas.transitions.paths import path_name
from tests.tasks.toys import camps, classifier, labelled_graphs, likes, predictor

MODES = ("sample", "top", "all")
ABLATIONS = ("none", "base", "without_transitions", "without_prior", "uniform_steps", "without_embeddings", "without_paths")


def untrained(make, dataset, **settings):
    """Return a predictor with the weights that a model begins with."""
    return Predictor(make(dataset, **settings), dataset)


BEYOND = {"skip_connection": True, "output_norm": True, "path_mean_size": 5}


def tilted(make, dataset, **settings):
    """Return a predictor. Attention begins at the prior, and answers are alike: both would hide mistakes."""
    model = make(dataset, **settings)
    with torch.no_grad():
        model.encoder.neighbours.score.mul_(20)
        for weight in model.head.parameters():
            weight.mul_(3)
    return Predictor(model, dataset)


@pytest.fixture(scope="module")
def nodes():
    return tilted(classifier, camps())


@pytest.fixture(scope="module")
def links():
    return tilted(predictor, likes())


def head_outputs(model, target, monkeypatch, mode, draw=-1):
    """(K, F'') before σ, as the model's own attention computes it."""
    outputs = []

    def noted(*given):
        outputs.append(attend(*given))
        return outputs[-1]

    monkeypatch.setattr("gatas.nn.neighbours.attend", noted)
    with torch.no_grad(), evaluating(model):
        model.represent(torch.tensor([target]), draw=torch.tensor(draw), mode=mode)
    return outputs[0][0].numpy()


def log_odds_of(trained, explanation, neighbourhoods):
    """Return those of the explained answer, by the model itself."""
    model = trained.model
    ids = [end.target for end in explanation.ends]
    with torch.no_grad(), evaluating(model):
        encoded = [
            model.encoder(torch.tensor([model.graph.index_of(name)]), own, model.features)
            for name, own in zip(ids, neighbourhoods, strict=True)
        ]
        logits = model.head(*encoded)[0].double()
    number = model.names.index(explanation.answer.name)
    if trained.task != "node classification":
        return logits[number].item()
    others = torch.cat([logits[:number], logits[number + 1 :]])
    return (logits[number] - others.logsumexp(0)).item()


def drawn(model, explanation, mode):
    targets = [model.graph.index_of(end.target) for end in explanation.ends]
    with torch.no_grad():
        return [model.sampler(torch.tensor([target]), draw=-1, mode=mode) for target in targets]


def left_out(model, neighbourhood, node, path):
    """The neighbourhood without one row, or without all of a path."""
    names = [path_name(int(own), model.graph.relation_names) for own in neighbourhood.path[0]]
    same = torch.tensor([[name == path for name in names]])
    wanted = same if node is None else same & (neighbourhood.node == model.graph.index_of(node))
    mask = neighbourhood.mask & ~wanted
    log_probability = neighbourhood.log_probability.masked_fill(~mask, -torch.inf)
    return Neighbourhood(neighbourhood.node, neighbourhood.path, log_probability, mask)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_contributions_add_up_to_what_each_head_gives(monkeypatch, ablation, mode):
    trained = tilted(classifier, camps(), ablation=ablation)
    explanation = trained.explain(7, mode=mode)
    expected = head_outputs(trained.model, 7, monkeypatch, mode)
    np.testing.assert_allclose(explanation.contributions.sum(0), expected, atol=1e-5, rtol=0)
    assert abs(expected).max() > 1e-2
    assert explanation.weights.sum(0) == pytest.approx([1, 1]) and explanation.share.sum() == pytest.approx(1)


@pytest.mark.parametrize("settings", [{}, {"path_attention": "mlp"}, {"pair_products": True}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_contributions_add_up_at_both_ends_of_a_link(monkeypatch, settings, mode):
    trained = tilted(predictor, likes(), **settings)
    explanation = trained.explain((2, "knows", 8), mode=mode)
    assert [end.target for end in explanation.ends] == [2, 8]
    for end in explanation.ends:
        expected = head_outputs(trained.model, end.target, monkeypatch, mode)
        np.testing.assert_allclose(end.output, expected, atol=1e-5, rtol=0)
        monkeypatch.undo()


def test_a_neighbourhood_that_is_empty_adds_up_to_nothing(nodes):
    targets = torch.tensor([3])
    drawn = nodes.sampler(targets, draw=-1)
    nothing = torch.zeros_like(drawn.mask)
    empty = Neighbourhood(drawn.node, drawn.path, torch.full_like(drawn.log_probability, -torch.inf), nothing)
    with torch.no_grad():
        (found,) = attended_rows(nodes, targets, empty)
    assert len(found.node) == 0 and not found.output.any() and found.output_without(found.node, 0).shape[0] == 0


def test_a_node_without_neighbours_rests_on_itself_alone():
    dataset = camps()
    lonely = Graph.from_edges([0], [1], num_nodes=30)
    trained = untrained(classifier, replace(dataset, graph=lonely))
    explanation = trained.explain(5, mode="all")
    assert (explanation.neighbour, explanation.path, explanation.coverage) == ((5,), ("self",), pytest.approx(1))
    bias = trained.model.head.output.bias.detach().double()
    index = trained.names.index(explanation.answer.name)
    without = explanation.answer.log_odds - explanation.effect[0]  # nothing is left, so that only the bias speaks
    assert without == pytest.approx((bias[index] - bias[1 - index]).item(), abs=1e-9)


def check_effects(trained, explanation, mode):
    neighbourhoods = drawn(trained.model, explanation, mode)
    whole = log_odds_of(trained, explanation, neighbourhoods)
    assert explanation.answer.log_odds == pytest.approx(whole, abs=1e-5)
    assert explanation.answer.probability == pytest.approx(1 / (1 + np.exp(-whole)), abs=1e-5)
    for side, end in enumerate(explanation.ends):
        cases = [(end.neighbour[k], end.path[k], end.effect[k]) for k in range(len(end))]
        cases += [(None, part.name, part.effect) for part in end.paths]
        for node, path, effect in cases:
            fewer = list(neighbourhoods)
            fewer[side] = left_out(trained.model, neighbourhoods[side], node, path)
            expected = whole - log_odds_of(trained, explanation, fewer)
            assert effect == pytest.approx(expected, abs=1e-4), (node, path)
    assert max(abs(explanation.effect)) > 1e-2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settings", [{}, {"hidden_sizes": (8, 8)}, {"ablation": "base"}, BEYOND], ids=str)
def test_an_effect_is_what_the_model_says_without_the_row(settings, mode):
    trained = tilted(classifier, camps(), **settings)
    check_effects(trained, trained.explain(4, mode=mode), mode)


def test_effects_are_right_with_several_labels_and_with_links(links):
    several = tilted(classifier, labelled_graphs())
    check_effects(several, several.explain(6, mode="all"), "all")
    check_effects(several, several.explain(6, answer="b", mode="all"), "all")
    check_effects(links, links.explain((0, "likes", 3), mode="all"), "all")
    typed = tilted(predictor, likes(), **BEYOND)
    check_effects(typed, typed.explain((0, "likes", 3), mode="all"), "all")
    products = tilted(predictor, likes(), pair_products=True)
    check_effects(products, products.explain((0, "likes", 3), mode="sample"), "sample")


def test_effects_keep_their_digits_where_one_row_has_nearly_all_attention(nodes):
    with torch.no_grad():
        (found,) = attended_rows(nodes, torch.tensor([3]), nodes.sampler(torch.tensor([3]), draw=-1, mode="all"))
    odds = torch.full_like(found.odds, 1e-30)
    odds[0] = 1.0
    drowned = type(found)(3, found.node, found.path, found.probability, odds, found.values, found.inputs, found.means, 1, 1.0)
    without = drowned.output_without(torch.arange(len(odds)), len(odds))
    torch.testing.assert_close(without[0], found.values[1:].mean(0).flatten())
    torch.testing.assert_close(without[1], found.values[0].flatten())


def test_rows_have_the_users_ids_paths_steps_and_probabilities(links):
    explanation = links.explain((0, "likes", 3), mode="all")
    row = links.model.transitions.row(0)
    depth = links.sampler.depth_coefficients.tolist()
    names = links.graph.relation_names
    expected = {
        (node, path_name(path, names), step): depth[step] * probability
        for node, path, step, probability in zip(
            row.node.tolist(), row.path.tolist(), row.step.tolist(), row.probability.tolist(), strict=True
        )
    }
    found = dict(
        zip(
            zip(explanation.neighbour, explanation.path, explanation.step.tolist(), strict=True),
            explanation.probability,
            strict=True,
        )
    )
    assert found == pytest.approx(expected)
    assert "knows → likes" in explanation.path and explanation.depth_coefficients == pytest.approx(depth)
    assert (np.diff(explanation.attention) <= 1e-12).all()


def test_parts_are_sums_over_rows(nodes):
    explanation = nodes.explain(2, mode="sample")
    for parts in (explanation.paths, explanation.depths):
        assert sum(part.num_rows for part in parts) == len(explanation)
        assert sum(part.attention for part in parts) == pytest.approx(1)
        assert sum(part.share for part in parts) == pytest.approx(1)
        assert sum(part.probability for part in parts) == pytest.approx(explanation.probability.sum())
    assert [part.name for part in explanation.depths] == ["itself", "1 step", "2 steps"]
    assert explanation.depths[1].attention == pytest.approx(explanation.attention[explanation.step == 1].sum())


@pytest.mark.parametrize("ablation", ["none", "without_transitions", "without_prior", "uniform_steps"])
def test_coverage_is_the_mass_of_the_rows_against_that_of_all_candidates(ablation):
    trained = untrained(classifier, camps(), ablation=ablation)
    everything, part = trained.explain(1, mode="all"), trained.explain(1, mode="sample")
    assert everything.coverage == pytest.approx(1) and everything.num_candidates == len(everything) > len(part) == 6
    assert part.coverage == pytest.approx(part.probability.sum() / everything.probability.sum())
    assert everything.probability.sum() == pytest.approx(1)


def test_another_class_can_be_asked_for(nodes):
    first = nodes.explain(4, mode="all")
    (name,) = set(nodes.names) - {first.answer.name}
    other = nodes.explain(4, answer=name, mode="all")
    assert other.answer.probability == pytest.approx(1 - first.answer.probability)
    assert other.effect == pytest.approx(-first.effect)
    assert first.probability_without + other.probability_without == pytest.approx(1)


def test_one_node_of_a_link_predictor_has_rows_but_no_answer(links):
    explanation = links.explain(3, mode="all")
    assert explanation.answer is explanation.effect is explanation.probability_without is None
    assert explanation.share.sum() == pytest.approx(1) and explanation.paths[0].effect is None
    assert json.loads(json.dumps(explanation.to_dict()))["rows"][0]["effect"] is None


def test_one_class_is_certain_and_nothing_has_an_effect():
    dataset = camps()
    labels = 0 * dataset.node_targets.labels
    same = replace(dataset, targets=NodeTargets(labels, ("all",), dataset.splits))
    explanation = untrained(classifier, same).explain(1, mode="all")
    assert explanation.answer.probability == 1 and not explanation.effect.any()


def test_explaining_changes_nothing_and_repeats(nodes):
    model = nodes.model
    model.train()
    model.head.eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    training = {name: module.training for name, module in model.named_modules()}
    one, two = (nodes.explain(5, mode="sample").to_dict() for _ in range(2))
    assert one == two
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert {name: module.training for name, module in model.named_modules()} == training
    assert all(weight.grad is None for weight in model.parameters())
    assert nodes.explain(5, mode="sample", draw=8).to_dict() != one


def test_json_holds_as_many_rows_as_asked_for(links):
    content = json.loads(json.dumps(links.explain((0, "likes", 3), mode="all").to_dict(top=2)))
    assert len(content["rows"]) == len(content["other"]["rows"]) == 2 and content["num_rows"] > 2
    assert content["answer"]["name"] == "likes" and content["target"] == 0 and content["other"]["target"] == 3


def test_pyg_accepts_the_export(nodes, links):
    for explanation in (nodes.explain(4, mode="all"), links.explain((0, "likes", 3), mode="all"), links.explain(2, mode="all")):
        exported = explanation.to_pyg()
        assert exported.validate(raise_on_error=True)
        assert exported.node_mask.sum().item() == pytest.approx(len(explanation.ends))
        assert exported.num_edges == sum(len(end) for end in explanation.ends)
        first = exported.edge_index[:, 0].tolist()
        assert [exported.node_ids[node] for node in first] == [explanation.neighbour[0], explanation.target]
        assert exported.path_names[exported.edge_type[0].item()] == explanation.path[0]
        few = exported.threshold("topk", 3)
        assert few.edge_mask.count_nonzero() == 3 and few.validate()
        whole = exported.get_explanation_subgraph()
        assert whole.num_edges == whole.edge_contribution.shape[0] == exported.num_edges


@pytest.mark.parametrize(
    ("asked", "options", "message"),
    [
        (99, {}, "no node has the id 99; ids are 0 to 29"),
        ((1, "x", 2), {}, "says of what class a node is"),
        (1, {"answer": "evn"}, "no class 'evn'. Did you mean 'even'"),
        (1, {"mode": "most"}, "mode is 'most'"),
    ],
)
def test_what_cannot_be_explained_is_refused_by_a_classifier(nodes, asked, options, message):
    with pytest.raises(GatasError, match=message):
        nodes.explain(asked, **options)


@pytest.mark.parametrize(
    ("asked", "options", "message"),
    [
        ((0, "lkes", 3), {}, "no type of link 'lkes'. Did you mean 'likes'"),
        ((0, "likes", 77), {}, "no node has the id 77"),
        ((0, "likes"), {}, "a link is"),
        (0, {"answer": "likes"}, "predicts links"),
    ],
)
def test_what_cannot_be_explained_is_refused_by_a_link_predictor(links, asked, options, message):
    with pytest.raises(GatasError, match=message):
        links.explain(asked, **options)


def test_rows_named_first_change_answers_more_than_others():
    dataset = camps(num_nodes=60)
    model = classifier(dataset, sample_size=20)
    trained: Any = fit(model, dataset, epochs=30, learning_rate=0.02, device="cpu").predictor
    generator, moved = np.random.default_rng(0), defaultdict[str, list[float]](list)
    for node in dataset.splits["test"].tolist():
        explanation = trained.explain(node, mode="all")
        (neighbourhood,) = drawn(model, explanation, "all")
        whole = log_odds_of(trained, explanation, [neighbourhood])
        orders = {"effect": np.argsort(-explanation.effect), "attention": np.arange(len(explanation))}
        for name, order in {**orders, "random": generator.permutation(len(explanation))}.items():
            fewer = neighbourhood
            for k in order[:5].tolist():
                fewer = left_out(model, fewer, explanation.neighbour[k], explanation.path[k])
            moved[name].append(whole - log_odds_of(trained, explanation, [fewer]))
    assert np.mean(moved["effect"]) > 0 and np.mean(moved["effect"]) > 3 * np.mean(np.abs(moved["random"]))
    assert np.mean(np.abs(moved["attention"])) > 1.5 * np.mean(np.abs(moved["random"]))
