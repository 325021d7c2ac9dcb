"""Models whose score of a link is a sum of parts: exact, ranked as scored, loaded as trained, and over new nodes."""

from typing import Any

import numpy as np
import pytest
import torch

import gatas
from gatas.datasets import Dataset, Pairs
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.inference import Predictor
from gatas.nn.path_weights import PathWeights
from gatas.tasks import LinkPredictor
from gatas.tasks.link_paths import log_degrees
from gatas.tasks.link_scorer import PartsScorer
from gatas.transitions import Nearby
from tests.tasks.toys import SMALL, likes

ALL = ("vectors", "neighbourhood", "paths")
PARTS = [("vectors",), ("paths",), ("vectors", "paths"), ("neighbourhood",), ALL]


def model_of(dataset, parts, **settings):
    sizes: Any = {**SMALL, "node_embedding_size": 4, "vector_size": 6, "revisits": True}
    return LinkPredictor(dataset, **{**sizes, "link_score": parts, **settings})


def trained_on(dataset, parts, **settings):
    given: Any = {"loss": "list", "hidden_folds": 3, "n3": 0.01, "l2": 0, "epochs": 2, "batch_size": 8}
    return gatas.fit(model_of(dataset, parts, **settings), dataset, seed=3, device="cpu", **given)


@pytest.fixture(scope="module")
def runs():
    dataset, found = likes(), {}

    def run(parts, **settings):
        key = (parts, *settings.items())
        if key not in found:
            found[key] = trained_on(dataset, parts, **settings)
        return found[key]

    return run


@pytest.mark.parametrize("parts", PARTS, ids="+".join)
def test_probabilities_are_the_sigmoid_of_the_model_s_own_scores(runs, parts):
    run = runs(parts)
    every = torch.arange(12)
    source, target = every.repeat_interleave(12), every.repeat(12)
    for kind in (0, 1):
        types = torch.full_like(source, kind)
        with torch.no_grad():
            nodes = run.model.represent(every, draw=torch.tensor(-1), mode=run.predictor.mode)
            expected = run.model.score(nodes[source], nodes[target], types, (source, target)).sigmoid()
        found = run.predictor.score_indices(source.numpy(), types.numpy(), target.numpy()).probabilities
        assert found == pytest.approx(expected.numpy(), abs=1e-6)


@pytest.mark.parametrize("decoder", ["complex", "distmult", "bilinear"])
@pytest.mark.parametrize("parts", PARTS, ids="+".join)
def test_a_ranking_has_the_probabilities_of_its_links(runs, parts, decoder):
    predictor = runs(parts, decoder=decoder).predictor
    for name in predictor.names:
        for node in (0, 7):
            found = predictor.rank_links(node, name, top=50)
            assert found.sources.to_pylist() == [node] * len(found)
            same = predictor.predict_links([node] * len(found), name, found.targets)
            np.testing.assert_array_equal(found.probabilities, same)
            assert (np.diff(found.probabilities) <= 0).all()
            back = predictor.rank_links(target=node, edge_type=name, top=50)
            same = predictor.predict_links(back.sources, name, [node] * len(back))
            np.testing.assert_array_equal(back.probabilities, same)
            assert (np.diff(back.probabilities) <= 0).all()


@pytest.mark.parametrize("mode", ["all", "sample"])
def test_answers_do_not_depend_on_what_else_is_asked_for(runs, mode):
    run = runs(ALL)
    predictor = Predictor(run.model, run.dataset, mode=mode, draws=3)
    sources, targets = np.repeat(np.arange(12), 12), np.tile(np.arange(12), 12)
    every = predictor.predict_links(sources, "likes", targets)
    alone = [predictor.predict_links([one], "likes", [other])[0] for one, other in zip(sources, targets, strict=True)]
    np.testing.assert_array_equal(every, alone)
    several = predictor.rank_links([4, 2, 4], "knows", top=3)
    for place, node in enumerate((4, 2, 4)):
        one = predictor.rank_links(node, "knows", top=3)
        part = several.table().slice(3 * place, 3)
        assert part.to_pylist() == one.table().to_pylist()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU that torch can use")
