"""Rows in training are those of the graph without the links asked for, to the bit, however and whenever they are asked for."""

import gc
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatas.errors import TooLargeError, TransitionError
from gatas.graph import Graph
from gatas.transitions import HiddenFolds, OnDemand, Transitions, assign_folds, hidden, link_edges, link_groups
from gatas.transitions.build import Walks
from tests.transitions.oracles import same_bytes
from tests.transitions.test_properties import no_gpu, random_graph

Triples = list[tuple[int, int, int]]


@dataclass
class Example:
    """Listed edges, and links in folds, some of which are edges."""

    num_nodes: int
    num_types: int
    edges: Triples
    weight: list[float] | None
    direction: str
    links: Triples  # of link types, which `edge_types` has the edge types of
    edge_types: list[int]
    fold: list[int]
    reverse: bool

    def graph(self, without: Any = ()) -> Graph:
        chosen = [k for k, edge in enumerate(self.edges) if edge not in without]
        source, kind, target = ([self.edges[k][column] for k in chosen] for column in range(3))
        given: Any = {"weight": [self.weight[k] for k in chosen] if self.weight else None}
        if self.direction:
            given[self.direction] = True
        return Graph.from_edges(source, target, kind, num_nodes=self.num_nodes, num_edge_types=self.num_types, **given)

    def hidden(self, fold: int) -> set[tuple[int, int, int]]:
        """Return the listed edges that are links of a fold; in an undirected graph a reverse is the same link."""
        chosen = [link for link, of_fold in zip(self.links, self.fold, strict=True) if of_fold == fold]
        edges = {(source, self.edge_types[kind], target) for source, kind, target in chosen}
        if self.reverse or self.direction == "undirected":
            edges |= {(target, kind, source) for source, kind, target in edges}
        return edges

    @property
    def columns(self) -> tuple[list[int], list[int], list[int]]:
        source, kind, target = ([link[column] for link in self.links] for column in range(3))
        return source, kind, target


@st.composite
def examples(draw):
    num_nodes, num_types = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, st.integers(0, num_types - 1), node), max_size=3 * num_nodes))
    direction, weighted = draw(st.sampled_from(["", "inverse", "undirected"])), draw(st.booleans())
    if weighted and direction == "undirected":  # both directions of an edge must have one weight
        edges = list({(min(a, b), kind, max(a, b)): (a, kind, b) for a, kind, b in edges}.values())
    weight = draw(st.lists(st.floats(0.1, 10), min_size=len(edges), max_size=len(edges))) if weighted else None
    edge_types = draw(st.permutations([*range(num_types), -1]))
    link_type = {kind: number for number, kind in enumerate(edge_types)}
    known = st.sampled_from(edges).map(lambda edge: (edge[0], link_type[edge[1]], edge[2])) if edges else st.nothing()
    links = draw(st.lists(known | st.tuples(node, st.integers(0, num_types), node), min_size=1, max_size=8))
    fold = draw(st.lists(st.integers(0, 2), min_size=len(links), max_size=len(links)))
    return Example(num_nodes, num_types, edges, weight, direction, links, edge_types, fold, draw(st.booleans()))


walks = st.builds(
    Walks,
    num_steps=st.integers(1, 3),
    kind=st.sampled_from(["walk", "count"]),
    max_candidates=st.none() | st.integers(1, 4),
    max_degree=st.none() | st.integers(1, 4),
    revisits=st.booleans(),
)


def built(graph, walks, device=None):
    limits = {"max_degree": walks.max_degree, "revisits": walks.revisits, "device": device}
    return Transitions.build(graph, walks.num_steps, walks.kind, None, walks.max_candidates, **limits)


@pytest.mark.parametrize("where", ["stored", "on demand", "cpu", pytest.param("cuda", marks=no_gpu)])
@settings(max_examples=60)
@given(example=examples(), walks=walks, num_threads=st.sampled_from([1, 2]), data=st.data())
def test_rows_are_those_of_a_graph_made_without_the_links(where, example, walks, num_threads, data):
    device = where if where in ("cpu", "cuda") else None
    settings: Any = {"on_demand": where == "on demand", "device": device, "num_threads": num_threads}
    settings |= {"kept_bytes": data.draw(st.sampled_from([None, 0]))}
    source, kind, target = example.columns
    settings |= {"reverse": example.reverse}
    folds = HiddenFolds(example.graph(), walks, source, kind, target, example.fold, example.edge_types, **settings)
    for fold in data.draw(st.lists(st.integers(0, folds.num_folds - 1), min_size=1, max_size=4)):
        for announced in data.draw(st.lists(st.integers(0, folds.num_folds - 1), max_size=2)):
            folds.ahead(announced)
        targets = data.draw(st.lists(st.integers(0, example.num_nodes - 1), min_size=1, max_size=5))
        expected = built(example.graph(example.hidden(fold)), walks, device)
        table = folds.table(fold)
        assert same_bytes(table.rows(targets), expected.rows(targets))
        assert table.setting == expected.setting  # the fingerprint of the graph among it
    folds.close()


