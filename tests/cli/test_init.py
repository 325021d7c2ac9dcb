"""`gatas init`: a config from a look at tables, and from answers."""

import io
import re
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from gatas.datasets import NodeTableData
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
        (["edges.csv", "--set", "data.source=form"], "was written, but cannot be trained yet: .*has no column 'form'"),
        (["one.csv"], "one.csv has 1 columns; expected a source and a target"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(gatas, tables, arguments, message):
    (tables / "one.csv").write_text("a\n1\n")
    code, _, err = gatas("init", *arguments, "--yes")
    line = err.strip().splitlines()[-1]
    assert code == 1 and line.startswith("error: ")
    assert re.search(message, line)
