"""summarise: a graph in numbers."""

import numpy as np
import pytest

from gatas.graph import Graph, summarise


def test_everything_is_counted():
    #   0 ⇄ 1 → 2    3 → 3    4        type a: 0→1, 0→2, 1→2    type b: 1→0, 3→3, and 0→1 listed twice
    graph = Graph.from_edges(
        [0, 0, 0, 1, 1, 3],
        [1, 1, 2, 2, 0, 3],
        [0, 0, 0, 0, 1, 1],
        num_nodes=5,
        edge_type_names=["a", "b"],
    )
    summary = summarise(graph)
    assert (summary.num_nodes, summary.num_edges, summary.weighted) == (5, 5, False)
    assert (summary.num_isolated, summary.num_dangling) == (2, 1)  # 3 only knows itself
    assert (summary.num_components, summary.largest_component) == (3, 3)
    assert (summary.num_self_edges, summary.num_repeated) == (1, 1)
    a, b = summary.degrees
    assert (a.edge_type, a.num_edges, a.num_sources, a.num_targets, a.mean, a.max) == ("a", 3, 2, 2, 1.5, 2)
    assert (b.edge_type, b.num_edges, b.num_sources, b.num_targets, b.median) == ("b", 2, 2, 2, 1.0)


@pytest.mark.parametrize("num_edge_types", [0, 3])
def test_a_graph_without_edges_has_zeros(num_edge_types):
    summary = summarise(Graph.from_edges([], [], num_nodes=2, num_edge_types=num_edge_types))
    assert (summary.num_edges, summary.num_isolated, summary.num_components) == (0, 2, 2)
    assert [degrees.num_edges for degrees in summary.degrees] == [0] * num_edge_types


def test_types_without_edges_are_counted_as_zero():
    summary = summarise(Graph.from_edges([0, 1], [1, 0], [1, 3], num_edge_types=5))
    assert [degrees.num_edges for degrees in summary.degrees] == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("edges", "largest"),
    [
        ([(0, k) for k in range(1, 50)], 50),  # a star
        ([(i, j) for i in range(20) for j in range(20) if i != j], 20),  # a clique
        ([(k, k + 25) for k in range(25)], 2),  # bipartite and disconnected
        ([(0, 0)], 1),  # a single node
    ],
)
def test_shapes_that_are_hard_elsewhere_are_graphs_as_any(edges, largest):
    source, target = np.array(edges).T
    assert summarise(Graph.from_edges(source, target)).largest_component == largest
