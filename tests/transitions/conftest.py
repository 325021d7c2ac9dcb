"""Random typed graphs for property tests."""

from hypothesis import strategies as st

from gatas.graph import Graph


@st.composite
def typed_graphs(draw, max_nodes=6, max_types=2):
    """Small typed multigraphs: directed or not, weighted or not, with self-edges, repeats and isolated nodes."""
    num_nodes, num_types = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_types))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, st.integers(0, num_types - 1), node), max_size=3 * num_nodes))
    weight = draw(st.none() | st.lists(st.floats(0.1, 10), min_size=len(edges), max_size=len(edges)))
    direction = draw(st.sampled_from([{}, {"inverse": True}])) if weight else draw(
        st.sampled_from([{}, {"inverse": True}, {"undirected": True}])
    )  # fmt: skip
    return Graph.from_edges(
        [source for source, _, _ in edges],
        [target for _, _, target in edges],
        [kind for _, kind, _ in edges],
        num_nodes=num_nodes,
        num_edge_types=num_types,
        weight=weight,
        **direction,
    )