@pytest.mark.parametrize("parts", [*PARTS, ("pair",)], ids="+".join)
def test_a_gpu_gives_the_answers_of_a_cpu(parts):
    dataset = likes()
    here = Predictor(model_of(dataset, parts), dataset, mode="all")
    there = Predictor(model_of(dataset, parts), dataset, mode="all").to("cuda")
    sources, targets = np.repeat(np.arange(12), 12), np.tile(np.arange(12), 12)
    expected = here.predict_links(sources, "likes", targets)
    assert there.predict_links(sources, "likes", targets) == pytest.approx(expected, abs=1e-6)
    ends: list[Any] = [{"source": 3}, {"target": 3}]
    for asked in ends:
        one, other = (predictor.rank_links(edge_type="likes", top=4, **asked) for predictor in (here, there))
        assert other.probabilities == pytest.approx(one.probabilities, abs=1e-6)
    extended = there.with_new_nodes(None, ([12], ["likes"], [0]))
    assert len(extended.rank_links(12, "likes", top=3)) == 3
    assert there.evaluate_ranking("test")["mrr"] == pytest.approx(here.evaluate_ranking("test")["mrr"], abs=1e-3)


def test_known_links_are_ranked_neither_forwards_nor_backwards(runs):
    predictor = runs(("vectors", "paths")).predictor
    assert sorted(predictor.rank_links(1, "likes", 50).targets.to_pylist()) == [0, *range(4, 12)]  # it likes 2 and 3
    to_four = predictor.rank_links(target=4, edge_type="likes", top=50).sources.to_pylist()
    assert sorted(to_four) == [0, 1, *range(5, 12)]  # 2 and 3 like it


def test_links_of_validation_are_known_unless_asked_for_and_those_of_test_are_not(runs):
    predictor = runs(("vectors", "paths")).predictor
    found = {
        (known, node): set(range(12)) - set(predictor.rank_links(node, "likes", 50, **known_as(known)).targets.to_pylist())
        for known in ("train", "valid", "all", None)
        for node in (0, 6)
    }
    assert found["train", 0] == {0, 1} and found["train", 6] == {6, 7}
    assert found["valid", 0] == found[None, 0] == found["all", 0] == {0, 1, 2}
    assert found["valid", 6] == found[None, 6] == {6, 7} and found["all", 6] == {6, 7, 8}
    assert 0 not in predictor.rank_links(target=2, edge_type="likes", top=50).sources.to_pylist()
    with pytest.raises(GatasError, match="expected 'train', 'valid', 'all'"):
        predictor.rank_links(0, "likes", known="test")


def known_as(known):
    return {} if known is None else {"known": known}


def test_links_of_validation_that_go_both_ways_are_known_from_either_end():
    run = trained_on(likes(undirected=True), ("vectors", "paths"))
    assert 0 not in run.predictor.rank_links(2, "likes", 50).targets.to_pylist()


@pytest.mark.parametrize("given", [{}, {"source": 1, "target": 2}])
def test_one_end_is_asked_for(runs, given):
    with pytest.raises(GatasError, match="give one of them, and the other is looked for"):
        runs(("vectors",)).predictor.rank_links(edge_type="likes", **given)


@pytest.mark.parametrize("parts", PARTS, ids="+".join)
def test_a_loaded_run_answers_as_the_trained_one(runs, parts, tmp_path):
    run = runs(parts)
    run.save(tmp_path / "run")
    loaded, own = gatas.load(tmp_path / "run", device="cpu"), run.predictor
    assert isinstance(loaded.model.transitions, Nearby) and loaded.fingerprint == own.fingerprint
    for _ in range(2):
        for name in own.names:
            assert loaded.rank_links([0, 5], name, 4).table().equals(own.rank_links([0, 5], name, 4).table())
            back = [one.rank_links(target=[5, 0], edge_type=name, top=4).table() for one in (loaded, own)]
            assert back[0].equals(back[1])
        assert loaded.evaluate_ranking("test") == own.evaluate_ranking("test")
        loaded.prepare()  # a table that was built here has paths of its own
    if parts != ("paths",):
        np.testing.assert_array_equal(loaded.embed_all(), own.embed_all())


def test_weights_of_paths_are_loaded_with_their_paths(runs):
    run = runs(("vectors", "paths"))
    rows = Nearby(run.dataset.graph, run.model.transitions.setting)
    other = model_of(run.dataset, ("vectors", "paths"), num_steps=2)
    nearby = LinkPredictor(run.dataset, transitions=rows, **run.model.config.model_dump())
    assert len(nearby.link_head.path_ids) > len(run.model.link_head.path_ids) == len(other.link_head.path_ids)
    nearby.load_state_dict(run.model.state_dict())
    for name, tensor in run.model.link_head.named_buffers():
        assert torch.equal(tensor, dict(nearby.link_head.named_buffers())[name]), name
    assert torch.equal(nearby.link_head.paths(), run.model.link_head.paths())


