"""What training learned of columns, kept as JSON and done again with nodes that come later."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gatas.datasets import read_dataset
from gatas.datasets.encoding import Encoding
from gatas.errors import GatasWarning, GraphError
from gatas.graph.columns import ColumnNames
from gatas.graph.tables import Table, read_table

EDGES = "source,target\nann,bob\nbob,tea\ntea,cup\n"
NODES = (
    "id,type,age,code,colour,label,split\nann,person,30,1,,x,train\nbob,person,50,2,,y,train\n"
    "tea,thing,,,green,x,train\ncup,thing,,,white,y,valid\n"
)


@pytest.fixture
def learned(tmp_path):
    """The encoding of tables, through JSON and back, and the features they got."""

    def read(nodes=NODES, **settings):
        (tmp_path / "edges.csv").write_text(EDGES)
        (tmp_path / "nodes.csv").write_text(nodes)
        chosen = {"features": ["age", "colour"], "categorical": ["code"]} | settings
        dataset = read_dataset(tmp_path / "edges.csv", tmp_path / "nodes.csv", **chosen)
        assert dataset.encoding is not None
        return Encoding(**json.loads(dataset.encoding.model_dump_json())), np.asarray(dataset.features)

    return read


@pytest.fixture
def later(tmp_path):
    def read(content):
        (tmp_path / "later.csv").write_text(content)
        return read_table(tmp_path / "later.csv", ColumnNames(("id", "node_type")))

    return read


def features(encoding, table):
    return encoding.encoded(table, encoding.node_types(table))


def test_the_same_table_gets_the_same_features_to_the_bit(learned, later):
    encoding, own = learned()
    np.testing.assert_array_equal(features(encoding, later(NODES)), own)


def test_other_nodes_are_scaled_and_coded_as_in_training(learned, later):
    encoding, _ = learned()
    found = features(encoding, later("id,type,age,code,colour\nzoe,person,60,2.0,\nmug,thing,,,white\n"))
    assert found.tolist() == [[2.0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]  # 40 ± 10; green, white; 1, 2
    assert features(encoding, later("id,type,colour\nmug,thing,green\n")).tolist() == [[0, 1, 0, 0, 0]]  # things have no age


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
def test_lists_keep_the_places_of_their_type():
    table = Table(Path("t"), {}, {}, {"v": pa.chunked_array([pa.array([[1.0, 2.0], None])])}, 2)
    encoding = Encoding(
        types=("a", "b"), missing="refuse", columns=({"kind": "list", "name": "v", "types": [1], "widths": [1, 2]},)
    )
    from gatas.datasets.encoded_columns import NodeTypes

    found = encoding.encoded(table, NodeTypes(np.array([1, 0]), ("a", "b")))
    assert np.asarray(found).tolist() == [[0, 1, 2], [0, 0, 0]]
    with pytest.raises(GraphError, match="the list has 2 numbers, others of its type 1"):
        encoding.encoded(table, NodeTypes(np.array([0, 0]), ("a", "b")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,type,age,code\nzoe,person,,1\n", "column 'age': 1 of 1 node of type 'person' has no value, the first in row 1"),
        ("id,type,code\nzoe,person,1\n", "later.csv has no column 'age', which the model was trained on. Add it"),
        ("id,type,age,code\nzoe,person,old,1\n", "column 'age' holds string, such as 'old'; expected numbers"),
        ("id,type,age,code\nzoe,person,inf,1\n", "row 1, column 'age': the feature is inf"),
        ("id,type,age,code\nzoe,person,1e300,1\n", "row 1, column 'age': 1e.300 is too large"),
        (
            "id,type,colour\nmug,thing,red\n",
            "row 1, column 'colour': 'red' was in no node of training, which had 'green', ",
        ),
        ("id,type,age\nzoe,robot,3\n", "row 1, column 'type': no node of training was of type 'robot', only of 'person'"),
        ("id,age,code\nzoe,3,1\n", "does not say of what type nodes are; training had 'person', 'thing'"),
    ],
)
def test_what_training_did_not_have_is_refused_in_one_line(learned, later, content, message):
    encoding, _ = learned()
    with pytest.raises(GraphError, match=message) as error:
        features(encoding, later(content))
    assert "\n" not in str(error.value)


def test_where_gaps_are_filled_so_are_those_of_later_nodes(learned, later):
    encoding, _ = learned(missing="fill")
    assert features(encoding, later("id,type\nzoe,person\n")).tolist() == [[0, 0, 0, 0, 0]]  # the mean, and no category
    with pytest.warns(GatasWarning, match="column 'colour': 1 value that training did not have, such as 'red'"):
        assert features(encoding, later("id,type,colour\nmug,thing,red\n")).tolist() == [[0, 0, 0, 0, 0]]
