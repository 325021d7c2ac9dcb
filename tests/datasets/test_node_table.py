"""NodeTable: features, types and graphs of nodes."""

import numpy as np
import pytest
import torch
from scipy import sparse

from gatas.datasets import Dataset, NodeTable
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8", "bool", ">f8"])
def test_features_of_any_numeric_type_become_float32(dtype):
    features = NodeTable(2, features=np.array([[0, 1], [1, 1]], dtype)).features
    assert isinstance(features, np.ndarray)
    assert features.dtype == np.float32 and features.tolist() == [[0, 1], [1, 1]]


def test_bfloat16_tensors_are_features_too():
    features = NodeTable(1, features=torch.tensor([[0.5, 2.0]], dtype=torch.bfloat16)).features  # type: ignore[arg-type]
    assert isinstance(features, np.ndarray) and features.tolist() == [[0.5, 2.0]]


@pytest.mark.parametrize("features", [np.full((2, 3), 7.0), np.zeros((2, 3)), np.zeros((2, 0))])
def test_constant_zero_and_empty_features_are_accepted(features):
    assert NodeTable(2, features=features).features is not None


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((3, 2)), "features have 3 rows, but the graph has 2 nodes"),
        (np.zeros(2), "features have shape (2,); expected (nodes, features)"),
        (np.array([[0, 1], [np.nan, 1]]), "node 1: feature column 0 is nan"),
        (np.array([[0, np.inf], [1, 1]]), "node 0: feature column 1 is inf"),
        (np.array([[0, 1e300], [1, 1]]), "node 0: feature column 1 is 1e+300, which is not a finite float32"),
        (np.array([["a"], ["b"]]), "features have type <U1; expected numbers"),
        (np.array([[1j], [2]]), "features have type complex128; expected numbers"),
        (np.array([[None], [1]]), "features have type object"),
        ([[1], [1, 2]], "could not be read as an array"),
        (sparse.csr_array(np.zeros((3, 2))), "features have 3 rows, but the graph has 2 nodes"),
        (sparse.csr_array(np.array([[0, 1], [np.nan, 1]])), "node 1: feature column 0 is nan"),
        (sparse.csr_array(np.array([[0, 1e300], [1, 1]])), "node 0: feature column 1 is inf"),
        (sparse.csr_array(np.array([[1j], [2]])), "complex128; expected a matrix of numbers"),
    ],
)
def test_features_that_cannot_be_used_are_refused(features, message):
    with pytest.raises(GraphError) as error:
        NodeTable(2, features=features)
    assert message in str(error.value)


@pytest.mark.parametrize(("indices", "indptr"), [([0, 9], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1])])
def test_sparse_features_that_point_outside_are_refused(indices, indptr):
    matrix = sparse.csr_array(np.eye(2, dtype=np.float32))
    matrix.indices, matrix.indptr = np.array(indices, np.int32), np.array(indptr, np.int32)
    with pytest.raises(GraphError, match="the sparse features are malformed"):
        NodeTable(2, features=matrix)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_any_sparse_matrix_is_kept_sparse(kind):
    features = NodeTable(2, features=kind(np.array([[0, 2], [3, 0]]))).features
    assert isinstance(features, sparse.csr_array) and features.toarray().tolist() == [[0, 2], [3, 0]]
    assert features.dtype == np.float32


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_features_are_neither_changed_nor_shared(make):
    given = make(np.array([[0.0, 2.0], [3.0, 0.0]], np.float32))
    table = NodeTable(2, features=given)
    given[0, 1] = 5
    assert table.features is not None and table.features[0, 1] == 2


def test_features_cannot_be_written_to():
    features = NodeTable(1, features=sparse.csr_array(np.ones((1, 1)))).features
    assert isinstance(features, sparse.csr_array)
    with pytest.raises(ValueError, match="read-only"):
        features.data[0] = 5


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([0, 2], "node_type 2 has no name; 2 names were given"),
        ([0], "node_type has 1 values, but the graph has 2 nodes"),
        ([0, -1], "node 1: node type is -1"),
    ],
)
def test_node_types_that_do_not_fit_are_refused(types, message):
    with pytest.raises(GraphError, match=message):
        NodeTable(2, node_type=np.array(types), node_type_names=("a", "b"))


@pytest.mark.parametrize(
    ("graph_id", "message"),
    [
        (np.zeros(3), "node 0: graph is 0.0, of type float64"),
        (np.array([0, 0, -1], np.int32), "node 2: graph is -1"),
        ([0, 0], "graph_id has 2 values, but there are 3 nodes. Give one for each"),
    ],
)
def test_graph_ids_that_do_not_fit_are_refused(graph_id, message):
    with pytest.raises(GraphError) as error:
        NodeTable(3, graph_id=graph_id)
    assert message in str(error.value)


def test_graph_numbers_beyond_int32_do_not_wrap():
    with pytest.warns(GatasWarning, match="graphs are numbered up to 4294967296, but only 2 occur"):
        nodes = NodeTable(3, graph_id=[0, 0, 2**32])  # type: ignore[arg-type]  # a list will do
    assert nodes.graph_id is not None and nodes.graph_id.tolist() == [0, 0, 1]
    assert nodes.num_graphs == 2


def test_nodes_of_one_graph_need_no_graph_ids():
    assert NodeTable(3).num_graphs == 1


@pytest.mark.parametrize("name", ["features", "node_type", "graph_id"])
def test_the_arrays_of_a_node_table_cannot_be_written_to(name):
    nodes = NodeTable(2, np.ones((2, 1), np.float32), np.zeros(2, np.int16), ("a",), np.array([0, 1], np.int32))
    with pytest.raises(ValueError, match="read-only"):
        getattr(nodes, name)[0] = 0


def test_a_node_table_is_shown_in_a_line():
    assert repr(NodeTable(3)) == "NodeTable(3 nodes, 0 features)"
    nodes = NodeTable(2, np.ones((2, 4), np.float32), np.array([0, 1], np.int16), ("a", "b"), np.array([0, 1], np.int32))
    assert repr(nodes) == "NodeTable(2 nodes, 4 features, 2 node types, 2 graphs)"


def labelled(graph, **table):
    return Dataset.for_nodes(graph, np.zeros(graph.num_nodes, np.int64), {"train": [0]}, name="toy", **table)


@pytest.mark.parametrize("graph_id", [[0, 0, 1], np.array([0, 0, 1], np.int32)])
def test_an_edge_between_two_graphs_is_refused(graph_id):
    with pytest.raises(GraphError, match="toy: the edge from node 1 to node 2 joins two graphs"):
        labelled(Graph.from_edges([0, 1], [1, 2]), graph_id=graph_id)
    with pytest.raises(GraphError, match="the edge from node 'b' to node 'c' joins two graphs"):
        labelled(Graph.from_edges([0, 1], [1, 2], node_ids=["a", "b", "c"]), graph_id=graph_id)


def test_a_node_table_of_another_size_than_the_graph_is_refused():
    dataset = labelled(Graph.from_edges([0, 1], [1, 2]))
    with pytest.raises(GraphError, match="toy: the node table has 2 rows, but the graph has 3 nodes"):
        Dataset("toy", dataset.graph, dataset.targets, NodeTable(2))


def test_a_data_set_without_a_table_knows_the_number_of_its_nodes():
    dataset = labelled(Graph.from_edges([0, 1], [1, 2]))
    assert Dataset("toy", dataset.graph, dataset.targets).nodes.num_nodes == 3
