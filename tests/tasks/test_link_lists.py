"""Links learned by lists: batches, what hides, what the parts count, and that it learns."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

import gatas
from gatas.datasets import Dataset, Pairs
from gatas.errors import ConfigError
from gatas.graph import Graph
from gatas.tasks import LinkListTask, LinkTask
from gatas.tasks.link_list_task import KnownEnds
from gatas.tasks.link_lists import Links, chance_of_candidates, list_batches
from gatas.tasks.part_weights import Examples, fit_bias, fit_part_weights
from gatas.tasks.walk_limits import WalkLimits, count_walks, resolved
from gatas.training.config import Config
from gatas.transitions import HiddenFolds, OnDemand, Transitions
from tests.tasks.toys import SMALL, likes, predictor
from tests.transitions.test_properties import no_gpu

PARTS: dict[str, Any] = {"link_score": ("vectors", "paths"), "vector_size": 8, "revisits": True}
LISTS: dict[str, Any] = {"loss": "list", "hidden_folds": 4, "batch_size": 8, "epochs": 3, "l2": 0.0}


def batches_of(num_nodes, batch_size, num_negatives, chances=None, seed=0):
    generator = np.random.default_rng(5)
    links = Links(*(generator.integers(limit, size=50) for limit in (num_nodes, 3, num_nodes)))
    folds = generator.integers(4, size=50)
    given = (links, folds, np.array([2, 0, 3, 1]), batch_size, num_negatives, chances, np.arange(num_nodes))
    return links, folds, list_batches(*given, np.random.default_rng(seed))


@pytest.mark.parametrize(("num_nodes", "batch_size", "num_negatives"), [(10, 7, 5), (200, 7, 5), (200, 100, 30), (1000, 1, 1)])
def test_every_link_is_in_one_batch_with_its_ends_among_the_candidates(num_nodes, batch_size, num_negatives):
    links, folds, batches = batches_of(num_nodes, batch_size, num_negatives)
    seen = []
    for number, size in enumerate(batches.sizes):
        own = {name: column[number] for name, column in batches.columns.items()}
        candidates = own["candidates"]
        assert (np.diff(candidates) > 0).all() and len(candidates) == min(num_nodes, num_negatives + 2 * min(batch_size, 50))
        for end in ("source", "target"):
            np.testing.assert_array_equal(candidates[own[f"{end}_slot"]], own[end])
        rows = list(zip(*(own[name][:size] for name in ("source", "edge_type", "target")), strict=True))
        seen += [(int(batches.fold[number]), *map(int, row)) for row in rows]
    every = zip(folds, links.source, links.edge_type, links.target, strict=True)
    assert sorted(seen) == sorted(tuple(map(int, row)) for row in every)
    order = list(dict.fromkeys(batches.fold.tolist()))
    assert order == [2, 0, 3, 1]


def test_known_ends_of_many_types_and_nodes_take_no_more_room_than_the_links():
    generator, num_nodes = np.random.default_rng(0), 4_600_000
    query, node = 822 * num_nodes - generator.integers(1, 40, 100), generator.integers(num_nodes, size=100)
    known = KnownEnds.of(query, node, num_nodes)
    assert len(known.starts) + len(known.queries) + len(known.nodes) <= 302
    candidates = np.unique(np.concatenate([node[:50], [1, 2, 3]]))
    slot = torch.full((num_nodes,), -1, dtype=torch.int32)
    slot[torch.from_numpy(candidates)] = torch.arange(len(candidates), dtype=torch.int32)
    asked = np.array([*np.unique(query), 0, 7, 822 * num_nodes])
    expected = [[(one, other) in set(zip(query, node, strict=True)) for other in candidates] for one in asked]
    assert np.array_equal(known.among(torch.from_numpy(asked), slot, len(candidates)).numpy(), expected)


def test_nodes_may_be_drawn_by_degree():
    degree = np.ones(1000)
    degree[:10] = 1000
    often = [batches_of(1000, 5, 40, np.cumsum(degree) if by else None)[2].columns["candidates"] < 10 for by in (False, True)]
    assert often[1].sum() > 5 * often[0].sum()


def test_links_are_told_apart_from_nodes_of_the_types_that_they_lead_to_alone(tmp_path):
    rows = [f"p{n},v{n % 7},seen in" for n in range(60)] + [f"p{n},w{n},written by" for n in range(60)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target,type", *rows]))
    names = sorted({name for row in rows for name in row.split(",")[:2]})
    (tmp_path / "nodes.csv").write_text("\n".join(["id,type", *(f"{name},{name[0]}" for name in names)]))
    dataset = gatas.read_dataset(tmp_path / "edges.csv", tmp_path / "nodes.csv", task="link prediction", link_types=["seen in"])
    task = LinkListTask(dataset, 4, num_negatives=20, hidden_folds=2)
    drawn = np.unique(task.epoch(0, 0).columns["candidates"])
    ids = [str(dataset.graph.id_of(node)) for node in drawn]
    assert {name[0] for name in ids} == {"p", "v"} and len(ids) == 67


def multiplex(seed=0, num_nodes=40):
    """Random links of two types, some in both directions, some repeated; a few are held out."""
    generator = np.random.default_rng(seed)
    source, target = generator.integers(num_nodes, size=(2, 300))
    kind = generator.integers(2, size=300)
    keep = source != target
    source, kind, target = source[keep], kind[keep], target[keep]
    number = np.unique((kind * num_nodes + source) * num_nodes + target)
    source, kind, target = number // num_nodes % num_nodes, number // num_nodes**2, number % num_nodes
    held = generator.random(len(number)) < 0.1
    graph = Graph.from_edges(source[~held], target[~held], kind[~held], num_nodes=num_nodes, inverse=True,
                             edge_type_names=["a", "b"])  # fmt: skip
    others = generator.integers(num_nodes, size=(2, held.sum()))
    columns = ((source[held], others[0]), (kind[held], kind[held]), (target[held], others[1]))
    sources, kinds, targets = (np.concatenate(pair) for pair in columns)
    asked = Pairs(sources, kinds, targets, np.repeat([1, 0], held.sum()))
    train = Pairs(source[~held], kind[~held], target[~held], np.ones((~held).sum(), np.int8))
    return Dataset.for_links(graph, {"train": train, "valid": asked, "test": asked}, ("a", "b"), name="multiplex")


@pytest.mark.parametrize("loss", ["binary", "list"])
@pytest.mark.parametrize("batch_size", [16, 1000])
def test_rows_in_training_are_those_of_the_graph_without_the_links_asked_for(loss, batch_size, monkeypatch):
    dataset, seen = multiplex(), []
    model = predictor(dataset, seed=0, **(PARTS if loss == "list" else {}))
    kind = LinkListTask if loss == "list" else LinkTask
    method = "candidate_scores" if loss == "list" else "forward"
    whole = getattr(model, method)

    def watched(*given, **named):
        seen.append((model.sampler.transitions, whole))
        return whole(*given, **named)

    monkeypatch.setattr(model, method, watched)
    asked = []
    step = kind.objective

    def objective(self, model, weight, *, whole, **given):
        before = len(seen)
        result = step(self, model, weight, whole=whole, **given)
        real = weight > 0 if loss == "list" else given["label"] > 0
        links = {(int(u), int(r), int(v)) for u, r, v in zip(*(given[name][real] for name in ("source", "edge_type", "target")),
                                                            strict=True)}  # fmt: skip
        asked.append((seen[before][0], links))
        return result

    monkeypatch.setattr(kind, "objective", objective)
    gatas.fit(model, dataset, seed=0, device="cpu", **{**LISTS, "loss": loss, "epochs": 1, "batch_size": batch_size})
    train = dataset.splits["train"]
    links = list(zip(train.source.tolist(), train.edge_type.tolist(), train.target.tolist(), strict=True))
    assert sum(len(own) for _, own in asked) == len(links)
    hidden: dict[int, set[Any]] = {}
    for table, own in asked:
        hidden.setdefault(id(table), set()).update(own)
    tables = {id(table): table for table, _ in asked}
    assert len(tables) == 4
    for number, own in hidden.items():
        left = np.array([link for link in links if link not in own])
        graph = Graph.from_edges(left[:, 0], left[:, 2], left[:, 1], num_nodes=40, inverse=True, edge_type_names=["a", "b"])
        expected = Transitions.build(graph, 2, revisits=loss == "list").rows(np.arange(40))
        found = tables[number].rows(np.arange(40))
        for column in ("indptr", "node", "path", "probability"):
            np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))
    assert model.sampler.transitions is model.transitions


def triangles(num_nodes=60, seed=0):
    """Everybody is linked with both others of a threesome and of a ring: a link's ends have a neighbour in common."""
    generator = np.random.default_rng(seed)
    node = np.arange(num_nodes)
    source = np.concatenate([node, node, node])
    target = np.concatenate([(node + 1) % num_nodes, (node + 2) % num_nodes, (node + 3) % num_nodes])
    held = generator.random(len(source)) < 0.15
    graph = Graph.from_edges(source[~held], target[~held], num_nodes=num_nodes, undirected=True, edge_type_names=["link"])
    train = Pairs(source[~held], 0 * source[~held], target[~held], np.ones((~held).sum(), np.int8))
    far = (source[held] + num_nodes // 2) % num_nodes
    columns = [np.concatenate(pair) for pair in ((source[held], source[held]), (target[held], far))]
    asked = Pairs(columns[0], 0 * columns[0], columns[1], np.repeat([1, 0], held.sum()))
    return Dataset.for_links(graph, {"train": train, "valid": asked, "test": asked}, ("link",), name="triangles")


def reached_at(rows, target):
    """The step at which a row reaches a node, or 0."""
    found = rows.step[rows.node == target]
    return int(found.min()) if found.size else 0


def test_links_are_reached_in_training_as_in_testing():
    dataset = triangles()
    model, task = predictor(dataset, seed=0, num_steps=3), LinkTask(dataset, 100, hidden_folds=20)
    task.hide_from(model)
    train, test = dataset.splits["train"], dataset.splits["test"]
    held = list(zip(test.source[test.label == 1], test.target[test.label == 1], strict=True))
    at_test = [reached_at(model.transitions.row(u), v) for u, v in held]
    hidden = {fold: model.hidden.table(fold) for fold in range(20)}
    pairs = list(zip(train.source, train.target, task.folds, strict=True))
    in_training = [reached_at(hidden[fold].row(u), v) for u, v, fold in pairs]
    slot_alone = [reached_at(model.transitions.row(u), v) for u, v, _ in pairs]  # the step whose slot is then emptied
    assert set(slot_alone) == {1}  # nothing is left of how these nodes are reached else
    shares = [np.bincount(steps, minlength=4) / len(steps) for steps in (in_training, at_test)]
    assert shares[0][1] == shares[1][1] == 0 and abs(shares[0] - shares[1]).max() < 0.15, shares


def test_reverses_are_hidden_where_they_are_held_out_too():
    assert not LinkTask(multiplex(), 10, hidden_folds=4).hides_reverses  # some reverses of test links are in the graph
    assert not LinkTask(likes(), 10, hidden_folds=4).hides_reverses  # no link has a reverse
    dataset = likes()
    train = dataset.splits["train"]
    source, target = np.concatenate([train.source, train.target[:3]]), np.concatenate([train.target, train.source[:3]])
    kind = np.concatenate([train.edge_type, train.edge_type[:3]])
    graph = Graph.from_edges(source, target, kind, edge_type_names=["likes", "knows"], inverse=True)
    splits = {**dataset.splits, "train": Pairs(source, kind, target, np.ones(len(source), np.int8))}
    task = LinkTask(Dataset.for_links(graph, splits, ("likes", "knows")), 10, hidden_folds=4)
    assert task.hides_reverses
    folds = {(u, v): fold for u, v, fold in zip(source.tolist(), target.tolist(), task.folds.tolist(), strict=True)}
    assert all(folds[u, v] == folds[v, u] for u, v in folds if (v, u) in folds)


def test_types_of_negatives_may_be_all_alike():
    shares = []
    for types in ("as links", "all alike"):
        task = LinkTask(likes(), 10, negative_types=types)
        kinds = np.concatenate([task.drawn_negatives(np.random.default_rng(k))["edge_type"] for k in range(50)])
        shares.append((kinds == 1).mean())
    assert shares[0] == pytest.approx(6 / 26) and shares[1] == pytest.approx(0.5, abs=0.05)


def test_parts_that_find_the_answer_count_more():
    generator = torch.Generator().manual_seed(0)
    answer = torch.randint(20, (300,), generator=generator)
    noise = torch.randn(2, 300, 20, generator=generator)
    good = noise[0] + 3 * torch.nn.functional.one_hot(answer, 20)
    weights = fit_part_weights([Examples(torch.stack([good, noise[1]]), answer)])
    assert weights[0] > 1 and weights[1] < 0.1


def test_scores_become_log_odds_type_by_type():
    generator = torch.Generator().manual_seed(0)
    kind = torch.randint(2, (4000,), generator=generator)
    scores = torch.randn(4000, generator=generator) * 2
    truth = torch.rand(4000, generator=generator) < torch.sigmoid(1.5 * scores + torch.tensor([-1.0, 2.0])[kind])
    slope, bias = fit_bias(scores, truth.int(), kind, 3)
    assert slope.item() == pytest.approx(1.5, rel=0.1) and bias[:2].tolist() == pytest.approx([-1, 2], abs=0.25)


def test_it_learns_what_only_paths_tell():
    dataset = triangles(num_nodes=90)
    settings = {**LISTS, "epochs": 15, "batch_size": 64, "learning_rate": 0.02}
    run = gatas.fit(
        predictor(dataset, seed=0, **{**PARTS, "link_score": ("paths",)}), dataset, seed=0, device="cpu", **settings
    )
    assert run.metrics["test"]["roc_auc"] > 0.95


def test_what_cannot_be_learned_so_is_refused():
    with pytest.raises(ConfigError, match="scores one pair at a time"):
        gatas.fit(predictor(likes(), seed=0), likes(), seed=0, loss="list")
    with pytest.raises(ConfigError, match="would give itself away"):
        gatas.fit(predictor(likes(), seed=0, **PARTS), likes(), seed=0, hidden_folds=0)
    with pytest.raises(ConfigError, match="pair alone"):
        predictor(likes(), link_score=("pair", "paths"))


def test_seeds_one_after_another_are_as_each_alone(tmp_path):
    settings = {**LISTS, "epochs": 2}
    model = {**SMALL, "node_embedding_size": 4, **PARTS}
    config = Config(data={"name": "kinship"}, model=model, training=settings)  # data are given
    many = gatas.fit_many(config, [3, 4], dataset=likes(), device="cpu", folder=tmp_path / "runs")
    alone = gatas.fit(predictor(likes(), seed=4, **PARTS), likes(), seed=4, device="cpu", **settings)
    assert many[1].metrics["valid"] == alone.metrics["valid"]
    assert sorted(path.name for path in (tmp_path / "runs").glob("seed-*")) == ["seed-3", "seed-4"]


def test_auto_is_three_steps_where_there_are_few_walks(monkeypatch):
    dataset = likes()
    assert predictor(dataset, num_steps="auto", max_degree="auto").config.num_steps == 3
    monkeypatch.setattr("gatas.tasks.walk_limits.MOST_WALKS", {3: 10.0, 2: 1e8})
    assert predictor(dataset, num_steps="auto", max_degree="auto").config.num_steps == 2


def test_auto_looks_at_neighbourhoods_where_nodes_have_few_edges(monkeypatch):
    scored = {"link_score": "auto", "vector_size": 4}
    assert "neighbourhood" in predictor(likes(), **scored).config.link_score
    monkeypatch.setattr("gatas.tasks.settling.FEW_EDGES", 1)
    assert predictor(likes(), **scored).config.link_score == ("vectors", "paths")


def test_auto_goes_past_hubs_that_make_too_many_walks(monkeypatch):
    hub = Graph.from_edges(np.zeros(500, int), np.arange(1, 501), num_nodes=501, undirected=True)
    limits = WalkLimits(hub, links=True)
    assert limits.degree(2) is None
    monkeypatch.setattr("gatas.tasks.walk_limits.MOST_WALKS", {3: 1e4, 2: 1e4})
    assert limits.degree(2) == 256 and count_walks(hub, 2, 256) <= 1e4 < count_walks(hub, 2, None)
    config = predictor(likes()).config.model_copy(update={"num_steps": 2, "max_degree": "auto"})
    settled, reasons, _ = resolved(config, limits)
    assert settled.max_degree == 256 and reasons == ["max_degree: 256, since walks through all nodes are too many"]


@pytest.mark.parametrize("loss", ["binary", "list"])
def test_nothing_is_kept_of_hidden_links_after_training(loss, monkeypatch):
    tables, made = [], HiddenFolds.table

    def table(self, fold):
        tables.append(weakref.ref(made(self, fold)))
        return made(self, fold)

    monkeypatch.setattr(HiddenFolds, "table", table)
    model = predictor(likes(), seed=0, **(PARTS if loss == "list" else {}))
    gatas.fit(model, likes(), seed=0, device="cpu", **{**LISTS, "loss": loss, "epochs": 2})
    gc.collect()
    assert len(tables) == 8 and not any(one() for one in tables)
    assert model.hidden is None and model.sampler.transitions is model.transitions


@no_gpu
@pytest.mark.parametrize("parts", [("vectors", "paths"), ("vectors", "neighbourhood", "paths")])
def test_a_gpu_learns_and_answers_as_a_cpu_does(parts):
    settings = {**LISTS, "epochs": 2, "precision": "float32", "evaluation_mode": "top"}
    runs = [
        gatas.fit(predictor(likes(), seed=0, **{**PARTS, "link_score": parts}), likes(), seed=0, device=device, **settings)
        for device in ("cpu", "cuda")
    ]
    here, there = ([entry["loss"] for entry in run.history] for run in runs)
    assert there == pytest.approx(here, rel=1e-3)
    name, nodes = likes().names[0], list(range(8))
    ours, theirs = (run.predictor.predict_links(nodes, [name] * 8, nodes[::-1]) for run in runs)
    np.testing.assert_allclose(theirs, ours, atol=0.02)
    assert len(runs[1].predictor.rank_links(0, name, top=3).probabilities) == 3


def mutual(num_nodes=60, seed=0):
    """Nine of ten links go both ways; those held out leave no reverse in the graph. Return also the links that go one way."""
    generator = np.random.default_rng(seed)
    low, high = np.triu_indices(num_nodes, 1)
    chosen = generator.choice(len(low), 160, replace=False)
    held, one_way, both = (np.stack([low[part], high[part]]) for part in np.split(chosen, [20, 34]))
    source, target = np.concatenate([one_way, both, both[::-1]], axis=1)
    graph = Graph.from_edges(source, target, num_nodes=num_nodes, inverse=True)
    asked = np.concatenate([held, generator.integers(num_nodes, size=(2, 20))], axis=1)
    valid = Pairs(asked[0], np.zeros(40, np.int64), asked[1], (np.arange(40) < 20).astype(np.int8))
    train = Pairs(source, np.zeros(len(source), np.int64), target, np.ones(len(source), np.int8))
    return Dataset.for_links(graph, {"train": train, "valid": valid}, name="mutual"), one_way.T


def test_a_link_does_not_speak_against_its_reverse_where_both_are_hidden_together():
    """The answer's reverse is hidden; were those of others seen, paths would learn that a link speaks against its reverse."""
    dataset, one_way = mutual()
    run = gatas.fit(gatas.LinkPredictor(dataset, **PARTS), dataset, seed=0, **(LISTS | {"epochs": 20, "patience": 20}))
    (name,) = dataset.names
    answers = [run.predictor.explain_link(int(end), name, int(start)) for start, end in one_way]
    reverse = [part.value for answer in answers for part in answer.contributions if part.name == f"{name}⁻¹"]
    assert len(reverse) == len(answers) and max(map(abs, reverse)) < 0.05


def test_rows_on_demand_are_on_demand_with_links_hidden_too_and_train_the_same_model(monkeypatch):
    dataset = likes()
    walks: dict[str, Any] = {"num_steps": 2, "revisits": True}
    stored = gatas.fit(gatas.LinkPredictor(dataset, **PARTS, num_steps=2), dataset, seed=0, **LISTS)
    rows = OnDemand(dataset.graph, **walks)
    monkeypatch.setattr(Transitions, "build", lambda *_, **__: pytest.fail("a table was built"))
    asked = gatas.fit(gatas.LinkPredictor(dataset, transitions=rows, **PARTS, num_steps=2), dataset, seed=0, **LISTS)
    assert asked.history[-1]["loss"] == stored.history[-1]["loss"]
    assert asked.metrics["valid"] == stored.metrics["valid"]


@pytest.mark.parametrize("by_degree", [False, True])
def test_nodes_are_among_the_candidates_as_often_as_is_reckoned(by_degree):
    """Frequencies over 2,400 batches, of nodes that are ends of very many links and of none."""
    generator, num_nodes, num_links = np.random.default_rng(0), 600, 3000
    often = generator.zipf(1.5, size=num_nodes).clip(max=200)
    source, target = (generator.choice(num_nodes, num_links, p=often / often.sum()) for _ in range(2))
    links, chances = Links(source, np.zeros(num_links, np.int64), target), np.cumsum(often.astype(float)) if by_degree else None
    pool, met = np.arange(num_nodes), np.zeros(num_nodes)
    expected = chance_of_candidates(links, 50, 100, chances, pool)
    for seed in range(40):
        folds, order = np.zeros(num_links, np.int64), np.zeros(1, np.int64)
        batches = list_batches(links, folds, order, 50, 100, chances, pool, np.random.default_rng(seed))
        met += np.bincount(batches.columns["candidates"].ravel(), minlength=num_nodes)
    assert expected is not None and expected.sum() == approx(200) and expected.max() > 0.8 > 0.3 > expected.min()
    assert np.abs(met / 2400 - expected).max() < 0.04  # four standard deviations of a frequency near 1/2
    assert chance_of_candidates(links, 300, 100, chances, pool) is None  # all nodes are


def test_the_softmax_over_candidates_is_as_over_all_nodes_on_average():
    """Popular nodes are ends of links of nearly every batch, so their scores stay; those of others stand for many more."""
    task = LinkListTask(likes(), 4, num_negatives=2).to(torch.device("cpu"))
    assert task.log_chance is not None
    scores = torch.randn(1, task.num_nodes, generator=torch.Generator().manual_seed(0))
    sums = []
    for epoch in range(200):
        for candidates in torch.from_numpy(task.epoch(0, epoch).columns["candidates"]):
            own = scores[:, candidates]
            left = task.as_over_all_nodes(own, candidates, answer=torch.tensor([0]))
            assert left[0, 0] == own[0, 0]  # the answer of a query is there in any case
            sums.append(left[0, 1:].exp().sum() + (own[0, 0] - task.log_chance[candidates[0]]).exp())
    assert torch.stack(sums).mean().item() == approx(scores.exp().sum().item(), rel=0.05)
