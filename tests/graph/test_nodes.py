"""NodeTable: features, labels, splits and types of nodes."""

import numpy as np
import pytest
import torch
from scipy import sparse

from gatas.errors import GatasWarning, GraphError
from gatas.graph import NodeTable


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


def test_minus_one_means_unlabelled_and_classes_are_named_by_number():
    table = NodeTable(3, labels=np.array([1, -1, 0], np.int8))
    assert table.labels is not None and table.labels.tolist() == [1, -1, 0]
    assert table.class_names == ("0", "1")


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "bool"])
def test_several_labels_at_once_are_zeros_and_ones_of_any_type(dtype):
    table = NodeTable(2, labels=np.array([[0, 1, 1], [1, 0, 0]], dtype))
    assert table.labels is not None and table.labels.dtype == np.uint8
    assert table.class_names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        ([0, 3], ("a", "b"), "node 1: label is 3; expected 0 to 1, or -1"),
        ([0, -2], (), "node 1: label is -2"),
        ([0.0, 1.0], (), "labels have type float64 (first value 0.0); expected integers"),
        ([True, False], (), "labels have type bool"),
        (["a", "b"], (), "labels have type <U1"),
        ([0, 10**12], (), "node 1: label is 1000000000000; expected 0 to 1048575"),
        (np.array([0, 2**64 - 1], np.uint64), (), "node 1: label is 18446744073709551615"),
        ([0, 1, 2], (), "labels have shape (3,), but the graph has 2 nodes"),
        ([[0, 1], [0, 2]], (), "node 1: label 1 is 2; expected 0 or 1"),
        ([[0, 1], [0, 0.5]], (), "node 1: label 1 is 0.5"),
        ([[0, 1], [0, np.nan]], (), "node 1: label 1 is nan"),
        ([["a"], ["b"]], (), "labels have type <U1; expected a matrix of zeros and ones"),
        ([[0, 1], [0, 1]], ("a",), "labels have 2 columns, but there are 1 class names"),
        ([[[0]], [[1]]], (), "labels have shape (2, 1, 1)"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(labels, names, message):
    with pytest.raises(GraphError) as error:
        NodeTable(2, labels=labels, class_names=names)
    assert message in str(error.value)


def test_classes_without_a_training_node_are_counted():
    with pytest.warns(GatasWarning, match=r"2 classes have no training node \(the first is 1\)"):
        NodeTable(4, labels=np.array([0, 1, 2, 0]), splits={"train": np.array([0]), "test": np.array([1])})


def test_labels_without_a_positive_training_node_are_counted():
    with pytest.warns(GatasWarning, match=r"1 classes have no training node \(the first is 1\)"):
        NodeTable(2, labels=np.array([[1, 0], [0, 1]]), splits={"train": np.array([0])})


def test_training_nodes_without_a_label_are_counted():
    with pytest.warns(GatasWarning, match="1 training nodes have no label"):
        NodeTable(2, labels=np.array([0, -1]), splits={"train": np.array([0, 1])})


@pytest.mark.parametrize("split", [[2, 0], (2, 0), np.array([2, 0], np.int8), torch.tensor([2, 0])])
def test_a_split_is_given_by_node_numbers(split):
    assert NodeTable(3, splits={"train": split}).splits["train"].tolist() == [2, 0]


@pytest.mark.parametrize("mask", [np.array([True, False, True]), torch.tensor([True, False, True])])
def test_a_split_is_given_by_a_mask(mask):
    assert NodeTable(3, splits={"train": mask}).splits["train"].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": []}, "the split 'train' is empty"),
        ({"train": np.zeros(3, bool)}, "the split 'train' is empty"),
        ({"train": [0, 1], "test": [2, 1]}, "node 1 is in the splits 'train' and 'test'"),
        ({"train": [0, 3]}, "split 'train', entry 1: node is 3, but the graph has 3 nodes"),
        ({"train": [0, -1]}, "split 'train', entry 1: node is -1"),
        ({"train": [1, 1]}, "the split 'train' holds node 1 more than once"),
        ({"train": [0.5]}, "split 'train', entry 0: node is 0.5"),
        ({"train": np.ones(2, bool)}, "the mask of split 'train' has shape (2,); expected (3,)"),
    ],
)
def test_splits_that_leak_or_miss_are_refused(splits, message):
    with pytest.raises(GraphError) as error:
        NodeTable(3, splits=splits)
    assert message in str(error.value)


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
