"""`gatas init`: a config from a look at tables, and from answers."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from scipy import sparse

from gatas.datasets import NodeTableData, open_dataset
from gatas.datasets.column_roles import is_copy
from gatas.training import load_config

pytestmark = pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")  # of columns that are not used

EDGES = "from,to,relation,times\n" + "".join(f"a{k},a{(k + 1) % 40},{'xy'[k % 2]},{k + 1}\n" for k in range(40))
NODES = "name,kind,topic,age,town,note\n" + "".join(
    f"a{k},p,{'uv'[k % 2]},{k},{'rome' if k % 3 else 'oslo'},n{k}\n" for k in range(40)
)
NODES += "".join(f"b{k},q,,,,n{k}\n" for k in range(20))


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    return tmp_path


def data(path):
    return yaml.safe_load(path.read_text())["data"]


def test_columns_are_found_by_name_and_by_what_they_hold(gatas, tables):
    code, out, _ = gatas("init", "edges.csv", "--nodes", "nodes.csv", "--yes", "--out", "deep/mine.yaml")
    assert code == 0 and "60 nodes, 80 edges of 4 types, 3 features; node classification, 2 classes; train 32" in out
    written = data(tables / "deep/mine.yaml")
    expected = {"source": "from", "target": "to", "edge_type": "relation", "weight": "times", "id": "name", "node_type": "kind"}
    assert {key: written[key] for key in expected} == expected
    assert written["label"] == ["topic"] and written["features"] == ["age", "town"] and written["missing"] == "refuse"
    assert written["edges"] == "../edges.csv" and written["task"] == "node classification"
    text = (tables / "deep/mine.yaml").read_text()
    assert "# column of the edge table: the id an edge starts from" in text and "gatas config show mine.yaml" in text
    data_of_file = load_config("deep/mine.yaml").data
    assert isinstance(data_of_file, NodeTableData) and data_of_file.edges == tables / "deep/../edges.csv"


def test_without_labels_links_are_predicted(gatas, tables):
    code, out, _ = gatas("init", "edges.csv", "--yes", "--out", "links.yaml")
    written = data(tables / "links.yaml")
    assert code == 0 and written["task"] == "link prediction" and written["link_types"] is None and written["nodes"] is None
    assert "link prediction, 2 types of link" in out and "label" not in written


AUTOMATIC = {
    "nodes": ["num_steps: 3, since three fit", "max_degree: null, since walks through all nodes fit", "batch_size: 100, since"],
    "links": ["link_score: vectors, neighbourhood, paths, since nodes have few edges", "num_steps: 3, since three fit"],
}


@pytest.mark.parametrize("task", ["nodes", "links"])
def test_what_auto_comes_to_is_printed_and_written_with_its_reason(gatas, tables, task):
    nodes = ["--nodes", "nodes.csv"] if task == "nodes" else []
    _, out, _ = gatas("init", "edges.csv", *nodes, "--yes")
    text = (tables / "config.yaml").read_text()
    for choice in AUTOMATIC[task]:
        assert f"\n  {choice}" in out.partition("auto comes to, on this machine:")[2]
        assert f"\n#   {choice}" in text.partition("# auto comes to, on this machine:")[2]
    written = yaml.safe_load(text)
    assert written["model"]["num_steps"] == "auto" and written["training"]["batch_size"] == "auto"


def test_columns_with_other_names_are_the_first_that_hold_ids(gatas, tables):
    pq.write_table(
        pa.table({"day": pa.array([1, 2, 3] * 4), "who": ["x", "y", "z"] * 4, "whom": ["y", "z", "x"] * 4}), "e.parquet"
    )
    pq.write_table(pa.table({"id": ["x", "y", "z"], "class": ["a", "b", "a"]}), "n.parquet")
    ratios = "data.ratios={train: 1, valid: 0, test: 0}"
    code, _, _ = gatas("init", "e.parquet", "--nodes", "n.parquet", "--set", ratios, "--yes")
    written = data(tables / "config.yaml")
    assert code == 0 and (written["source"], written["target"], written["label"]) == ("who", "whom", ["class"])


def test_gaps_are_seen_and_filled(gatas, tables):
    (tables / "nodes.csv").write_text(NODES.replace("a7,p,v,7,", "a7,p,v,,"))
    assert gatas("init", "edges.csv", "--nodes", "nodes.csv", "--yes")[0] == 0
    assert data(tables / "config.yaml")["missing"] == "fill"


def test_settings_are_not_guessed(gatas, tables):
    settings = [
        "--set",
        "data.label=town",
        "--set",
        "data.seed=3",
        "--set",
        "training.epochs=2",
        "--set",
        "model.hidden_size=7",
    ]
    assert gatas("init", "edges.csv", "--nodes", "nodes.csv", "--yes", *settings)[0] == 0
    config = load_config("config.yaml")
    assert isinstance(config.data, NodeTableData)
    assert config.data.label == ("town",) and config.data.seed == 3 and config.data.features == ("topic", "age")
    assert config.training.epochs == 2 and config.model.hidden_size == 7 and config.model.num_heads == 4


def test_questions_are_asked_on_a_terminal(gatas, tables, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    answers = ["nodes.csv", "", "", "", "-", "", "", "l", "x"]
    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(answers) + "\n"))
    code, out, err = gatas("init", "edges.csv")
    written = data(tables / "config.yaml")
    assert code == 0 and "Predict classes of nodes (c), numbers of nodes (r) or links (l)" in err and "Wrote config.yaml" in out
    assert written["task"] == "link prediction" and written["link_types"] == ["x"] and written["weight"] is None
    assert written["source"] == "from" and written["nodes"] == "nodes.csv"


def test_questions_are_asked_again_until_the_column_is_there(gatas, tables, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    answers = ["nodes.csv", "form", "from", "-", "to", "", "", "", "", "c", "nothing", ""]
    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(answers) + "\n"))
    code, _, err = gatas("init", "edges.csv")
    written = data(tables / "config.yaml")
    assert code == 0 and (written["source"], written["target"], written["label"]) == ("from", "to", ["topic"])
    assert "there is no column 'form'; the columns are from, to, relation, times." in err
    assert "it cannot be left out; the columns are" in err and "there is no column 'nothing'" in err


def listed(out):
    """What each column was taken for, from the list that is printed."""
    lines = (re.split(r" {2,}", line.strip()) for line in out.splitlines())
    return {parts[0]: " | ".join(parts[1:]) for parts in lines if len(parts) > 1}


def test_every_column_is_listed_with_what_it_was_taken_for(gatas, tables):
    roles = listed(gatas("init", "edges.csv", "--nodes", "nodes.csv", "--yes")[1])
    assert roles["from"] == "source of edges" and roles["relation"] == "type of edges | 2: x, y"
    assert roles["name"] == "id of nodes" and roles["topic"] == "label | 2: u, v, none for 20 nodes"
    assert roles["age"] == "feature: number | 0 to 39" and roles["town"] == "feature: category | 2 values"
    assert (
        roles["note"] == "left out | 40 different values in 60 nodes: a name or free text"
        and roles["kind"] == "type of nodes | 2: p, q"
    )


def nodes_of(number=40, **columns):
    return {"person": [f"a{k}" for k in range(number)], "class": ["u", "v"] * (number // 2), **columns}


def init_parquet(gatas, columns, *arguments):
    pq.write_table(pa.table(columns), "nodes.parquet")
    code, out, err = gatas("init", "edges.csv", "--nodes", "nodes.parquet", "--yes", "--force", *arguments)
    assert code == 0, err
    return listed(out), data(Path("config.yaml"))


def test_ids_are_found_by_what_edges_name_whatever_they_are_called(gatas, tables):
    columns = nodes_of(id=list(range(40)), name=[f"n{k}" for k in range(40)])
    roles, written = init_parquet(gatas, columns)
    assert written["id"] == "person" and roles["name"].startswith("left out | 40 different values in 40 nodes")
    assert roles["id"] == "left out | the number of the row" and written["features"] == []


def test_nodes_without_the_ids_of_edges_are_refused_with_the_columns(gatas, tables):
    pq.write_table(pa.table({"who": ["x", "y"], "class": ["u", "v"]}), "nodes.parquet")
    code, _, err = gatas("init", "edges.csv", "--nodes", "nodes.parquet", "--yes")
    assert code == 1 and "has no column of the ids that" in err and "such as 'a0'; its columns are 'who', 'class'" in err


def test_ends_of_edges_are_columns_of_ids_rather_than_of_usual_names(gatas, tables):
    edges = {"source": ["web"] * 40, "one": [f"a{k}" for k in range(40)], "other": [f"a{(k + 1) % 40}" for k in range(40)]}
    pq.write_table(pa.table(edges), "edges.parquet")
    pq.write_table(pa.table(nodes_of()), "nodes.parquet")
    assert gatas("init", "edges.parquet", "--nodes", "nodes.parquet", "--yes")[0] == 0
    written = data(tables / "config.yaml")
    assert (written["source"], written["target"], written["id"]) == ("one", "other", "person")


def test_columns_of_splits_are_no_features_and_the_first_is_taken(gatas, tables):
    names = ["train", "train", "valid", "test"] * 10
    splits = {f"split{k}": names for k in range(3)} | {"train_mask": [True, False] * 20, "val_mask": [False, True] * 20}
    roles, written = init_parquet(gatas, nodes_of(**splits))
    assert written["split"] == "split0" and written["features"] == []
    assert roles["split0"] == "split | train 20, valid 10, test 10"
    assert roles["split1 … split2 (2 columns)"].startswith("left out | another split, which data.split may name")
    assert roles["train_mask … val_mask (2 columns)"].startswith("left out | a mask of a split")
    dataset = open_dataset(load_config("config.yaml").data)
    assert len(dataset.splits["train"]) == 20


@pytest.mark.parametrize("name", ["split", "fold"])
@pytest.mark.parametrize("shares", [(0.5, 0.25, 0.25), (0.8, 0.1, 0.1)])
def test_ratios_that_are_given_count_before_a_column_of_splits(gatas, tables, name, shares):
    columns = nodes_of(**{name: ["train", "test"] * 20})
    ratios = dict(zip(("train", "valid", "test"), shares, strict=True))
    roles, written = init_parquet(gatas, columns, "--set", f"data.ratios={ratios}")
    assert written["split"] is None and written["ratios"] == ratios and roles[name].startswith("left out | another split")
    splits = open_dataset(load_config("config.yaml").data).splits
    assert [len(splits[split]) for split in ratios] == [round(40 * share) for share in shares]


def test_ratios_of_links_count_before_a_column_of_splits(gatas, tables):
    edges = {"from": [f"a{k % 40}" for k in range(80)], "to": [f"a{(7 * k + k // 40) % 40}" for k in range(80)]}
    pq.write_table(pa.table(edges | {"split": ["train", "test"] * 40}), "edges.parquet")
    shares = ("--set", "data.ratios={train: 0.5, valid: 0.25, test: 0.25}")
    assert gatas("init", "edges.parquet", *shares, "--yes")[0] == 0
    assert sorted(open_dataset(load_config("config.yaml").data).splits) == ["test", "train", "valid"]
    usual = ("--set", "data.ratios={train: 0.8, valid: 0.1, test: 0.1}")
    code, _, err = gatas("init", "edges.parquet", *usual, "--yes", "--force")
    assert code == 1 and "before which the edge table's column 'split' counts" in err


def test_splits_of_links_are_looked_for_in_the_edge_table(gatas, tables):
    columns = nodes_of(split=["train", "test"] * 20)
    roles, written = init_parquet(gatas, columns, "--set", "data.task=link prediction")
    assert written["split"] is None and roles["split"].startswith("left out | a split of nodes")
    assert roles["class"].startswith("left out | a label by its name")


def test_a_split_without_validation_is_said_with_what_follows_from_it(gatas, tables):
    for names, said in ((["train", "test"], 1), (["train", "dev"], 0)):
        pq.write_table(pa.table(nodes_of(split=names * 20)), "nodes.parquet")
        code, out, _ = gatas("init", "edges.csv", "--nodes", "nodes.parquet", "--yes", "--force")
        out = " ".join(out.split())
        assert code == 0 and out.count("'split' has no validation split: settings cannot be chosen by the data") == said
        assert out.count("and the last epoch is kept") == out.count("--set 'data.ratios=") == said
    edges = {
        "from": [f"a{k}" for k in range(40)],
        "to": [f"a{(k + 3) % 40}" for k in range(40)],
        "fold": ["train", "test"] * 20,
    }
    pq.write_table(pa.table(edges), "edges.parquet")
    assert "'fold' has no validation split" in gatas("init", "edges.parquet", "--yes", "--force")[1]


@pytest.mark.parametrize(
    "names", ["is_train is_val is_test", "in_train in_eval in_test", "isTrain isDev isTest", "train val holdout"]
)
def test_masks_of_splits_are_no_features_whatever_they_are_called(gatas, tables, names):
    masks = {name: [k % 3 == place for k in range(40)] for place, name in enumerate(names.split())}
    _, written = init_parquet(gatas, nodes_of(**masks, training_days=[k % 7 == 0 for k in range(40)]))
    assert written["features"] == ["training_days"]


@pytest.mark.parametrize("names", ["training dev test", "Training eval holdout", "train validation testing"])
def test_splits_are_known_by_other_words(gatas, tables, names):
    first, second, third = names.split()
    roles, written = init_parquet(gatas, nodes_of(part=[first, first, second, third] * 10))
    assert written["split"] == "part" and roles["part"] == f"split | {first} 20, {second} 10, {third} 10"
    splits = open_dataset(load_config("config.yaml").data).splits
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 20, "valid": 10, "test": 10}


def test_skewed_numbers_and_many_categories_get_an_encoding_that_is_written(gatas, tables):
    rows = 4000
    values = {
        "even": [k % 97 for k in range(rows)],
        "income": [float(2.0 ** (k % 30)) for k in range(rows)],
        "rare": [0.0] * (rows - 40) + [float(10**k) for k in range(20) for _ in range(2)],
        "flag": [0] * (rows - 3) + [1] * 3,
        "town": [f"t{k % 1500}" for k in range(rows)],
    }
    roles, written = init_parquet(gatas, nodes_of(rows, **values))
    assert written["encode"] == {"income": "log", "rare": "quantile", "town": "frequent 200"}
    assert written["features"] == ["even", "income", "rare", "flag", "town"]
    assert re.search(r"feature: number \| log: skewness [\d.]+, of the logarithm", roles["income"])
    assert "1,500 values: the 200 most frequent (15%), and other" in roles["town"]


def test_what_cannot_be_a_feature_is_left_out_with_the_reason(gatas, tables):
    columns = nodes_of(
        constant=[1] * 40,
        nothing=pa.nulls(40),
        day=pa.array(range(40), pa.timestamp("s")),
        tags=[["a"]] * 40,
        ragged=[[1.0] * (k % 3 + 1) for k in range(40)],
        words=[list(range(k % 4)) for k in range(40)],
        mixed=["n/a", *map(str, range(39))],
    )
    roles, written = init_parquet(gatas, columns)
    assert written["features"] == ["words"] and roles["words"] == "feature: indices | 0 to 3 of 3, kept sparse"
    assert roles["constant"] == "left out | always 1" and roles["nothing"] == "left out | no values"
    assert roles["tags"] == "left out | lists of string; expected numbers"
    assert roles["ragged"] == "left out | lists of 1 to 3 numbers; expected one length"
    assert roles["mixed"] == "left out | numbers, but 1 value is not, such as 'n/a'"
    assert roles["day"] == "left out | timestamp[ms]; to use it, make a number of it, such as days"
    code, _, err = gatas("init", "edges.csv", "--nodes", "nodes.parquet", "--yes", "--force", "--set", "data.features=[day]")
    assert code == 1 and "Leave it out of data.features, or convert it to numbers, such as days." in " ".join(err.split())


def test_labels_may_be_whole_numbers_with_gaps_and_many(gatas, tables):
    _, written = init_parquet(
        gatas, {"person": [f"a{k}" for k in range(40)], "y": [float(k % 2) if k % 3 else None for k in range(40)]}
    )
    assert written["label"] == ["y"] and written["features"] == []
    columns = {"person": [f"a{k}" for k in range(400)], "label": [f"c{k % 60}" for k in range(400)]}
    assert init_parquet(gatas, columns)[1]["label"] == ["label"]


def test_a_column_without_a_name_is_not_mistaken_for_one_that_is_missing(gatas, tables):
    rows = "".join(f"{k},a{k},{'uv'[k % 2]},{k if k % 5 else ''}\n" for k in range(40))
    (tables / "nodes.csv").write_text(",person,class,age\n" + rows)
    code, out, _ = gatas("init", "edges.csv", "--nodes", "nodes.csv", "--yes")
    assert code == 0 and listed(out)["(no name)"] == "left out | the number of the row"
    assert data(tables / "config.yaml")["missing"] == "fill"


def test_many_columns_are_listed_in_one_line(gatas, tables):
    columns = {f"w{k}": [float((j * k) % 61) for j in range(40)] for k in range(2, 60)}
    roles, written = init_parquet(gatas, nodes_of(**columns))
    assert roles["w2 … w59 (58 columns)"] == "feature: number" and len(written["features"]) == 58


def test_a_sparse_file_beside_the_nodes_is_named_and_taken_when_asked_for(gatas, tables):
    sparse.save_npz("words.npz", sparse.csr_array(np.eye(40, dtype=np.float32)))
    pq.write_table(pa.table(nodes_of()), "nodes.parquet")
    _, out, _ = gatas("init", "edges.csv", "--nodes", "nodes.parquet", "--yes")
    assert "words.npz is a sparse matrix with a row for each node: --set data.features=words.npz takes it." in out
    columns = nodes_of(pay=[float(2**k) if k % 4 else None for k in range(40)], age=list(range(1, 80, 2)))
    roles, written = init_parquet(gatas, columns, "--set", "data.features=[words.npz, pay]")
    assert written["features"] == ["words.npz", "pay"] and roles["words.npz"] == "feature: file | kept sparse"
    assert written["encode"] == {"pay": "log"} and written["missing"] == "fill"
    assert roles["age"] == "left out | not in data.features"
    _, written = init_parquet(gatas, nodes_of(), "--set", "data.features=words.npz")
    assert written["features"] == ["words.npz"]
    assert sparse.issparse(open_dataset(load_config("config.yaml").data).features)


def test_a_file_that_is_there_is_kept_unless_forced(gatas, tables):
    (tables / "config.yaml").write_text("mine")
    code, _, err = gatas("init", "edges.csv", "--yes")
    assert code == 1 and "is there already" in err and (tables / "config.yaml").read_text() == "mine"
    assert gatas("init", "edges.csv", "--yes", "--force")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "none.csv does not exist"),
        (["edges.csv", "--nodes", "edges.txt"], "edges.txt has an ending that is not known"),
        (["edges.csv", "--set", "data.lable=x"], "there is no setting 'data.lable'. Did you mean 'label'"),
        (["edges.csv", "--set", "data.task=links"], "data.task is 'links'; input should be"),
        (["edges.csv", "--set", "data.source=form"], "config.yaml was not written: .*has no column 'form'"),
        (["one.csv"], "one.csv has 1 columns; expected a source and a target"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(gatas, tables, arguments, message):
    (tables / "one.csv").write_text("a\n1\n")
    code, _, err = gatas("init", *arguments, "--yes")
    line = err.strip().splitlines()[-1]
    assert code == 1 and line.startswith("error: ")
    assert re.search(message, line)


def test_a_command_with_a_mistake_writes_nothing_so_that_the_corrected_one_needs_no_force(gatas, tables):
    arguments = ("init", "edges.csv", "--nodes", "nodes.csv", "--yes", "--set")
    code, _, err = gatas(*arguments, "data.label=topik")
    assert code == 1 and "config.yaml was not written: " in err and not (tables / "config.yaml").exists()
    assert gatas(*arguments, "data.label=topic")[0] == 0


def test_where_all_was_guessed_the_config_is_written_to_be_mended(gatas, tables):
    (tables / "nodes.csv").write_text("name,topic,split\n" + "".join(f"a{k},u,train\n" for k in range(40)))
    code, _, err = gatas("init", "edges.csv", "--nodes", "nodes.csv", "--yes")
    assert code == 1 and "config.yaml was written, but cannot be trained yet: " in err and (tables / "config.yaml").exists()


def write_links(folder, suffix=".csv", types=3, column="relation"):
    """Files of links as published graphs come: train, valid, test."""
    folder.mkdir(exist_ok=True)
    for name, first, count in (("train", 0, 600), ("valid", 600, 40), ("test", 640, 40)):
        rows = [(k, f"r{k % types}", (7 * k + k // 50) % 50) for k in range(first, first + count)]
        text = f"head,{column},tail\n" + "".join(f"e{k % 50},{kind},e{target}\n" for k, kind, target in rows)
        (folder / f"{name}{suffix}").write_text(text)


def test_files_of_links_beside_one_that_is_called_train_are_held_out(gatas, tables):
    write_links(tables / "kg")
    code, out, _ = gatas("init", "kg/train.csv", "--yes", "--out", "kg.yaml")
    written = data(tables / "kg.yaml")
    assert code == 0 and "valid.csv (valid) and test.csv (test) beside it: links that are held out." in out
    assert written["pairs"] == {"train": None, "valid": "kg/valid.csv", "test": "kg/test.csv"} and written["keep_reverse"]
    dataset = open_dataset(load_config("kg.yaml").data)
    assert dataset.ranked and int(dataset.splits["test"].label.sum()) == 40


def test_files_of_links_are_held_out_where_they_are_named(gatas, tables):
    write_links(tables / "kg")
    (tables / "kg/test.csv").rename(tables / "later.csv")
    reverse = ("--set", "data.keep_reverse=false")
    code, _, _ = gatas("init", "kg/train.csv", "--test", "later.csv", *reverse, "--yes", "--out", "kg.yaml")
    written = data(tables / "kg.yaml")
    assert code == 0 and written["pairs"] == {"train": None, "valid": None, "test": "later.csv"}
    assert written["task"] == "link prediction" and not written["keep_reverse"]
    code, _, error = gatas("init", "kg/train.csv", "--test", "nothing.csv", "--yes", "--out", "other.yaml")
    assert code == 1 and "nothing.csv does not exist" in error


def test_files_beside_are_not_looked_at_where_the_split_is_said_or_classes_are_asked_for(gatas, tables):
    write_links(tables / "kg")
    ratios = ("--set", "data.ratios={train: 0.8, valid: 0.1, test: 0.1}")
    assert gatas("init", "kg/train.csv", *ratios, "--yes", "--out", "a.yaml")[0] == 0
    assert data(tables / "a.yaml")["pairs"] == {"train": None, "valid": None, "test": None}
    (tables / "train.csv").write_text(EDGES)
    (tables / "test.csv").write_text(EDGES)
    assert gatas("init", "train.csv", "--nodes", "nodes.csv", "--yes", "--out", "b.yaml")[0] == 0
    assert data(tables / "b.yaml")["task"] == "node classification"


def test_types_of_edges_may_be_many_if_they_repeat(gatas, tables):
    write_links(tables / "kg", types=100)
    code, out, _ = gatas("init", "kg/train.csv", "--yes", "--out", "kg.yaml")
    assert code == 0 and data(tables / "kg.yaml")["edge_type"] == "relation" and "edges of 200 types" in out


def test_links_listed_both_ways_are_directed_where_their_reverses_are_kept(gatas, tables):
    write_links(tables / "kg")
    train = tables / "kg/train.csv"
    head, *rows = train.read_text().splitlines()
    back = [",".join(reversed(row.split(","))) for row in rows]
    train.write_text("\n".join([head, *rows, *back]) + "\n")
    code, out, _ = gatas("init", "kg/train.csv", "--yes", "--out", "kg.yaml")
    assert code == 0 and "edges of 6 types" in out


@pytest.mark.parametrize(("share", "kept"), [(0, False), (0.5, True), (1, False)])
def test_reverses_of_held_out_links_stay_where_some_links_but_not_all_go_both_ways(gatas, tables, share, kept):
    there = [(f"e{k % 40}", f"e{(k % 40 + 1 + k // 40) % 40}") for k in range(200)]
    rows = there + [(b, a) for a, b in there[: int(share * 200)]]
    (tables / "follows.csv").write_text("from,to\n" + "".join(f"{a},{b}\n" for a, b in rows))
    code, out, _ = gatas("init", "follows.csv", "--yes", "--out", "follows.yaml")
    assert code == 0 and bool(data(tables / "follows.yaml")["keep_reverse"]) == kept
    assert ("Links go both ways: " in out) == kept
    said = ("--set", "data.keep_reverse=false")
    assert gatas("init", "follows.csv", *said, "--yes", "--out", "said.yaml")[0] == 0
    assert not data(tables / "said.yaml")["keep_reverse"]


def test_a_share_of_links_both_ways_that_is_nearly_none_is_not_called_0(gatas, tables):
    there = [(f"e{k % 400}", f"e{(k % 400 + 1 + k // 400) % 400}") for k in range(1200)]
    rows = there + [(b, a) for a, b in there[:2]]
    (tables / "follows.csv").write_text("from,to\n" + "".join(f"{a},{b}\n" for a, b in rows))
    code, out, _ = gatas("init", "follows.csv", "--yes", "--out", "follows.yaml")
    assert code == 0 and "Links go both ways: <1% of them" in out


def test_files_of_links_are_held_out_beside_a_node_table_without_labels_too(gatas, tables):
    write_links(tables / "kg")
    (tables / "kg/nodes.csv").write_text("id,size,topic\n" + "".join(f"e{k},{k * k},{'ab'[k % 2]}\n" for k in range(50)))
    arguments = ("init", "kg/train.csv", "--nodes", "kg/nodes.csv", "--yes")
    code, _, _ = gatas(*arguments, "--out", "nodes.yaml")
    assert code == 0 and data(tables / "nodes.yaml")["task"] == "node classification"  # `topic` is what they are asked for
    (tables / "kg/nodes.csv").write_text("id,size\n" + "".join(f"e{k},{k * k}\n" for k in range(50)))
    code, _, _ = gatas(*arguments, "--out", "kg.yaml")
    assert code == 0 and data(tables / "kg.yaml")["pairs"] == {"train": None, "valid": "kg/valid.csv", "test": "kg/test.csv"}


def test_a_label_of_fractions_is_a_number_to_predict(gatas, tables):
    rows = "".join(f"a{k},{k / 7 if k % 5 else ''},{k % 9}\n" for k in range(40))
    (tables / "nodes.csv").write_text("person,label,age\n" + rows)
    for told in ((), ("--set", "data.label=label")):
        code, out, _ = gatas("init", "edges.csv", "--nodes", "nodes.csv", "--yes", "--force", *told)
        written = data(tables / "config.yaml")
        assert code == 0 and written["task"] == "node regression" and written["label"] == ["label"]
        assert written["features"] == ["age"] and "'label' holds numbers that are not all whole" in " ".join(out.split())
        assert "No column is called" not in out


def test_a_label_of_very_many_whole_numbers_is_no_feature_and_the_note_says_why(gatas, tables):
    pq.write_table(pa.table({"person": [f"a{k}" for k in range(100)], "label": [k * k for k in range(100)]}), "nodes.parquet")
    code, out, _ = gatas("init", "edges.csv", "--nodes", "nodes.parquet", "--yes")
    written, said = data(tables / "config.yaml"), " ".join(out.split())
    assert code == 0 and written["task"] == "link prediction" and written["features"] == []
    assert "The column 'label' has 100 different values in 100 nodes, too many for classes; for numbers: --set" in said
    assert listed(out)["label"].startswith("left out | a label by its name")


def test_numbers_that_cannot_be_classes_are_refused_with_the_task_for_them(gatas, tables):
    pq.write_table(pa.table({"person": [f"a{k}" for k in range(40)], "label": [k / 7 for k in range(40)]}), "nodes.parquet")
    (tables / "nodes.csv").write_text("person,label\n" + "".join(f"a{k},{k / 7}\n" for k in range(40)))
    told = ("--set", "data.label=label", "--set", "data.task=node classification")
    for nodes in ("nodes.parquet", "nodes.csv"):
        code, _, err = gatas("init", "edges.csv", "--nodes", nodes, "--yes", "--force", *told)
        assert code == 1 and "set data.task: node regression, where numbers are to be predicted" in " ".join(err.split())


def test_a_copy_of_the_label_is_no_feature(gatas, tables):
    known = [k % 4 for k in range(36)] + [None] * 4
    copies = {
        "codes": [7.5 - k % 4 for k in range(40)],
        "words": [f"w{k % 4}" if k % 4 else None for k in range(36)] + ["w1"] * 4,
        "nearly": [k % 4 for k in range(35)] + [0] * 5,
        "coarse": [k % 2 for k in range(40)],
        "fine": [k % 8 for k in range(40)],
    }
    columns = {"person": [f"a{k}" for k in range(40)], "y": known, **copies}
    roles, written = init_parquet(gatas, columns)
    assert written["label"] == ["y"] and written["features"] == ["nearly", "coarse", "fine"]
    assert roles["codes … words (2 columns)"] == "left out | one to one with the label, and so gives it away"
    assert init_parquet(gatas, columns, "--set", "data.features=[codes]")[1]["features"] == ["codes"]


def test_unlabelled_nodes_say_nothing_of_copies_of_the_label_nor_do_labels_that_never_repeat(gatas, tables):
    known = [k % 4 for k in range(36)] + [-1] * 4
    _, written = init_parquet(gatas, {"person": [f"a{k}" for k in range(40)], "y": known, "codes": [*known[:36], 0, 1, 2, 3]})
    assert written["features"] == []
    columns = {"person": [f"a{k}" for k in range(40)], "y": [k / 7 for k in range(40)], "size": [k * k for k in range(40)]}
    assert init_parquet(gatas, columns)[1]["features"] == ["size"]


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int64(), pa.float32(), pa.decimal128(20, 1), pa.bool_(), pa.string()])
def test_copies_of_labels_are_known_whatever_their_type(kind):
    label = pa.array([0, 1] * 10).cast(kind)
    for values in (["x", None] * 10, [True, False] * 10, [1.5, 2.5] * 10):
        assert is_copy(pa.array(values), label) and (None in values or is_copy(label, pa.array(values)))
    for other in (pa.nulls(20), pa.array([[1], [2]] * 10), pa.array(range(20)), pa.array([1] * 20)):
        assert not is_copy(other, label) and not is_copy(label, other)


def test_a_split_of_nodes_whose_numbers_are_predicted_is_listed_as_one(gatas, tables):
    columns = {"person": [f"a{k}" for k in range(40)], "y": [k / 7 for k in range(40)], "split": ["train", "test"] * 20}
    assert init_parquet(gatas, columns)[0]["split"] == "split | train 20, test 20"
