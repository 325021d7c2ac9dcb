"""Link prediction: pairs that are no links, and links that must not be seen when they are asked for."""

import numpy as np
import pytest
import torch
from pytest import approx
from torch.nn import functional as F

from gatas.datasets import Dataset, Pairs
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.tasks import LinkTask
from gatas.transitions.paths import path_name
from tests.tasks.toys import camps, likes, pairs, predictor


def listed(columns, label):
    chosen = (columns["label"] == label) & (columns["weight"] > 0)
    return [tuple(row) for row in np.stack([columns[name][chosen] for name in ("source", "edge_type", "target")], 1).tolist()]


@pytest.mark.parametrize("direction", [{"inverse": True}, {"undirected": True}, {"inverse": False}])
def test_as_many_pairs_are_drawn_that_are_neither_links_nor_selves(direction):
    dataset = likes(**direction)
    train, graph = dataset.splits["train"], dataset.graph
    names = [graph.edge_type_names[kind] for kind in graph.edge_type]
    edges = {*zip(graph.source.tolist(), names, graph.neighbour.tolist(), strict=True)}
    for number in range(10):
        columns = LinkTask(dataset, 8).epoch(seed=0, number=number).columns
        links, others = listed(columns, 1), listed(columns, 0)
        assert sorted(links) == sorted(zip(train.source.tolist(), train.edge_type.tolist(), train.target.tolist(), strict=True))
        assert sorted(kind for _, kind, _ in others) == sorted(train.edge_type)
        assert all(source != target for source, _, target in others)
        assert not {(source, dataset.names[kind], target) for source, kind, target in others} & edges


def test_pairs_are_drawn_once_or_for_each_epoch():
    once, each = (LinkTask(likes(), 8, negatives=kind) for kind in ("once", "each epoch"))
    drawn = [[sorted(listed(task.epoch(0, number).columns, 0)) for number in (0, 1)] for task in (once, each)]
    assert drawn[0][0] == drawn[0][1] and drawn[1][0] != drawn[1][1]
    assert sorted(listed(once.epoch(1, 0).columns, 0)) != drawn[0][0]


def test_pairs_that_came_with_the_data_are_taken_as_they_are():
    dataset = likes()
    splits = {**dataset.splits, "train": dataset.splits["valid"]}
    given = Dataset.for_links(dataset.graph, splits, dataset.names, name="given")
    columns = LinkTask(given, 2).epoch(0, 0).columns
    assert sorted(listed(columns, 0)) == [(0, 0, 7), (3, 0, 10), (6, 1, 1)] and len(listed(columns, 1)) == 2


def test_where_all_pairs_are_links_there_are_no_others_to_draw():
    source, target = np.nonzero(~np.eye(4, dtype=bool))
    graph = Graph.from_edges(source, target)
    train = Pairs(source, np.zeros(12, int), target, np.ones(12, np.int8))
    whole = Dataset.for_links(graph, {"train": train}, ("0",), name="whole")
    with pytest.raises(GatasError, match="nearly all pairs of nodes are links"):
        LinkTask(whole, 4).epoch(0, 0)


def test_a_split_in_which_nothing_can_be_measured_is_refused():
    dataset = likes()
    splits = {**dataset.splits, "valid": pairs((0, 0, 2, 1), (6, 1, 1, 0))}
    with pytest.raises(GatasError, match="no type in the split 'valid' has both positives and negatives"):
        LinkTask(Dataset.for_links(dataset.graph, splits, dataset.names, name="likes"), 4)


def test_nodes_are_not_links_to_predict():
    with pytest.raises(GatasError, match="camps is for node classification; a LinkPredictor needs splits of Pairs"):
        LinkTask(camps(), 4)


def test_the_loss_is_of_the_type_asked_for_and_of_pairs_that_count():
    dataset = likes()
    model, task = predictor(dataset), LinkTask(dataset, 4)
    representations = torch.randn(2, 5, model.encoder.output_size, generator=torch.Generator().manual_seed(0))
    kind, label, weight = torch.tensor([0, 1, 1, 0, 0]), torch.tensor([1.0, 0, 1, 1, 1]), torch.tensor([1.0, 1, 1, 0, 0])
    loss = task.loss(model.score(*representations, kind), label=label, weight=weight)
    both = model.head(*representations)
    assert loss.item() == approx(F.binary_cross_entropy_with_logits(both[[0, 1, 2], [0, 1, 1]], label[:3]).item())


def test_the_outputs_of_other_types_are_left_as_they_are():
    model = predictor(likes())
    task = LinkTask(likes(), 4)
    one = torch.ones(1, dtype=torch.int64)
    logits = model(source=0 * one, edge_type=1 * one, target=6 * one, label=torch.ones(1))
    task.loss(logits, label=torch.ones(1), weight=torch.ones(1)).backward()
    gradient = model.head.pair.output.bias.grad
    assert gradient[0] == 0 and gradient[1] != 0


