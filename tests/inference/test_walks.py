"""Walks behind a typed path, against all of them listed one by one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatas.graph import Graph
from gatas.inference.walks import PathWalks
from gatas.transitions import Transitions
from gatas.transitions.build import Walks
from gatas.transitions.paths import path_relations


def every_walk(graph, walks, source, target, relations):
    """List all walks over a path, with the product of their steps' probabilities, by the definition."""
    edges = {}
    for node in range(graph.num_nodes):
        found = graph.edges_from(np.array([node]))
        weights = np.ones(len(found.target)) if found.weight is None else found.weight.astype(float)
        own = [row for row in zip(found.edge_type.tolist(), found.target.tolist(), weights, strict=True) if row[1] != node]
        total = sum(row[2] for row in own) if walks.kind == "walk" else 1.0
        edges[node] = len(found.target), [(kind, other, weight / total) for kind, other, weight in own]

    def goes_on(node, step):
        count, own = edges[node]
        return own if step == 1 or walks.max_degree is None or count <= walks.max_degree else []

    met = {source: [0]}  # steps at which each node is met, over any path
    for step in range(1, len(relations) + 1):
        for node in [node for node, steps in met.items() if step - 1 in steps]:
            for _, other, _ in goes_on(node, step):
                first = met.setdefault(other, [step])[0]
                again = walks.revisits and first == step - 1 > 0
                if again and step not in met[other]:
                    met[other].append(step)
    found = [((source,), 1.0)]
    for step, relation in enumerate(relations, 1):
        found = [
            ((*nodes, other), share * chance)
            for nodes, share in found
            for kind, other, chance in goes_on(nodes[-1], step)
            if kind == relation - 1 and step in met[other]
        ]
    return {nodes: share for nodes, share in found if nodes[-1] == target}


@st.composite
def graphs(draw):
    size, kinds = draw(st.integers(3, 7)), draw(st.integers(1, 2))
    edge = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1), st.integers(0, kinds - 1))
    source, target, kind = zip(*draw(st.lists(edge, min_size=2, max_size=24, unique=True)), strict=True)
    weight = draw(st.none() | st.lists(st.integers(1, 5), min_size=len(source), max_size=len(source)))
    return Graph.from_edges(source, target, kind, num_nodes=size, num_edge_types=kinds, weight=weight, inverse=True)


settings_of_walks = st.builds(
    Walks,
    num_steps=st.just(3),
    kind=st.sampled_from(["walk", "count"]),
    max_degree=st.none() | st.integers(2, 6),
    revisits=st.booleans(),
)


@given(graph=graphs(), walks=settings_of_walks, data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_likeliest_walks_are_those_of_all_walks(graph, walks, data):
    source = data.draw(st.integers(0, graph.num_nodes - 1))
    table = Transitions.build(
        graph, walks.num_steps, walks.kind, [source], num_threads=1, max_degree=walks.max_degree, revisits=walks.revisits
    )
    row = table.row(source)
    mass = np.zeros(len(row.node))
    for place, (node, path) in enumerate(zip(row.node.tolist(), row.path.tolist(), strict=True)):
        if path == 0:
            continue
        relations = path_relations(path, graph.num_relations)
        found, every = PathWalks(graph, walks, source, node, relations), every_walk(graph, walks, source, node, relations)
        mass[place] = found.mass
        total = sum(every.values())
        assert found.count == len(every) and found.mass == pytest.approx(total, rel=1e-12)
        top = data.draw(st.integers(1, 6))
        wanted = sorted(every.items(), key=lambda one: -one[1])
        likeliest = found.likeliest(top)
        assert [walk.share for walk in likeliest] == pytest.approx([share / total for _, share in wanted[:top]], rel=1e-12)
        assert all(every[walk.nodes] / total == pytest.approx(walk.share, rel=1e-12) for walk in likeliest)
        assert len({walk.nodes for walk in likeliest}) == len(likeliest)
        everyone = found.likeliest(len(every) + 1)
        assert sum(walk.share for walk in everyone) == pytest.approx(1, rel=1e-9) and len(everyone) == len(every)
        for between in found.between(3):
            through = sum(share for nodes, share in every.items() if nodes[between.step] == between.node)
            assert between.share == pytest.approx(through / total, rel=1e-9)
        assert found.num_between == len({node for nodes in every for node in nodes[1:-1]})
    for step in range(1, walks.num_steps + 1):  # what walks add up to is the row, but for what normalises a level
        own = row.step == step
        if own.any():
            probability = row.probability[own].astype(float)  # less what stopped at nodes of many edges
            assert mass[own] / mass[own].sum() == pytest.approx(probability / probability.sum(), rel=1e-5)


def test_walks_through_hubs_are_found_without_listing_them():
    #   0 ─ {2 … 3001} ─ 1, and a second layer: 0 ─ hubs ─ hubs ─ 1 would be 9 million walks of three steps
    middle = np.arange(2, 3002)
    ring = np.stack([middle, np.roll(middle, 1)])
    source = np.concatenate([np.zeros(3000, int), middle, ring[0]])
    target = np.concatenate([middle, np.ones(3000, int), ring[1]])
    graph = Graph.from_edges(source, target, num_nodes=3002, inverse=True)
    walks = Walks(3, revisits=True)
    two, three = PathWalks(graph, walks, 0, 1, (1, 1)), PathWalks(graph, walks, 0, 1, (1, 1, 1))
    assert two.count == 3000 and two.num_between == 3000
    assert two.likeliest(2)[0].nodes == (0, 2, 1) and two.likeliest(2)[1].share == pytest.approx(1 / 3000)
    assert three.count == 3000 and all(a != b for a, b in pairwise(three.likeliest(1)[0].nodes))


def test_where_no_walk_leads_there_are_none():
    graph = Graph.from_edges([0, 1], [1, 2], num_nodes=4, inverse=True)
    found = PathWalks(graph, Walks(2), 0, 3, (1, 1))
    assert (found.mass, found.count, found.likeliest(3), found.between(3), found.num_between) == (0.0, 0, [], [], 0)