@settings(max_examples=100)
@given(example=examples())
def test_the_edges_left_are_those_of_a_graph_made_without_the_links(example):
    graph, smaller = example.graph(), [example.graph(example.hidden(fold)) for fold in range(3)]
    columns = [np.array(column) for column in example.columns]
    for fold, expected in enumerate(smaller):
        chosen = np.array(example.fold) == fold
        source, kind, target = (column[chosen] for column in columns)
        mask = link_edges(graph, example.edge_types, source, kind, target, reverse=example.reverse)
        left = graph.without_edges(mask)
        for name in ("indptr", "neighbour", "edge_type", "weight"):
            np.testing.assert_array_equal(getattr(left, name), getattr(expected, name))
        assert (left.inverse_of, left.edge_type_names) == (expected.inverse_of, expected.edge_type_names)


def test_links_are_found_in_a_larger_graph():
    graph = random_graph(2_000, 30_000, 3, seed=3, inverse=True)
    chance = np.random.default_rng(0)
    asked = chance.random(graph.num_edges) < 0.3
    mask = link_edges(graph, range(6), graph.source[asked], graph.edge_type[asked], graph.neighbour[asked])
    keys = {*zip(graph.source[asked].tolist(), graph.edge_type[asked].tolist(), graph.neighbour[asked].tolist(), strict=True)}
    keys |= {(target, graph.inverse_of[kind], source) for source, kind, target in keys}
    edges = zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True)
    assert mask.tolist() == [edge in keys for edge in edges]


def test_a_link_is_reached_by_what_is_left_of_the_graph():
    #   0 ─ 1      without the link 0 ─ 2, node 2 is two steps from 0, by 1, and with it at one
    #    ╲ ╱
    #     2
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2], undirected=True)
    folds = HiddenFolds(graph, Walks(2), [0], [0], [2], [0], [0])
    row = folds.table(0).row(0)
    assert (row.node.tolist(), row.step.tolist()) == ([0, 1, 2], [0, 1, 2])
    assert Transitions.build(graph, 2).row(0).step.tolist() == [0, 1, 1]
    assert folds.graph_without(0).num_edges == 4 and folds.hidden_edges(0).sum() == 2


def toy_folds(num_folds=3, **settings):
    graph = random_graph(60, 240, 2, seed=2)
    fold = np.arange(graph.num_edges) % num_folds
    return HiddenFolds(graph, Walks(2), graph.source, graph.edge_type, graph.neighbour, fold, [0, 1], **settings)


class Builds:
    """Counts the tables that are built, and holds them up until it is told to go on."""

    def __init__(self, monkeypatch, error=None):
        self.count, self.go_on, self.error = 0, threading.Event(), error
        build = Transitions.build

        def held_up(*arguments, **settings):
            self.count += 1
            assert self.go_on.wait(30)
            if self.error is not None:
                raise self.error
            return build(*arguments, **settings)

        monkeypatch.setattr(Transitions, "build", held_up)


def test_what_was_announced_is_made_once_in_the_background(monkeypatch):
    builds, folds = Builds(monkeypatch), toy_folds()
    folds.ahead(1)
    folds.ahead(1)
    builds.go_on.set()
    table = folds.table(1)
    assert folds.table(1) is table and builds.count == 1


def test_two_threads_that_ask_at_once_get_one_table(monkeypatch):
    builds, folds = Builds(monkeypatch), toy_folds()
    found: list[Any] = []
    asking = [threading.Thread(target=lambda: found.append(folds.table(0))) for _ in range(3)]
    for thread in asking:
        thread.start()
    builds.go_on.set()
    for thread in asking:
        thread.join()
    assert builds.count == 1 and found[0] is found[1] is found[2]


def test_an_error_in_the_background_is_raised_where_the_table_is_asked_for(monkeypatch):
    builds, folds = Builds(monkeypatch, TooLargeError("too large")), toy_folds()
    builds.go_on.set()
    folds.ahead(0)
    with pytest.raises(TooLargeError, match="too large"):
        folds.table(0)
    builds.error = None
    assert folds.table(0).row(0).node[0] == 0  # and is tried again


