"""Links of validation as edges of the graph: as the graph has its others, and nothing else changes."""

import numpy as np
import pytest
from pytest import approx

from gatas.datasets import Dataset, Pairs
from gatas.errors import ConfigError, GatasWarning, GraphError
from gatas.graph import Graph
from gatas.training import load_config

EDGES = ([0, 1, 2], [1, 2, 3], [0, 1, 0])


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def toy(valid=((0, 1, 3, 1), (3, 0, 1, 1), (2, 0, 0, 0)), link_types=("a", "b"), **given):
    """Edges 0 -a→ 1 -b→ 2 -a→ 3; of validation 0 -b→ 3 and 3 -a→ 1, and a negative."""
    graph = Graph.from_edges(*EDGES, edge_type_names=["a", "b"], node_ids=["p", "q", "r", "s"], **given)
    return Dataset.for_links(graph, {"train": pairs((0, 0, 1, 1)), "valid": pairs(*valid)}, link_types, name="toy")


def edges(graph):
    names = graph.edge_type_names
    return {(int(a), names[k], int(b)) for a, k, b in zip(graph.source, graph.edge_type, graph.neighbour, strict=True)}


@pytest.mark.parametrize("direction", [{}, {"inverse": True}, {"undirected": True}])
def test_the_graph_is_that_of_all_edges_made_at_once(direction):
    dataset = toy(**direction)
    found = dataset.with_validation_edges()
    source, target, kind = ([*old, *new] for old, new in zip(EDGES, ([0, 3], [3, 1], [1, 0]), strict=True))
    whole = Graph.from_edges(source, target, kind, edge_type_names=["a", "b"], node_ids=["p", "q", "r", "s"], **direction)
    for column in ("indptr", "neighbour", "edge_type"):
        assert np.array_equal(getattr(found.graph, column), getattr(whole, column))
    assert found.graph.edge_type_names == whole.edge_type_names and found.graph.inverse_of == whole.inverse_of
    assert found.graph.id_of(3) == "s" and found.targets is dataset.targets
    assert edges(dataset.graph) < edges(found.graph)


def test_a_link_that_is_an_edge_already_is_not_added_again():
    dataset = toy(((0, 0, 1, 1), (0, 0, 1, 1), (1, 1, 0, 1)), weight=[2.0, 3.0, 4.0])
    graph = dataset.with_validation_edges().graph
    assert edges(graph) == {(0, "a", 1), (1, "b", 2), (2, "a", 3), (1, "b", 0)}
    weights = {edge: graph.weight[row] for row, edge in enumerate(sorted(edges(graph)))}
    assert weights == approx({(0, "a", 1): 2, (1, "b", 0): 3, (1, "b", 2): 3, (2, "a", 3): 4})


def test_links_of_types_that_no_edge_has_are_left_out_with_a_warning():
    with pytest.warns(GatasWarning, match="toy: 1 validation link of types that no edge has"):
        graph = toy(link_types=("a", "c")).with_validation_edges().graph
    assert edges(graph) == {(0, "a", 1), (1, "b", 2), (2, "a", 3), (3, "a", 1)}


@pytest.mark.parametrize(("direction", "left"), [({}, {(3, "a", 1)}), ({"undirected": True}, set())])
def test_a_link_of_the_test_as_well_is_no_edge_there(direction, left):
    dataset = toy(**direction)
    splits = {**dataset.splits, "test": pairs((0, 1, 3, 1), (1, 0, 3, 1), (3, 0, 0, 0))}
    dataset = Dataset.for_links(dataset.graph, splits, ("a", "b"), name="toy")
    with pytest.warns(GatasWarning, match=r"toy: [12] validation links? of the test as well"):
        found = dataset.with_validation_edges()
    assert edges(found.graph) - edges(dataset.graph) == left


def test_without_a_split_of_validation_there_is_nothing_to_add():
    dataset = toy()
    with pytest.raises(GraphError, match="toy has no split 'valid'"):
        dataset.with_splits({"train": dataset.splits["train"]}).with_validation_edges()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{name: kinship, validation_edges: true}", None),
        ("{edges: e.csv, task: link prediction, validation_edges: true, keep_reverse: true}", None),
        (
            "{name: cora, validation_edges: true}",
            "validation_edges are for link prediction, but cora is for node classification",
        ),
        ("{edges: e.csv, nodes: n.csv, validation_edges: true}", "validation_edges was given, which is not for node class"),
        ("{name: kinship, keep_reverse: true}", "keep_reverse belongs to own files"),
    ],
)
def test_settings_are_for_links_alone(tmp_path, text, message):
    path = tmp_path / "config.yaml"
    path.write_text(f"data: {text}\n")
    if message is None:
        assert "validation_edges: true" in load_config(path).to_yaml()
    else:
        with pytest.raises(ConfigError, match=message):
            load_config(path)
