"""read_graph: tables as people keep them, and everything that can be wrong with one."""

import datetime
import gzip
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph, read_graph


@pytest.fixture
def write(tmp_path):
    """Write text or bytes (by the file's ending also compressed), or columns as Parquet; gives the path."""

    def writing(name, content):
        path = tmp_path / name
        if isinstance(content, dict):
            pa.parquet.write_table(pa.table(content), path)
            return path
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
        return path

    return writing


def named(graph: Graph):
    kinds = graph.edge_type_names
    ends = zip(graph.source, graph.edge_type, graph.neighbour, strict=True)
    return [(graph.id_of(i), kinds[r], graph.id_of(j)) for i, r, j in ends]


def refused(match, *args, **kwargs):
    with pytest.raises(GraphError) as error:
        read_graph(*args, **kwargs)
    for part in [match] if isinstance(match, str) else match:
        assert part in str(error.value)


SAME = [("a", "0", "b"), ("b", "0", "c")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("edges.csv", "source,target\na,b\nb,c\n"),
        ("edges.CSV", "source,target\na,b\nb,c"),
        ("edges.csv", "source,target\r\na,b\r\nb,c\r\n"),
        ("edges.csv", b"\xef\xbb\xbfsource,target\na,b\nb,c\n"),
        ("edges.csv", '"source","target"\n"a","b"\n"b","c"\n'),
        ("edges.csv", "target,source\nb,a\nc,b\n"),
        ("edges.csv", "source,target\n\na,b\n\nb,c\n\n"),
        ("edges.tsv", "source\ttarget\na\tb\nb\tc\n"),
        ("edges.csv.gz", "source,target\na,b\nb,c\n"),
        ("my.edges.TSV.GZ", "source\ttarget\na\tb\nb\tc\n"),
        ("edges.parquet", {"source": ["a", "b"], "target": ["b", "c"]}),
        ("edges.PARQUET", {"source": pa.array(["a", "b"], pa.large_string()), "target": ["b", "c"]}),
        ("edges.parquet", {"source": pa.array(["a", "b"]).dictionary_encode(), "target": ["b", "c"]}),
    ],
)
def test_the_same_graph_is_read_from_any_format(write, name, content):
    assert named(read_graph(write(name, content))) == SAME


@pytest.mark.parametrize(("name", "text"), [("edges.csv", "a,b\nb,c\n"), ("edges.tsv", "a\tb\nb\tc\n")])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_a_file_without_a_header_is_read_by_position(write, name, text, bom):
    assert named(read_graph(write(name, bom + text.encode()), header=False)) == SAME


def test_without_a_header_the_third_column_is_the_type_and_the_fourth_the_weight(write):
    graph = read_graph(write("edges.csv", "a,b,likes,2.5\n"), header=False)
    assert named(graph) == [("a", "likes", "b")] and graph.weight is not None and graph.weight.tolist() == [2.5]


def test_without_a_header_further_columns_are_counted_and_left(write):
    with pytest.warns(GatasWarning, match=r"1 column was not used: 'column 5'"):
        assert named(read_graph(write("edges.csv", 'a,"b,1",likes,2.5,x\n'), header=False)) == [("a", "likes", "b,1")]


def test_a_forgotten_header_is_guessed_at(write):
    refused(["has no column 'source'; its columns are 'a', 'b'", "or pass header=False"], write("edges.csv", "a,b\nb,c\n"))


def test_separators_and_line_breaks_may_be_quoted(write):
    graph = read_graph(write("edges.csv", 'source,target\n"a,1","b\n2"\n"say ""hi""",x\n'))
    assert named(graph) == [("a,1", "0", "b\n2"), ('say "hi"', "0", "x")]


@pytest.mark.parametrize("ids", [["007", "8"], ["1", "+2"], ["1", "-0"], ["NA", "null"], ["true", "false"], ["2020-01-01", "x"],
                                 ["9" * 30, "1"], ["9999999999999999999", "1"], ["é", "日本"], ["1e", "2"]])  # fmt: skip
def test_text_that_only_resembles_something_else_stays_text(write, ids):
    graph = read_graph(write("edges.csv", f"source,target\n{ids[0]},{ids[1]}\n"))
    assert named(graph) == [(ids[0], "0", ids[1])]
    assert graph.index_of(ids[0]) == graph.get_index(ids[0]) and graph.id_of(graph.index_of(ids[1])) == ids[1]