@pytest.mark.parametrize("on_demand", [False, True])
def test_all_tables_are_kept_where_they_fit(on_demand):
    folds = toy_folds(on_demand=on_demand)
    first = [folds.table(fold) for fold in range(3)]
    assert [folds.table(fold) for fold in range(3)] == first


@pytest.mark.parametrize("on_demand", [False, True])
def test_only_the_present_and_the_next_are_kept_where_they_do_not(on_demand):
    folds = toy_folds(on_demand=on_demand, kept_bytes=0)
    tables = [folds.table(0)]
    folds.ahead(1)
    assert folds.table(0) is tables[0]
    tables.append(folds.table(1))
    folds.ahead(2)
    assert folds.table(1) is tables[1]
    assert folds.table(0) is not tables[0]


def test_the_first_tables_stay_where_some_fit():
    size = hidden.held_bytes(toy_folds(4).table(0))
    folds = toy_folds(4, kept_bytes=2.2 * size)
    first = [folds.table(fold) for fold in range(4)]
    assert folds.table(0) is first[0] and folds.table(1) is first[1]
    assert folds.table(2) is not first[2]


def background_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("hidden-folds")]


def test_the_thread_ends_with_the_object():
    before = set(background_threads())
    folds = toy_folds()
    folds.table(0)
    (thread,) = set(background_threads()) - before
    del folds
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_nothing_is_made_after_closing():
    folds = toy_folds()
    folds.close()
    with pytest.raises(RuntimeError):
        folds.table(0)


@settings(max_examples=60)
@given(num_links=st.integers(0, 200), num_folds=st.integers(1, 12), seed=st.integers(0, 2**63))
def test_folds_are_of_equal_size_and_drawn_from_the_seed_alone(num_links, num_folds, seed):
    fold = assign_folds(num_links, num_folds, seed)
    assert fold.shape == (num_links,) and fold.tolist() == assign_folds(num_links, num_folds, seed).tolist()
    sizes = np.bincount(fold, minlength=num_folds)
    assert len(sizes) == num_folds and sizes.max() - sizes.min() <= 1


def test_another_seed_deals_otherwise():
    assert assign_folds(1000, 5, 0).tolist() != assign_folds(1000, 5, 1).tolist()


@settings(max_examples=60)
@given(example=examples(), num_folds=st.integers(1, 4), seed=st.integers(0, 99))
def test_a_link_its_repeats_and_its_reverse_share_a_fold(example, num_folds, seed):
    group = link_groups(*example.columns, reverse=example.reverse)
    fold = assign_folds(len(example.links), num_folds, seed, group=group)
    for (a, kind, b), one, of_one in zip(example.links, fold, group, strict=True):
        for other_link, other, of_other in zip(example.links, fold, group, strict=True):
            same = other_link == (a, kind, b) or (example.reverse and other_link == (b, kind, a))
            assert (of_one == of_other) == same and (one == other or not same)
    assert np.bincount(fold, minlength=num_folds).max() < len(fold) / num_folds + np.bincount(group).max()


def test_what_makes_no_sense_is_refused():
    graph = random_graph(10, 20, 2, seed=0)
    with pytest.raises(TransitionError, match="links have 1 sources, 2 types and 1 targets"):
        link_edges(graph, [0], [0], [0, 0], [1])
    with pytest.raises(TransitionError, match=r"type is not among the 1 of edge_types \(0 to 0\)"):
        link_edges(graph, [0], [0], [1], [1])
    with pytest.raises(TransitionError, match="edge_types holds a type outside 0 to 1"):
        link_edges(graph, [2], [0], [0], [1])
    with pytest.raises(TransitionError, match="target 10 is not a node"):
        link_edges(graph, [0], [0], [0], [10])
    with pytest.raises(
        TransitionError, match=r"fold is int64 of shape \(1,\); expected a whole number from 0 on for each of 2"
    ):
        HiddenFolds(graph, Walks(2), [0, 1], [0, 0], [1, 2], [0], [0])
    with pytest.raises(TransitionError, match="there is no fold 3; folds are 0 to 2"):
        toy_folds().table(3)
    with pytest.raises(TransitionError, match="rows on demand are made where they are drawn from"):
        toy_folds(on_demand=True, device="cpu")
    with pytest.raises(TransitionError, match="num_folds is 0"):
        assign_folds(5, 0, 0)
    with pytest.raises(TransitionError, match="group has 2 values for 5 links"):
        assign_folds(5, 2, 0, group=[0, 1])
    assert isinstance(toy_folds(on_demand=True).table(0), OnDemand)