def seen(model, source, edge_type, target, label):
    """The (target, neighbour, path) of the neighbourhoods that the encoder is given for these pairs."""
    taken = []
    hook = model.encoder.register_forward_pre_hook(lambda _, given: taken.append(given))
    logits = model(*(torch.tensor(column) for column in (source, edge_type, target)), torch.tensor(label, dtype=torch.float))
    hook.remove()
    (targets, neighbourhood, *_) = taken[0]
    assert torch.isfinite(logits).all()
    assert (torch.isfinite(neighbourhood.log_probability) == neighbourhood.mask).all()
    return {
        (int(targets[row]), int(neighbourhood.node[row, slot]), path_name(int(path), model.graph.relation_names))
        for (row, slot), path in zip(neighbourhood.mask.nonzero().tolist(), neighbourhood.path[neighbourhood.mask], strict=True)
    }


#   0 ─likes→ 1 ─likes→ 2,  0 ─knows→ 1
def triangle(**direction):
    graph = Graph.from_edges([0, 1, 0], [1, 2, 1], [0, 0, 1], edge_type_names=["likes", "knows"], **direction)
    return Dataset.for_links(graph, {"train": pairs((0, 0, 1, 1))}, ("knows", "likes"), name="three")


@pytest.mark.parametrize(
    ("direction", "hidden"),
    [
        ({"inverse": True}, {(0, 1, "likes"), (1, 0, "likes⁻¹")}),
        ({"undirected": True}, {(0, 1, "likes"), (1, 0, "likes")}),
        ({}, {(0, 1, "likes")}),
    ],
)
@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0)])
def test_a_link_that_is_asked_for_is_hidden_in_both_directions_and_nothing_else_is(direction, hidden, source, target):
    asked = ([source], [1], [target], [1])  # type 1 of those asked for is "likes"
    whole = seen(predictor(triangle(**direction), sample_size=50, exclude_targets=False), *asked)
    assert hidden <= whole and (0, 1, "knows") in whole
    assert seen(predictor(triangle(**direction), sample_size=50), *asked) == whole - hidden


def test_a_pair_that_is_no_link_hides_nothing():
    model, open_model = (predictor(triangle(inverse=True), sample_size=50, exclude_targets=hide) for hide in (True, False))
    asked = ([0], [1], [1], [0])
    assert seen(model, *asked) == seen(open_model, *asked)


def test_links_are_hidden_from_all_neighbourhoods_of_the_batch():
    model = predictor(triangle(inverse=True), sample_size=50)
    found = seen(model, [0, 1], [1, 1], [1, 2], [1, 1])
    assert not {(0, 1, "likes"), (1, 0, "likes⁻¹"), (1, 2, "likes"), (2, 1, "likes⁻¹")} & found
    assert {(0, 1, "knows"), (1, 0, "knows⁻¹"), (0, 2, "likes → likes")} <= found


def test_a_neighbourhood_of_nothing_but_the_link_becomes_empty_and_stays_harmless():
    for draw in range(10):
        model = predictor(triangle(inverse=True), sample_size=1, seed=draw)
        logits = model(*(torch.tensor([n]) for n in (0, 1, 1)), torch.ones(1))
        logits.sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_gatne_measures_type_1_of_twitter_only_and_all_types_elsewhere():
    graph = Graph.from_edges([0, 1], [1, 2], [0, 1], edge_type_names=["1", "2"])
    rows = pairs((0, 0, 1, 1), (0, 0, 2, 0), (0, 1, 1, 0), (1, 1, 2, 1))
    found = {}
    for name in ("twitter", "other"):
        splits = {"train": pairs((0, 0, 1, 1)), "test": rows}
        task = LinkTask(Dataset.for_links(graph, splits, ("1", "2"), name=name), 4)
        found[name] = task.measure(torch.tensor([1.0, -1, 1, -1]), "test")  # right for the first type, wrong for the other
    assert (found["twitter"]["gatne"]["roc_auc"], found["other"]["gatne"]["roc_auc"]) == (1, 0.5)
    assert found["twitter"]["roc_auc"] == found["other"]["roc_auc"] == 0.5


def test_nodes_of_a_split_are_represented_once_and_pairs_find_them():
    dataset = likes()
    task = LinkTask(dataset, 4)
    nodes, batches = task.nodes_of("valid"), task.split("valid", 3)
    source, target, edge_type = task.pairs_of("valid")
    assert np.array_equal(batches.columns["target"].reshape(-1)[batches.place], nodes)
    assert nodes[source].tolist() == dataset.splits["valid"].source.tolist()
    assert nodes[target].tolist() == dataset.splits["valid"].target.tolist()
    assert edge_type.tolist() == [0, 0, 0, 0, 1]


def test_the_mean_over_draws_of_links_is_of_probabilities():
    logits = torch.tensor([[100.0, -1, 3], [90, 2, 0]])
    mean = LinkTask(likes(), 4).mean_logits(logits)
    torch.testing.assert_close(mean.sigmoid(), logits.sigmoid().mean(0))
    assert torch.isfinite(mean).all()