@pytest.mark.parametrize("ids", [[5, 3], [-1, 2**53 + 1], [1234567890123456789, 0]])
def test_whole_numbers_in_a_text_file_become_integers_without_loss(write, ids):
    assert named(read_graph(write("edges.csv", f"source,target\n{ids[0]},{ids[1]}\n"))) == [(ids[0], "0", ids[1])]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16(), pa.uint64()])
def test_integer_ids_of_any_width_come_back_as_integers(write, kind):
    graph = read_graph(write("edges.parquet", {"source": pa.array([7, 9], kind), "target": pa.array([9, 100], kind)}))
    assert named(graph) == [(7, "0", 9), (9, "0", 100)]


def test_nodes_are_ordered_by_id_and_indices_serve_as_ids_if_these_are_0_1_2(write):
    assert read_graph(write("edges.csv", "source,target\n2,0\n0,1\n")).node_ids is None
    assert read_graph(write("other.csv", "source,target\n10,9\n")).id_of(0) == 9


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([1.5, 2.0], "row 1, column 'source': ids are of type double (first value 1.5); expected integers or text"),
        ([2.0**53 + 2, 1.0], "ids are of type double"),
        ([float("nan"), 1.0], "ids are of type double"),
        ([True, False], "ids are of type bool (first value True)"),
        ([1, None], "row 2, column 'source': the id is missing. Fill it in"),
        (["a", None], "row 2, column 'source': the id is missing"),
        ([None, None], "row 1, column 'source': the id is missing"),
        ([datetime.date(2020, 1, 1)] * 2, "ids are of type date32[day]"),
        ([Decimal("1.5"), Decimal("2.5")], "ids are of type decimal"),
        ([[1], [2]], "ids are of type list"),
        (pa.array([1, 2**63], pa.uint64()), "row 2, column 'source': 9223372036854775808 does not fit into 63 bits"),
        (["a", ""], "row 2, column 'source': the id is '', which is empty or has spaces around it"),
        (["a", " b"], "row 2, column 'source': the id is ' b'"),
        ([1, 2], "ids must be of one kind, but sources are integers, targets are text"),
    ],
)
def test_ids_in_parquet_that_would_lose_information_are_refused(write, source, message):
    target = [1, 2] if message != "ids must be of one kind, but sources are integers, targets are text" else ["a", "b"]
    refused(
        ["edges.parquet" if "row" in message else "", message], write("edges.parquet", {"source": source, "target": target})
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("source,target\na,b\nc\n", "edges.csv, row 2: 1 values, but there are 2 columns ('c')"),
        ("source,target\na,b\nb,c\nc,d,e\n", "edges.csv, row 3: 3 values, but there are 2 columns ('c,d,e')"),
        ('source,target\na,b\n"c,d\n', "edges.csv, row 2: 1 values"),
        (b"source,target\na,b\nc,\xe9\n", "edges.csv, line 3: not UTF-8 text. Save the file as UTF-8"),
        (b"source,target,\xe9\na,b,c\n", "edges.csv, line 1: "),
        ("source,target\na,b\n".encode("utf-16"), "not UTF-8"),
        ("source,target\na,b\n,c\n", "edges.csv, row 2, column 'source': the id is '', which is empty"),
        ("source,target\na,b\nc, d\n", "edges.csv, row 2, column 'target': the id is ' d'"),
        ("source,target\n1,2\n1.0,3\n", "edges.csv, row 2, column 'source': '1.0' is not a whole number"),
        ("source,target\n1,1e5\n", "row 1, column 'target': '1e5' is not a whole number"),
        ("source,target\n", "edges.csv has no rows, so the graph has no nodes"),
        ("source,target", "edges.csv could not be read as csv"),
        ("", "edges.csv is empty"),
        ("\n\n", "edges.csv could not be read as csv"),
        ("source,dest\na,b\n", "has no column 'target'; its columns are 'source', 'dest'"),
        ("source,targets\na,b\n", "Did you mean 'targets'? Then pass columns={'target': 'targets'}"),
        ("source,Target\na,b\n", "Did you mean 'Target'?"),
        ("source,target,source\na,b,c\n", "has 2 columns named 'source'. Rename or remove all but one"),
        ("source,target,weight\na,b,1\nb,c,x\n", "row 2, column 'weight': 'x' is not a number"),
        ("source,target,weight\na,b,1\nb,c,\n", "row 2, column 'weight': the weight is missing"),
        ("source,target,weight\na,b,1\nb,c,-1\n", "edges.csv, row 2, column 'weight': weight is -1.0"),
        ("source,target,weight\na,b,inf\n", "edges.csv, row 1, column 'weight': weight is inf"),
        ("source,target,weight\na,b,nan\n", "edges.csv, row 1, column 'weight': weight is nan"),
        ("source,target,weight\na,b,true\n", "row 1, column 'weight': 'true' is not a number"),
        ("source,target,type\na,b,x\nb,c,\n", "row 2, column 'type': the type is ''"),
    ],
)
def test_text_files_that_cannot_be_used_are_refused_with_the_place(write, content, message):
    refused(message, write("edges.csv", content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"source": ["a"], "target": ["b"], "weight": ["1"]}, "row 1, column 'weight': '1' is string; expected numbers"),
        ({"source": ["a"], "target": ["b"], "weight": [None]}, "row 1, column 'weight': the weight is missing"),
        ({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, None]}, "row 2, column 'weight': the weight is missing"),
        ({"source": ["a"], "target": ["b"], "weight": [float("nan")]}, "row 1, column 'weight': weight is nan"),
        ({"source": ["a"], "target": ["b"], "type": [1.5]}, "row 1, column 'type': types are of type double"),
        ({"source": ["a"]}, "has no column 'target'"),
        (b"PAR1 and nothing more", "edges.parquet could not be read as Parquet"),
    ],
)
def test_parquet_files_that_cannot_be_used_are_refused_with_the_place(write, content, message):
    refused(message, write("edges.parquet", content))