def test_a_run_is_loaded_without_weights_for_other_paths(runs, tmp_path, monkeypatch):
    run, sizes = runs(("vectors", "paths")), []
    run.save(tmp_path / "run")
    made = PathWeights.__init__

    def noted(self, *given):
        sizes.append(len(given[0]))
        made(self, *given)

    monkeypatch.setattr(PathWeights, "__init__", noted)
    gatas.load(tmp_path / "run", device="cpu")
    assert sizes == [len(run.model.link_head.path_ids)]


def test_weights_of_some_types_are_those_of_all(monkeypatch):
    for most in (20_000, 0):
        monkeypatch.setattr("gatas.nn.path_weights.TABLE_SIZE", most)
        weights = model_of(likes(), ("paths",)).link_head.paths.double()
        with torch.no_grad():
            for parameter in weights.parameters():
                parameter.normal_()
            some = weights.of_types(torch.tensor([1, 0]))
            assert weights.is_table is (most > 0) and torch.allclose(some, weights()[[1, 0]])


def test_the_ranking_that_was_measured_is_measured_again(runs):
    run = runs(ALL)
    predictor = Predictor(run.model, run.dataset, mode="all")
    with torch.no_grad():
        nodes = run.model.represent(torch.arange(12), draw=torch.tensor(-1), mode="all")
    from gatas.tasks.ranking import LinkRanking, ranking_metrics

    ranks = LinkRanking.of_split(run.dataset, "test").ranks(PartsScorer(run.model, nodes))
    assert predictor.evaluate_ranking("test") == ranking_metrics(ranks, run.dataset.names)


@pytest.mark.parametrize("parts", [("vectors",), ("vectors", "paths")], ids="+".join)
def test_without_neighbourhoods_a_node_is_represented_by_its_own_vector(runs, parts, tmp_path):
    run = runs(parts)
    predictor, own = run.predictor, run.model.link_head.vectors.weight.detach().numpy()
    assert predictor.embedding_size == 6
    np.testing.assert_array_equal(predictor.embed_all(), own)
    np.testing.assert_array_equal(predictor.embed([7, 2]), own[[7, 2]])
    predictor.write_embeddings(tmp_path / "rows.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), own)


def test_with_neighbourhoods_a_node_is_represented_by_the_encoder(runs):
    predictor = runs(ALL).predictor
    assert predictor.embedding_size == predictor.embed_all().shape[1] == 8


def test_paths_alone_represent_no_node(runs):
    predictor = runs(("paths",)).predictor
    assert predictor.embedding_size == 0
    with pytest.raises(GatasError, match="by typed paths alone, so nodes have no representations"):
        predictor.embed([1])


@pytest.mark.parametrize("parts", PARTS, ids="+".join)
@pytest.mark.parametrize("rule", ["mean", "zeros"])
def test_new_nodes_have_links(runs, parts, rule):
    predictor = runs(parts).predictor
    extended = predictor.with_new_nodes(None, ([12, 3], ["likes"] * 2, [0, 12]), embeddings=rule)
    found = extended.rank_links(12, "likes", top=50)
    assert sorted(found.targets.to_pylist()) == list(range(1, 12))
    same = extended.predict_links([12] * len(found), "likes", found.targets)
    np.testing.assert_array_equal(found.probabilities, same)
    to_new = extended.rank_links(target=12, edge_type="likes", top=50)
    assert sorted(to_new.sources.to_pylist()) == [node for node in range(12) if node != 3]
    assert 12 in extended.rank_links(5, "likes", top=50).targets.to_pylist()
    if parts != ("paths",):
        assert extended.embed([12]).shape == (1, extended.embedding_size)
    if "neighbourhood" not in parts and parts != ("paths",) and rule == "zeros":
        assert not extended.embed([12]).any()


def test_paths_of_new_nodes_are_those_of_the_graph_with_them():
    """Vectors play no part: a model over the whole graph, with the same weights, says the same."""
    source, target = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (5, 1), (5, 3)]).T

    def of(rows, count):
        graph = Graph.from_edges(source[rows], target[rows], num_nodes=count, inverse=True)
        pairs = Pairs(source[:2], np.zeros(2, np.int64), target[:2], np.ones(2, np.int8))
        return Dataset.for_links(graph, {"train": pairs}, graph.edge_type_names[:1])

    whole, rest = of(np.arange(8), 6), of(np.arange(6), 5)
    full, small = (model_of(dataset, ("paths",)) for dataset in (whole, rest))
    with torch.no_grad():
        small.link_head.paths.table.normal_()
        small.link_head.paths.unreached.normal_()
    full.load_state_dict({**full.state_dict(), **{name: value for name, value in small.state_dict().items() if "head" in name}})
    extended = Predictor(small, rest).with_new_nodes(None, ([5, 5], [1, 3]))
    assert torch.equal(extended.exact.log_degree, log_degrees(whole.graph))
    every = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    name = whole.names[0]
    expected = Predictor(full, whole).predict_links(every[0], name, every[1])
    np.testing.assert_array_equal(extended.predict_links(every[0], name, every[1]), expected)


