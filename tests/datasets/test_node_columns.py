"""Columns of a node table: labels, splits, graphs and features, and everything that can be wrong with them."""

import gzip
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gatas.datasets.node_columns import features_of, labels_of, splits_of
from gatas.datasets.targets import NodeTargets
from gatas.errors import GatasWarning, GraphError
from gatas.graph.columns import table_columns
from gatas.graph.tables import codes_of, read_table


@pytest.fixture
def write(tmp_path):
    """Write text (by the file's ending also compressed), or columns as Parquet; gives the path."""

    def writing(name, content):
        path = tmp_path / name
        if isinstance(content, dict):
            pa.parquet.write_table(pa.table(content), path)
        else:
            path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return writing


def table_of(path, **names):
    return read_table(path, table_columns("nodes", names))


def refused(match, path, features=None):
    """Everything that a table says of nodes is read."""
    with pytest.raises(GraphError) as error:
        table = table_of(path)
        features_of(table, features), labels_of(table), splits_of(table)
        if "graph" in table.columns:
            codes_of(table, "graph")
    for part in [match] if isinstance(match, str) else match:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id,label\na,0\nb,-2\nc,1\n", "nodes.csv, row 2, column 'label': label is -2"),
        ("id,label\na,0.5\nb,1\nc,1\n", "nodes.csv, row 1, column 'label': '0.5' is not a whole number"),
        ("id,split\na,train\nb,later\nc,\n", "nodes.csv, row 2, column 'split': 'later' is not a split"),
        ("id,f\na,1\nb,\nc,2\n", "nodes.csv, row 2, column 'f': the value is missing"),
        ("id,f\na,1\nb,inf\nc,2\n", "nodes.csv, row 2, column 'f': the feature is inf"),
        ("id,f,g\na,1,1\nb,1,1e300\nc,2,2\n", "nodes.csv, row 2, column 'g': the feature is 1e+300"),
        ("id,graph\na,1\nb,\nc,2\n", "nodes.csv, row 2, column 'graph': the graph is ''"),
    ],
)
def test_node_tables_that_do_not_fit_are_refused_with_the_place(write, nodes, message):
    refused(message, write("nodes.csv", nodes))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [0.5, 1.0, 1.0]}, "row 1, column 'label': labels are double (first value 0.5); expected integers or text"),
        ({"label": pa.array([0, 1, 2**63], pa.uint64())}, "row 3, column 'label': 9223372036854775808 does not fit"),
        ({"label": [[0, 1], [1], [1, 1]]}, "row 2, column 'label': the list has 1 labels, the first one 2"),
        ({"label": [[0, 1], [1, 5], [1, 1]]}, "row 2, column 'label': [1, 5] holds other numbers than 0 and 1"),
        ({"label": [["x"], None, ["y"]]}, "row 2, column 'label': the list is missing"),
        ({"label": [["x"], ["y", None], []]}, "row 2, column 'label': a label in the list is missing"),
        ({"label": [[0.5], [1.0], [0.0]]}, "labels are lists of double"),
        ({"split": [1, 2, 3]}, "row 1, column 'split': splits are int64"),
        ({"f": [[1.0], None, [2.0]]}, "row 2, column 'f': the list is missing"),
        ({"f": [[1.0], [1.0, 2.0], [2.0]]}, "row 2, column 'f': the list has 2 numbers, the first one 1"),
        ({"f": [[1.0], [None], [2.0]]}, "row 2, column 'f': a number in the list is missing"),
        ({"f": [[1.0, 2.0], [1.0, float("nan")], [2.0, 1.0]]}, "row 2, column 'f': the feature is nan"),
        ({"f": [["x"], ["y"], ["z"]]}, "column 'f' holds list"),
        ({"f": [{"x": 1}] * 3}, "column 'f' holds struct"),
        ({"f": [[1.0]] * 3, "g": [1, 2, 3]}, "has features in 'f', 'g'; expected numeric columns or one list column"),
        ({"f": [[1.0]] * 3, "g": [[1]] * 3}, "has features in 'f', 'g'"),
        ({"f": [1.0, float("nan"), 2.0]}, "row 2, column 'f': the feature is nan"),
    ],
)
def test_parquet_node_tables_that_do_not_fit_are_refused_with_the_place(write, columns, message):
    refused(message, write("nodes.parquet", {"id": ["a", "b", "c"]} | columns))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"f": [1, 2, 3], "g": [True, False, True]}, [[1, 1], [2, 0], [3, 1]]),
        ({"f": [Decimal("0.5"), Decimal("1.5"), Decimal("2")]}, [[0.5], [1.5], [2]]),
        ({"f": [[1, 2], [3, 4], [5, 6]]}, [[1, 2], [3, 4], [5, 6]]),
        ({"f": pa.array([[1.0], [2.0], [3.0]], pa.list_(pa.float32(), 1))}, [[1], [2], [3]]),
        ({"f": pa.array([2**60, 0, 1])}, [[2.0**60], [0], [1]]),
    ],
)
def test_features_are_read_from_columns(write, columns, expected):
    features = features_of(table_of(write("nodes.parquet", {"id": ["a", "b", "c"]} | columns)), None)
    assert isinstance(features, np.ndarray) and features.dtype == np.float32 and features.tolist() == expected