@pytest.mark.parametrize("weights", [[Decimal("1.5")], pa.array([1.5], pa.float32()), np.array([1.5], np.float16)])
def test_weights_may_be_of_any_numeric_type(write, weights):
    graph = read_graph(write("edges.parquet", {"source": ["a"], "target": ["b"], "weight": weights}))
    assert graph.weight is not None and graph.weight.tolist() == [1.5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("edges.xlsx", b"x", "has an ending that is not known; expected .parquet, .csv"),
        ("edges", b"x", "has an ending that is not known"),
        ("edges.txt.gz", b"x", "has an ending that is not known"),
    ],
)
def test_unknown_formats_are_refused(write, name, content, message):
    refused(message, write(name, content))


def test_a_missing_file_and_a_damaged_archive_are_refused(write, tmp_path):
    refused("does not exist or is not a file", tmp_path / "no.csv")
    refused("does not exist or is not a file", write("x.csv", "").parent / "folder.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"source,target\n" + b"a,b\n" * 1000)[:-20])
    refused("cut.csv.gz", tmp_path / "cut.csv.gz")
    (tmp_path / "not.csv.gz").write_bytes(b"source,target\na,b\n")
    refused("not.csv.gz", tmp_path / "not.csv.gz")


def test_a_weight_that_turns_fractional_after_a_million_rows_is_read(write):
    graph = read_graph(write("edges.csv", "source,target,weight\n" + "0,1,1\n" * 300_000 + "1,0,1.5\n"))
    assert graph.weight is not None and graph.weight.tolist() == [300_000, 1.5]


def test_columns_can_be_renamed(write):
    path = write("edges.csv", "from,to,rel,w\na,b,x,2\n")
    graph = read_graph(path, columns={"source": "from", "target": "to", "type": "rel", "weight": "w"})
    assert named(graph) == [("a", "x", "b")] and graph.weight is not None
    same = read_graph(path, columns={"source": "from", "target": "to", "edge_type": "rel", "weight": "w"})
    assert named(same) == named(graph) and same.weight is not None
    refused("'edge_type' and 'type' were both given", path, columns={"edge_type": "rel", "type": "rel"})
    refused(
        "there is no column 'src' to name; expected some of source, target, edge_type, weight", path, columns={"src": "from"}
    )
    refused("has no column 'frm'", path, columns={"source": "frm", "target": "to"})
    refused("the column 'to' was given for 'source' and for another", path, columns={"source": "to", "target": "to"})


def test_columns_without_a_meaning_are_counted_and_left(write):
    with pytest.warns(GatasWarning, match=r"edges.csv: 2 columns were not used: 'since', 'by'"):
        assert named(read_graph(write("edges.csv", "source,since,target,by\na,1,b,x\nb,2,c,y\n"))) == SAME


def test_types_are_named_and_numbers_keep_theirs_with_a_warning(write):
    assert read_graph(write("a.csv", "source,target,type\na,b,y\nb,c,x\n")).edge_type_names == ("x", "y")
    assert read_graph(write("b.csv", "source,target,type\na,b,0\nb,c,1\n")).edge_type_names == ("0", "1")
    with pytest.warns(GatasWarning, match="the edge types 2, 10 were numbered 0 to 1 and keep their names"):
        assert read_graph(write("c.csv", "source,target,type\na,b,10\nb,c,2\n")).edge_type_names == ("2", "10")


def test_zero_weights_are_dropped_and_their_nodes_stay(write):
    with pytest.warns(GatasWarning, match="1 edge has weight 0"):
        graph = read_graph(write("edges.csv", "source,target,weight\na,b,0\nb,c,1\n"))
    assert (graph.num_nodes, graph.num_edges) == (3, 1)


def test_repeats_self_edges_and_directions_are_as_for_arrays(write):
    path = write("edges.csv", "source,target\na,b\na,b\nb,b\n")
    assert named(read_graph(path, undirected=True)) == [("a", "0", "b"), ("b", "0", "a"), ("b", "0", "b")]
    assert read_graph(path, inverse=True).num_edge_types == 2
    assert read_graph(path, repeated="count").weight is not None
    assert read_graph(path).num_repeated == 1


EDGES = "source,target\na,b\nb,c\n"


def test_a_node_table_orders_the_nodes_and_may_hold_isolated_ones(write):
    graph = read_graph(write("edges.csv", EDGES), write("nodes.csv", "id\nc\nlonely\nb\na\n"))
    assert [graph.id_of(node) for node in range(4)] == ["c", "lonely", "b", "a"]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id\na\nb\n", ["edges.csv, row 2, column 'target': the node 'c' is not in", "nodes.csv. Add it"]),
        ("id\na\nb\nc\na\n", "nodes.csv, row 4, column 'id': duplicate id 'a' (also in row 1); remove one"),
        ("name\na\n", "nodes.csv has no column 'id'"),
        ("id\n1\n2\n3\n", "edges.csv, row 1, column 'source': the node 'a' is not in"),
    ],
)
def test_node_tables_that_do_not_fit_are_refused_with_the_place(write, nodes, message):
    refused(message, write("edges.csv", EDGES), write("nodes.csv", nodes))


