"""One reader for all tables: the same bad input gives the same message, wherever it is read."""

import warnings
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatas.datasets import read_dataset
from gatas.datasets.ingest import ingest
from gatas.errors import GatasError, GatasWarning
from gatas.graph import read_graph

NODES = {"id": [1, 2, 3], "label": ["x", "y", "x"]}
NAMED = {"id": ["a", "b", "c"], "label": ["x", "y", "x"]}


def edges(**columns: Any) -> dict[str, Any]:
    return {"source": [1, 2, 3], "target": [2, 3, 1]} | columns


@pytest.fixture
def messages(tmp_path):
    """What each of the three readers says of tables that it refuses."""

    def written(name, content):
        if isinstance(content, dict):
            pq.write_table(pa.table(content), tmp_path / f"{name}.parquet")
            return tmp_path / f"{name}.parquet"
        (tmp_path / f"{name}.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / f"{name}.csv"

    def said(edges, nodes):
        paths = written("edges", edges), written("nodes", nodes)
        found = []
        for read in (read_graph, read_dataset, lambda *paths: ingest(*paths, out=tmp_path / "out", memory=400 << 20)):
            with pytest.raises(GatasError) as error:
                read(*paths)
            found.append(str(error.value))
        assert not (tmp_path / "out").exists() and not any("\n" in message for message in found)
        return found

    return said


CASES: dict[str, tuple[Any, Any, str]] = {
    # ids
    "float ids": (edges(source=[1.5, 2.0, 3.0]), NODES, "row 1, column 'source': ids are of type double (first value 1.5)"),
    "ids beyond 2^53 as floats": (edges(target=[2.0**53 + 2, 1.0, 2.0]), NODES, "column 'target': ids are of type double"),
    "NaN ids": (edges(source=[float("nan"), 1.0, 2.0]), NODES, "ids are of type double (first value nan)"),
    "boolean ids": (edges(source=[True, False, True]), NODES, "ids are of type bool (first value True)"),
    "lists": (edges(source=[[1], [2], [3]]), NODES, "ids are of type list"),
    "a missing id": (edges(source=[1, None, 3]), NODES, "row 2, column 'source': the id is missing. Fill it in"),
    "missing ids": (edges(source=[1, None, None]), NODES, "the id is missing. Fill it in, or remove the row. (2 rows are so"),
    "no id at all": (edges(source=[None, None, None]), NODES, "row 1, column 'source': the id is missing"),
    "a missing text id": (edges(source=["a", None, "b"], target=["a", "b", "c"]), NAMED, "row 2, column 'source': the id is"),
    "an empty id": ("source,target\n1,2\n,3\n", NODES, "row 2, column 'source': the id is '', which is empty or has spaces"),
    "a blank id": (edges(source=["a", " b", "c"], target=["a", "b", "c"]), NAMED, "row 2, column 'source': the id is ' b'"),
    "an id beyond 63 bits": (edges(source=pa.array([1, 2**63, 3], pa.uint64())), NODES, f"{2**63} does not fit into 63 bits"),
    "decimals in text": ("source,target\n1,2\n1.0,3\n", NODES, "row 2, column 'source': '1.0' is not a whole number, while"),
    "exponents in text": ("source,target\n1,2e1\n", NODES, "row 1, column 'target': '2e1' is not a whole number"),
    "ids of two kinds": (edges(target=["1", "2", "3"]), NODES, "but sources are integers, targets are text, the node table's"),
    "leading zeros": ("source,target\n01,2\n", NODES, "ids must be of one kind, but sources are text, targets are text"),
    "an unknown node": (edges(target=[2, 77, 3]), NODES, "row 2, column 'target': the node 77 is not in"),
    "unknown nodes": (edges(source=[8, 9, 1], target=[2, 77, 3]), NODES, "(3 ends of edges are so, among them: "),
    "unknown text nodes": (edges(source=["a", "z", "b"], target=["a", "b", "c"]), NAMED, "the node 'z' is not in"),
    # types and weights
    "a missing type": (edges(type=["x", None, "y"]), NODES, "row 2, column 'type': the type is missing"),
    "an empty type": ("source,target,type\n1,2,x\n2,3,\n", NODES, "row 2, column 'type': the type is ''"),
    "float types": (edges(type=[0.5, 1.0, 1.0]), NODES, "row 1, column 'type': types are of type double (first value 0.5)"),
    "decimal types": ("source,target,type\n1,2,1.0\n2,3,2\n", NODES, "row 1, column 'type': '1.0' is not a whole number"),
    "a NaN weight": (edges(weight=[1.0, float("nan"), 1.0]), NODES, "row 2, column 'weight': weight is nan"),
    "an infinite weight": ("source,target,weight\n1,2,inf\n", NODES, "row 1, column 'weight': weight is inf. Weights must be"),
    "negative weights": (edges(weight=[1.0, -2.0, -3.0]), NODES, "weight is -2.0. Weights must be positive and lie between"),
    "a tiny weight": (edges(weight=[1.0, 1e-300, 1.0]), NODES, "row 2, column 'weight': weight is 1e-300"),
    "a huge weight": (edges(weight=[1.0, 1e300, 1.0]), NODES, "row 2, column 'weight': weight is 1e+300"),
    "a missing weight": (edges(weight=[1.0, None, 1.0]), NODES, "row 2, column 'weight': the weight is missing"),
    "an empty weight": ("source,target,weight\n1,2,1\n2,3,\n", NODES, "row 2, column 'weight': the weight is missing"),
    "a weight that is no number": ("source,target,weight\n1,2,heavy\n", NODES, "'heavy' is not a number. Fill in a number"),
    "weights of text": (edges(weight=["1", "2", "3"]), NODES, "row 1, column 'weight': '1' is string; expected numbers"),
    # node tables
    "a duplicate id": (
        edges(),
        {"id": [1, 2, 3, 1], "label": list("xyxy")},
        "row 4, column 'id': duplicate id 1 (also in row 1",
    ),
    "duplicate ids": (edges(), {"id": [1, 2, 3, 2, 1, 2], "label": list("xyxyxy")}, "row 4, column 'id': duplicate id 2 (also"),
    "a node without an id": (edges(), {"id": [1, None, 3], "label": list("xyx")}, "row 2, column 'id': the id is missing"),
    "float ids of nodes": (
        edges(),
        {"id": [1.0, 2.0, 3.0], "label": list("xyx")},
        "row 1, column 'id': ids are of type double",
    ),
    "decimal ids of nodes": (edges(), "id,label\n1,x\n2.0,y\n3,x\n", "row 2, column 'id': '2.0' is not a whole number"),
    "no nodes": ("source,target\n", "id,label\n", "nodes.csv has no rows, so the graph has no nodes"),
    # files
    "a ragged row": ("source,target\n1,2\n1\n", NODES, "edges.csv, row 2: 1 values, but there are 2 columns ('1')"),
    "a long row": ("source,target\n1,2\n1,2,3\n", NODES, "edges.csv, row 2: 3 values, but there are 2 columns"),
    "not UTF-8": (b"source,target\na,b\nc,\xe9\n", NAMED, "edges.csv, line 3: not UTF-8 text. Save the file as UTF-8"),
    "names that are not UTF-8": (b"source,target,\xe9\na,b,c\n", NAMED, "edges.csv, line 1: "),
    "a column twice": ("source,source,target\n1,1,2\n", NODES, "has 2 columns named 'source'. Rename or remove all but one"),
    "another separator": ("source;target\n1;2\n", NODES, "separated by ';'; write it with commas"),
    "an empty file": ("", NODES, "edges.csv is empty; expected a table with a header line"),
    "an empty node table": (edges(), "", "nodes.csv is empty; expected a table with a header line"),
    "a file of blank lines": ("\n\n", NODES, "edges.csv could not be read as csv"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
def test_the_same_bad_input_gives_the_same_message_through_all_readers(messages, case):
    edges, nodes, expected = CASES[case]
    found = messages(edges, nodes)
    assert expected in found[0]
    assert found == [found[0]] * 3


def test_a_missing_column_is_named_alike_with_what_to_do_where_it_is_read(messages):
    found = messages("source,dest\n1,2\n", NODES)
    for message in found:
        assert "edges.csv has no column 'target'; its columns are 'source', 'dest'. Name it with " in message
    assert "columns={'target': …}" in found[0] and found[1] == found[2] and "data.target: …" in found[1]


REPORTED = (
    "edges.csv: 1 column was not used: 'since'.",
    "edges.csv: the edge types 2, 7 were numbered 0 to 1 and keep their names.",
    "1 edge has weight 0 and was dropped.",
    "nodes.csv: 1 column was not used: 'title'.",
    "1 node of splits has no label and was left out of these.",
    "1 class has no training node (the first is 'green'); none can be predicted.",
)


@pytest.mark.parametrize("reader", ["read_dataset", "ingest"])
def test_what_is_odd_is_reported_once_and_in_the_names_that_users_gave(tmp_path, reader):
    (tmp_path / "edges.csv").write_text("source,target,type,weight,since\na,b,2,1,x\nb,c,7,0,y\nc,a,7,2,z\nd,a,2,1,w\n")
    rows = "a,red,train,t1\nb,blue,train,t2\nc,green,test,t3\nd,,train,t4\n"
    (tmp_path / "nodes.csv").write_text(f"id,label,split,title\n{rows}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if reader == "ingest":
            ingest(tmp_path / "edges.csv", tmp_path / "nodes.csv", out=tmp_path / "out", memory=400 << 20)
        else:
            read_dataset(tmp_path / "edges.csv", tmp_path / "nodes.csv")
    found = [str(one.message).removeprefix(f"{tmp_path}/") for one in caught if one.category is GatasWarning]
    assert sorted(found) == sorted(REPORTED)