@pytest.mark.parametrize(
    ("labels", "expected", "names"),
    [
        (["cat", "", "dog"], [0, -1, 1], ("cat", "dog")),
        ([5, -1, 3], [1, -1, 0], ("3", "5")),
        ([5, None, 3], [1, -1, 0], ("3", "5")),
        ([None, None, None], [-1, -1, -1], ()),
        ([["x", "y"], [], ["y"]], [[1, 1], [0, 0], [0, 1]], ("x", "y")),
        ([[0, 1], [1, 0], [1, 1]], [[0, 1], [1, 0], [1, 1]], ("0", "1")),
        (pa.array(["b", "a", "b"]).dictionary_encode(), [1, 0, 1], ("a", "b")),
    ],
)
def test_labels_keep_their_names(write, labels, expected, names):
    found, class_names = labels_of(table_of(write("nodes.parquet", {"id": ["a", "b", "c"], "label": labels})))
    assert found is not None and found.tolist() == expected and NodeTargets(found, class_names).names == names


def test_labels_in_text_files_may_be_empty_or_minus_one(write):
    for text in ("id,label\na,10\nb,\nc,9\n", "id,label\na,10\nb,-1\nc,9\n"):
        labels, names = labels_of(table_of(write("nodes.csv", text)))
        assert labels is not None and labels.tolist() == [1, -1, 0] and names == ("9", "10")
    assert labels_of(table_of(write("nodes.csv", "id,label\na,\nb,\nc,\n")))[1] == ()


def test_splits_go_by_several_names(write):
    splits = splits_of(table_of(write("nodes.csv", "id,split\na,Train\nb, val \nc,\n")))
    assert {name: split.tolist() for name, split in splits.items()} == {"train": [0], "valid": [1]}
    table = {"id": ["a", "b", "c"], "split": pa.array(["test", None, "dev"]).dictionary_encode()}
    splits = splits_of(table_of(write("nodes.parquet", table)))
    assert {name: split.tolist() for name, split in splits.items()} == {"valid": [2], "test": [0]}


def test_graphs_are_numbered_and_node_columns_can_be_renamed(write):
    path = write("nodes.csv", "who,tissue\na,x\nb,x\nc,x\nd,y\n")
    graphs, names = codes_of(table_of(path, id="who", graph="tissue"), "graph")
    assert graphs.tolist() == [0, 0, 0, 1] and names == ("x", "y")
    for name in ("type", "node_type"):
        assert codes_of(table_of(path, id="who", **{name: "tissue"}), "node_type")[1] == ("x", "y")


def test_text_columns_of_a_node_table_are_counted_and_left(write):
    with pytest.warns(GatasWarning, match=r"nodes.csv: 2 columns were not used: 'title', 'born'"):
        features_of(table_of(write("nodes.csv", "id,title,born\na,x,2020-01-01\nb,y,2020-01-02\nc,z,\n")), None)


@pytest.mark.parametrize("nodes", ["nodes.csv", "nodes.v2.csv.gz"])
@pytest.mark.parametrize("given", [True, False])
def test_features_are_read_from_an_npy_file_beside_or_given(write, tmp_path, nodes, given):
    path = write(nodes, "id\na\nb\nc\n")
    beside = tmp_path / ("other.npy" if given else nodes.replace(".csv", "").replace(".gz", "") + ".npy")
    np.save(beside, np.arange(6.0).reshape(3, 2))
    features = features_of(table_of(path), beside if given else None)
    assert isinstance(features, np.ndarray) and features.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 2)), "f.npy has shape (2, 2); expected one row for each of the 3 rows of"),
        (np.zeros(3), "f.npy has shape (3,)"),
        (np.array([[0.0], [np.nan], [0.0]]), "f.npy, row 2: feature column 0 is nan"),
        (np.array([["a"]] * 3), "features have type <U1"),
        (np.array([[None]] * 3), "f.npy could not be read as an .npy matrix"),
        (b"", "f.npy has nothing"),
        (b"not numpy", "f.npy could not be read as an .npy matrix"),
        (None, "f.npy could not be read as an .npy matrix"),
    ],
)
def test_npy_files_that_do_not_fit_are_refused(write, tmp_path, matrix, message):
    if isinstance(matrix, bytes):
        (tmp_path / "f.npy").write_bytes(matrix)
    elif matrix is not None:
        np.save(tmp_path / "f.npy", matrix)
    refused(message, write("nodes.csv", "id\na\nb\nc\n"), features=tmp_path / "f.npy")


def test_features_from_two_places_are_refused(write, tmp_path):
    nodes = write("nodes.csv", "id,f\na,1\nb,2\nc,3\n")
    np.save(tmp_path / "nodes.npy", np.zeros((3, 1)))
    refused(["features come from", "nodes.npy and from 'f' of"], nodes)