def test_columns_of_a_node_table_without_a_node_table_are_refused(write):
    refused("belong to a node table, but none was given", write("edges.csv", EDGES), node_columns={"id": "x"})


@pytest.mark.parametrize(
    ("edges", "ids", "expected"),
    [
        ("source,target\n1,2\n", [1, 2], [1, 2]),  # text follows the integers of Parquet
        ("source,target\n1,2\n", ["1", "2"], ["1", "2"]),  # and its text
    ],
)
def test_ids_of_a_text_file_follow_those_of_a_parquet_file(write, edges, ids, expected):
    graph = read_graph(write("edges.csv", edges), write("nodes.parquet", {"id": ids}))
    assert [graph.id_of(0), graph.id_of(1)] == expected


def test_ids_that_could_be_two_things_are_refused(write):
    refused("ids must be of one kind", write("edges.csv", "source,target\n01,2\n"), write("nodes.parquet", {"id": [1, 2]}))


def test_only_isolated_nodes_make_a_graph_too(write):
    graph = read_graph(write("edges.csv", "source,target\n"), write("nodes.csv", "id\nx\ny\n"))
    assert (graph.num_nodes, graph.num_edges) == (2, 0) and graph.id_of(1) == "y"
    empty = {"source": pa.array([], pa.null()), "target": pa.array([], pa.null())}
    assert read_graph(write("e.parquet", empty), write("n.parquet", {"id": [4, 5]})).id_of(1) == 5
    assert read_graph(write("e.parquet", empty), write("n.parquet", {"id": ["v", "w"]})).id_of(1) == "w"
