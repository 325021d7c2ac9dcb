"""Own tables as a data set: what their columns become, and what is refused in one line."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pytest import approx

from gatas.datasets import open_dataset, read_dataset
from gatas.datasets.config import data_config
from gatas.datasets.saved import data_fingerprint
from gatas.errors import ConfigError, GatasWarning, GraphError
from gatas.graph.saved import graph_fingerprint

EDGES = "source,target,type,weight\nann,tea,buys,2\nbob,tea,buys,1\nbob,cup,buys,1\ncid,cup,buys,3\nann,bob,knows,1\n"
NODES = "id,type,age,colour,label,split\nann,person,30,,x,train\nbob,person,50,,y,valid\ncid,person,40,,,\n" + (
    "tea,thing,,green,x,train\ncup,thing,,white,y,train\n"
)


@pytest.fixture
def files(tmp_path):
    """Write tables; gives the paths of edges and nodes."""

    def write(edges=EDGES, nodes=NODES):
        paths = []
        for name, content in (("edges", edges), ("nodes", nodes)):
            if isinstance(content, dict):
                paths.append(tmp_path / f"{name}.parquet")
                pq.write_table(pa.table(content), paths[-1])
            else:
                paths.append(tmp_path / f"{name}.csv")
                paths[-1].write_bytes(content if isinstance(content, bytes) else content.encode())
        return paths

    return write


def people(*labels, **columns):
    return {"id": [f"p{k}" for k in range(len(labels))], "label": list(labels), **columns}


def ring(size):
    ids = [f"p{k}" for k in range(size)]
    return {"source": ids, "target": ids[1:] + ids[:1]}


def test_tables_become_a_data_set(files):
    dataset = read_dataset(*files(), features=["age", "colour"])
    graph = dataset.graph
    assert (dataset.name, dataset.task, dataset.names) == ("edges", "node classification", ("x", "y"))
    assert graph.node_ids is not None and graph.node_ids.tolist() == ["ann", "bob", "cid", "tea", "cup"]
    assert graph.edge_type_names == ("buys", "knows", "buys⁻¹", "knows⁻¹") and graph.weight is not None
    assert {name: nodes.tolist() for name, nodes in dataset.splits.items()} == {"train": [0, 3, 4], "valid": [1]}
    assert dataset.node_targets.labels.tolist() == [0, 1, -1, 0, 1]
    assert dataset.nodes.node_type_names == ("person", "thing")


def test_a_column_belongs_to_the_types_that_have_values_in_it(files):
    features = np.asarray(read_dataset(*files(), features=["age", "colour"], standardise=False).features)
    #                                    age green white
    assert features.tolist() == [[30, 0, 0], [50, 0, 0], [40, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_numbers_are_standardised_over_training_nodes_and_lists_are_not(files):
    split = ["train", "train", "valid", "test"]
    nodes = people("x", "y", "x", "y", split=split, size=[1.0, 3.0, 9.0, 2.0], point=[[9.0, 1.0]] * 4)
    features = np.asarray(read_dataset(*files(ring(4), nodes)).features)
    assert features[:, 0].tolist() == approx([-1, 1, 7, 0])
    assert features[:, 1:].tolist() == [[9, 1]] * 4


def test_a_number_that_no_training_node_has_is_standardised_over_those_that_have_it(files):
    nodes = people("x", "y", None, None, type=["a", "a", "b", "b"], size=[None, None, 2.0, 4.0])
    features = np.asarray(read_dataset(*files(ring(4), nodes), ratios={"train": 1, "valid": 0, "test": 0}).features)
    assert features.ravel().tolist() == approx([0, 0, -1, 1])


def test_types_with_lists_of_different_lengths_have_columns_of_their_own(files):
    nodes = people("x", "y", None, type=["a", "a", "b"], point=[[1.0, 2.0], [3.0, 4.0], [5.0]])
    features = np.asarray(read_dataset(*files(ring(3), nodes), ratios={"train": 1, "valid": 0, "test": 0}).features)
    assert features.tolist() == [[1, 2, 0], [3, 4, 0], [0, 0, 5]]


def test_gaps_are_filled_with_the_mean_or_with_no_category(files):
    nodes = people("x", "y", "x", size=[1.0, None, 3.0], town=["rome", "", "oslo"])
    everything: dict[str, Any] = {"ratios": {"train": 1, "valid": 0, "test": 0}, "standardise": False, "missing": "fill"}
    features = np.asarray(read_dataset(*files(ring(3), nodes), features=["size", "town"], **everything).features)
    assert features.tolist() == [[1, 0, 1], [2, 0, 0], [3, 1, 0]]


def test_features_are_chosen_by_name_by_pattern_or_all_numbers(files):
    nodes = people("x", "y", emb_a=[1, 2], emb_b=[3, 4], town=["rome", "oslo"])
    given: dict[str, Any] = {"ratios": {"train": 1, "valid": 0, "test": 0}, "standardise": False}
    with pytest.warns(GatasWarning, match="1 column was not used: 'town'"):
        paths = files(ring(2), nodes)
        assert np.asarray(read_dataset(*paths, **given).features).tolist() == [[1, 3], [2, 4]]
    assert np.asarray(read_dataset(*paths, features=["emb_*", "town"], **given).features).shape == (2, 4)
    with pytest.warns(GatasWarning, match="3 columns were not used"):
        assert read_dataset(*paths, features=[], **given).features is None
    with pytest.warns(GatasWarning, match="2 columns"):
        assert np.asarray(read_dataset(*paths, features=[], categorical=["emb_a"], **given).features).tolist() == [
            [1, 0],
            [0, 1],
        ]


@pytest.mark.parametrize(
    ("label", "columns"),
    [
        ("tags", {"tags": [["b", "a"], [], None, ["b"]]}),
        ("tags", {"tags": [[1, 1], [0, 0], None, [0, 1]]}),
        (["a", "b"], {"a": [1, 0, None, 0], "b": [True, False, None, True]}),
    ],
)
def test_several_labels_a_node_come_as_lists_or_as_columns(files, label, columns):
    nodes = {"id": [f"p{k}" for k in range(4)], **columns}
    dataset = read_dataset(*files(ring(4), nodes), label=label, ratios={"train": 0.5, "valid": 0, "test": 0.5})
    assert dataset.task == "multi-label node classification"
    assert dataset.node_targets.labels.tolist() == [[1, 1], [0, 0], [0, 0], [0, 1]]
    assert sorted(np.concatenate(list(dataset.splits.values())).tolist()) == [0, 1, 3]  # the third has no label


@pytest.mark.parametrize("labels", [[1.0, 0.0, None], [True, False, None], pa.array([1.0, 0.0, float("nan")])])
def test_classes_may_be_whole_floats_with_gaps_as_pandas_writes_them_or_booleans(files, labels):
    nodes = {"id": ["p0", "p1", "p2"], "label": labels}
    dataset = read_dataset(*files(ring(3), nodes), ratios={"train": 1, "valid": 0, "test": 0})
    assert dataset.node_targets.labels.tolist() == [1, 0, -1]


def test_ratios_hold_for_each_class_and_are_a_function_of_the_seed(files):
    labels = ["rare"] + ["big"] * 60 + ["small"] * 20 + [None] * 19
    paths = files(ring(100), people(*labels))
    ratios = {"train": 0.5, "valid": 0.25, "test": 0.25}
    one, same, other = (read_dataset(*paths, ratios=ratios, seed=seed) for seed in (1, 1, 2))
    counts = {name: [labels[node] for node in nodes] for name, nodes in one.splits.items()}
    assert counts["train"].count("rare") == 1 and abs(counts["train"].count("big") - 30) <= 1
    assert abs(counts["valid"].count("small") - 5) <= 1 and not any(None in found for found in counts.values())
    assert sum(map(len, counts.values())) == 81
    assert graph_fingerprint(one.graph) == graph_fingerprint(same.graph) == graph_fingerprint(other.graph)
    assert data_fingerprint(one) == data_fingerprint(same) != data_fingerprint(other)


def several(count, size=4, labels="xy"):
    """Rings side by side, each a graph."""
    total = count * size
    ids = [f"p{k}" for k in range(total)]
    following = [f"p{k // size * size + (k + 1) % size}" for k in range(total)]
    nodes = people(*(labels[k % len(labels)] for k in range(total)), graph=[f"g{k // size:02}" for k in range(total)])
    return {"source": ids, "target": following}, nodes


def graphs_of(dataset):
    return {name: set(dataset.nodes.graph_id[nodes].tolist()) for name, nodes in dataset.splits.items()}


def test_ratios_are_of_whole_graphs_where_there_are_several(files):
    paths = files(*several(10))
    found = graphs_of(dataset := read_dataset(*paths, ratios={"train": 0.6, "valid": 0.2, "test": 0.2}))
    assert {name: len(graphs) for name, graphs in found.items()} == {"train": 6, "valid": 2, "test": 2}
    assert not (found["train"] & found["valid"] or found["test"] & (found["train"] | found["valid"]))
    assert sum(map(len, dataset.splits.values())) == 40
    assert {name: len(graphs) for name, graphs in graphs_of(read_dataset(*paths)).items()} == {
        "train": 8,
        "valid": 1,
        "test": 1,
    }
    assert graphs_of(read_dataset(*paths)) == graphs_of(read_dataset(*paths)) != graphs_of(read_dataset(*paths, seed=1))


def test_nodes_are_split_where_that_is_asked_for_or_graphs_are_few_or_without_labels(files):
    ratios = {"train": 0.5, "valid": 0.25, "test": 0.25}
    asked = graphs_of(read_dataset(*files(*several(10)), ratios=ratios, split_by="nodes"))
    few = graphs_of(read_dataset(*files(*several(2)), ratios=ratios))
    edges, nodes = several(10)
    nodes["label"] = [label if k >= 4 else None for k, label in enumerate(nodes["label"])]
    partly = graphs_of(read_dataset(*files(edges, nodes), ratios=ratios))
    for found in (asked, few, partly):
        assert found["train"] & found["test"]


def test_small_shares_get_a_graph_and_what_shares_leave_is_in_no_split(files):
    three = graphs_of(read_dataset(*files(*several(3))))
    assert sorted(map(len, three.values())) == [1, 1, 1]
    part = graphs_of(read_dataset(*files(*several(10)), ratios={"train": 0.5, "valid": 0.2, "test": 0}))
    assert {name: len(graphs) for name, graphs in part.items()} == {"train": 5, "valid": 2}


@pytest.mark.parametrize(
    ("tables", "settings", "message"),
    [
        (several(2), {"split_by": "graphs"}, "2 graphs with labels cannot be shared out to train, valid, test"),
        ((ring(4), people(*"xyxy")), {"split_by": "graphs"}, "data.split_by is graphs, but .*nodes.parquet does not say"),
    ],
)
def test_graphs_that_cannot_be_split_are_refused(files, tables, settings, message):
    with pytest.raises(GraphError, match=message):
        read_dataset(*files(*tables), **settings)


def test_an_edge_between_two_graphs_is_refused(files):
    nodes = "id,graph,label\na,1,x\nb,1,y\nc,2,x\n"
    with pytest.raises(GraphError, match="the edge from node 'b' to node 'c' joins two graphs"):
        read_dataset(*files("source,target\na,b\nb,c\n", nodes), ratios={"train": 1, "valid": 0, "test": 0})


def test_what_ratios_leave_is_in_no_split(files):
    dataset = read_dataset(*files(ring(40), people(*"xy" * 20)), ratios={"train": 0.25, "valid": 0.25, "test": 0})
    assert {name: len(nodes) for name, nodes in dataset.splits.items()} == {
        "train": approx(10, abs=2),
        "valid": approx(10, abs=2),
    }


def test_nodes_of_a_split_without_a_label_are_left_out_of_it(files):
    nodes = people("x", "y", None, "x", split=["train", "train", "train", "test"])
    with pytest.warns(GatasWarning, match="1 node of splits has no label"):
        dataset = read_dataset(*files(ring(4), nodes))
    assert dataset.splits["train"].tolist() == [0, 1]


def test_undirected_and_as_given_edges(files):
    given: dict[str, Any] = {"features": ["age", "colour"]}
    counts = {way: read_dataset(*files(), direction=way, **given).graph.num_edges for way in ("as given", "undirected")}
    assert counts == {"as given": 5, "undirected": 10}


def test_a_data_directory_is_looked_into_first(files, tmp_path):
    config = read_dataset(*files(), features=["age", "colour"]).origin
    assert config is not None
    (tmp_path / "moved").mkdir()
    for name in ("edges.csv", "nodes.csv"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    with pytest.raises(GraphError, match=r"edges.csv does not exist"):
        open_dataset(config)
    assert open_dataset(config, tmp_path / "moved").graph.num_nodes == 5


@pytest.mark.parametrize(
    ("edges", "nodes", "settings", "message"),
    [
        (EDGES, NODES, {"source": "sorce"}, "has no column 'sorce'.*Did you mean 'source'. Then pass data.source: s"),
        (EDGES, NODES, {"edge_type": "relation"}, "no column 'relation'; its columns are .* Name it with data.edge_type: "),
        (EDGES, NODES, {"id": "name"}, "nodes.csv has no column 'name'.*data.id"),
        (EDGES, NODES, {"label": "lable"}, "has no column 'lable'.*Did you mean 'label'"),
        (EDGES, NODES, {"label": ["label", "lable"]}, "column 'label' holds string; one of several label columns"),
        (EDGES, NODES, {"label": []}, "data.label is an empty list"),
        (EDGES, "id,a\nann,1\nbob,1\ntea,0\ncup,1\ncid,2\n", {"label": ["a", "b"]}, "row 5, column 'a': the label is 2"),
        (EDGES, "id,a,b\nann,1,\nbob,1,1\ntea,0,1\ncup,1,1\ncid,0,0\n", {"label": ["a", "b"]}, "row 1, column 'b': the label"),
        (EDGES, NODES, {"features": ["agee"]}, "no column 'agee', which data.features names. Did you mean 'age'"),
        (EDGES, NODES, {"features": ["emb_*"]}, "no column like 'emb_\\*'"),
        (EDGES, NODES, {"features": ["label"]}, "'label', the labels: this gives the answer away"),
        (EDGES, NODES.replace("label", "topic"), {}, "has no column 'label'; its columns are 'id', 'type'"),
        (EDGES.replace("ann,tea", "eve,tea"), NODES, {}, "row 1, column 'source': the node 'eve' is not in .*nodes.csv"),
        (EDGES, NODES + "ann,person,1,,x,train\n", {}, "row 6, column 'id': duplicate id 'ann' .also in row 1.; remove one"),
        (EDGES.replace("buys,2", "buys,nan"), NODES, {}, "row 1, column 'weight': weight is nan"),
        (EDGES.replace("buys,2", "buys,-2"), NODES, {}, "row 1, column 'weight': weight is -2.0"),
        (EDGES.replace("buys,2", "buys,many"), NODES, {}, "row 1, column 'weight': 'many' is not a number"),
        (EDGES.replace("buys,2", "buys,"), NODES, {}, "row 1, column 'weight': the weight is missing"),
        (EDGES, NODES.replace(",50,", ",,"), {"features": ["age"]}, "1 of 3 nodes of type 'person' has no value, .*row 2"),
        (EDGES, NODES.replace(",50,", ",old,"), {"features": ["age"]}, "row 2, column 'age': 'old' is not a number, while 2"),
        (EDGES, NODES.replace(",50,", ",inf,"), {"features": ["age"]}, "row 2, column 'age': the feature is inf"),
        (EDGES, NODES.replace(",50,", ",1e300,"), {"features": ["age"], "standardise": False}, "row 2, .*: 1e\\+300 is too"),
        (EDGES, NODES.replace("y,", "x,"), {}, "column 'label': all labels are 'x'; expected two classes"),
        (EDGES, "id,label\nann,\nbob,\ncid,\ntea,\ncup,\n", {}, "column 'label': no node has a label"),
        (EDGES, NODES.replace("train", "trian"), {}, "row 1, column 'split': 'trian' is not a split"),
        (EDGES, NODES.replace("train", ""), {}, "column 'split': no node with a label is of the split 'train'"),
        (EDGES, NODES.replace("split", "s"), {}, "the split 'valid' would be empty: a share of 0.1 of 4 labelled nodes"),
        (EDGES, NODES.replace("person", ""), {}, "row 1, column 'type'"),
        (EDGES, b"", {}, "nodes.csv is empty"),
        (b"", NODES, {}, "edges.csv is empty"),
        (EDGES, b"id,label\n\xff\xfe,x\n", {}, "nodes.csv, line 2: not UTF-8 text"),
        (EDGES, NODES + "dan,person\n", {}, "nodes.csv, row 6: 2 values, but there are 6 columns"),
        (EDGES, "id,label\n", {}, "nodes.csv has no rows"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
def test_tables_that_cannot_be_used_are_refused_in_one_line(files, edges, nodes, settings, message):
    with pytest.raises(GraphError, match=message) as error:
        read_dataset(*files(edges, nodes), **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({"when": pa.array([0, 1, 2], pa.timestamp("s"))}, {"features": ["when"]}, r"column 'when' holds timestamp\[ms\]"),
        ({"point": [[1.0], [1.0, 2.0], [1.0, 2.0]]}, {}, "row 1, column 'point': the list has 1 numbers, others of its type 2"),
        ({"point": [[1.0], None, [2.0]]}, {}, "1 of 3 nodes has no value, the first in row 2"),
        ({"point": [[1.0], [None], [2.0]]}, {}, "row 2, column 'point': a number in the list is missing"),
        ({"point": [["a"], ["b"], ["c"]]}, {"features": ["point"]}, "expected lists of numbers"),
        ({"age": pa.array([None] * 3, pa.float64())}, {}, "column 'age' has no values"),
        ({"age": [1.0, float("nan"), 2.0]}, {}, "column 'age': 1 of 3 nodes has no value, the first in row 2"),
        ({"label": [0.5, 1.0, 2.0]}, {}, "labels are double"),
    ],
)  # fmt: skip
def test_parquet_columns_that_cannot_be_used_are_refused(files, columns, settings, message):
    nodes = people("x", "y", "x") | columns
    with pytest.raises(GraphError, match=message):
        read_dataset(*files(ring(3), nodes), ratios={"train": 1, "valid": 0, "test": 0}, **settings)


def test_free_text_is_no_category(files):
    nodes = people(*"xy" * 600, title=[f"title {k}" for k in range(1200)])
    with pytest.raises(GraphError, match="column 'title' has 1,200 different values"):
        read_dataset(*files(ring(1200), nodes), features=["title"])


def test_truncated_parquet_is_refused(files):
    edges, nodes = files(ring(3), people("x", "y", "x"))
    nodes.write_bytes(nodes.read_bytes()[:-20])
    with pytest.raises(GraphError, match=r"nodes.parquet could not be read as Parquet"):
        read_dataset(edges, nodes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": "n.csv"}, "nodes belongs to own files, but there is no edge table. Give edges"),
        ({"edges": "e.csv"}, "node classification needs a node table with labels"),
        ({"edges": "e.csv", "nodes": "n.csv", "link_types": ["a"]}, "link_types was given, which is not for node class"),
        ({"edges": "e.csv", "task": "link prediction", "label": "x"}, "label was given, which is not for link prediction"),
        ({"edges": "e.csv", "task": "link prediction", "features": ["x"]}, "features names columns of a node table, but"),
        ({"edges": "e.csv", "task": "link prediction", "split": "s", "pairs": {"test": "t.csv"}}, "split and pairs were both"),
        ({"edges": "e.csv", "task": "links"}, "task is 'links'; input should be 'node classification', 'node reg"),
        ({"edges": "e.csv", "ratios": {"train": 0.8, "valid": 0.2, "test": 0.2}},
         "ratios: train, valid and test add up to 1.2; expected 1 at most.$"),
        ({"edges": "e.csv", "ratios": {"train": 0.9, "test": 0.1}},
         "add up to 1.1, with valid 0.1 by default; expected 1 at most. Give all three; 0 is for none."),
        ({"edges": "e.csv", "ratios": {"train": 0}}, "ratios.train is 0"),
        ({"edges": "e.csv", "ratios": {"train": -1}}, "ratios.train is -1"),
        ({"edges": "e.csv", "ratios": {"vaild": 0.1}}, "there is no setting 'data.ratios.vaild'. Did you mean 'valid'"),
        ({"edges": "e.csv", "task": "link prediction", "pairs": {"tets": "t.csv"}}, "'data.pairs.tets'. Did you mean 'test'"),
        ({"edges": "e.csv", "nods": "n.csv"}, "there is no setting 'data.nods'. Did you mean 'nodes'"),
        ({"edges": "e.csv", "task": "link prediction", "split_by": "nodes"}, "split_by was given, which is not for link pred"),
        ({"edges": "e.csv", "nodes": "n.csv", "split": "s", "split_by": "nodes"}, "split and split_by were both given"),
        ({"edges": 3}, "data.edges is 3"),
        ({"edges": "e.csv", "nodes": "n.csv", "seed": -1}, "data.seed is -1"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message) as error:
        data_config(settings)
    assert "\n" not in str(error.value)


def test_files_of_links_need_no_task():
    assert data_config({"edges": "edges.csv", "pairs": {"valid": "valid.csv", "test": "test.csv"}}).task == "link prediction"


def test_nearly_as_many_classes_as_nodes_are_worth_a_warning(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{k},{k + 1}\n" for k in range(39)))
    (tmp_path / "nodes.csv").write_text("id,zip\n" + "".join(f"{k},{9000 + k % 30}\n" for k in range(40)))
    with pytest.warns(GatasWarning) as found:
        read_dataset(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="zip", ratios={"train": 1, "valid": 0, "test": 0})
    assert ["column 'zip': 30 classes in 40 labelled nodes; hardly any" in str(one.message) for one in found].count(True) == 1