@pytest.mark.parametrize("parts", [ALL, ("pair",)], ids="+".join)
@pytest.mark.parametrize("num_steps", [1, 2, 3])
def test_what_is_known_about_nodes_far_from_new_edges_is_taken_over(parts, num_steps):
    """A ring of forty: a new node is linked to one place, and only what is around it is made anew."""
    node = np.arange(40)
    graph = Graph.from_edges(node, (node + 1) % 40, np.zeros(40, int), edge_type_names=["next"], inverse=True)
    links = Pairs(node, np.zeros(40, np.int64), (node + 1) % 40, np.ones(40, np.int8))
    dataset = Dataset.for_links(graph, {"train": links}, ("next",))
    model = model_of(dataset, parts, num_steps=num_steps)
    new: Any = (None, ([40, 8], ["next"] * 2, [3, 40]))
    cold = Predictor(model, dataset, mode="all").with_new_nodes(*new)
    warm = Predictor(model, dataset, mode="all").prepare_links().with_new_nodes(*new)
    made, represent = [], warm.exact.represent
    warm.exact.represent = lambda nodes, *given: made.extend(nodes) or represent(nodes, *given)  # type: ignore
    for source in (40, 3, 20):
        expected = cold.rank_links(source, "next", 50)
        assert warm.rank_links(source, "next", 50).table().equals(expected.table())
    assert len(set(made)) == 1 + 2 * (2 * num_steps - 1) and len(made) == len(set(made)) + 1  # the first query before all


def shop():
    """Customers 0 to 5 buy things 6 to 9, and know each other."""
    bought = [(one, 6 + (one * step) % 4) for one in range(6) for step in (1, 3)]
    edges = [(one, 0, thing) for one, thing in dict.fromkeys(bought)] + [(one, 1, (one + 1) % 6) for one in range(6)]
    source, kind, target = np.array(edges).T
    graph = Graph.from_edges(source, target, kind, edge_type_names=["buys", "knows"], inverse=True)
    links = Pairs(source, kind, target, np.ones(len(source), np.int8))
    nodes: Any = {"node_type": np.repeat([0, 1], [6, 4]), "node_type_names": ("customer", "thing")}
    return Dataset.for_links(graph, {"train": links, "valid": links}, ("buys", "knows"), **nodes)


@pytest.fixture(scope="module")
def shop_predictors():
    dataset = shop()
    return [Predictor(model_of(dataset, parts), dataset) for parts in (("vectors", "paths"), ("pair",))]


def test_nodes_of_the_wrong_type_are_not_ranked(shop_predictors):
    for predictor in shop_predictors:
        assert set(predictor.rank_links(0, "buys", 50).targets.to_pylist()) <= {6, 7, 8, 9}
        assert set(predictor.rank_links(target=7, edge_type="buys", top=50).sources.to_pylist()) <= set(range(6))
        assert set(predictor.rank_links(0, "knows", 50).targets.to_pylist()) == {2, 3, 4, 5}


def test_a_node_of_a_type_that_such_links_do_not_have_is_refused(shop_predictors):
    message = "links of the type 'buys' start from nodes of the type 'customer', and 7 is of the type 'thing'"
    for predictor in shop_predictors:
        with pytest.raises(GatasError, match=message):
            predictor.rank_links(7, "buys")
        with pytest.raises(
            GatasError, match="links of the type 'buys' lead to nodes of the type 'thing', and 0 is of the type"
        ):
            predictor.rank_links(target=0, edge_type="buys")
