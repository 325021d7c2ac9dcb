"""`gatas embed`, `gatas predict` and `gatas neighbours` on runs of digits and kinship."""

import json
import shutil
import sys
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gatas import load, load_dataset
from tests.inference.conftest import digits_folder, kinship_folder, kinship_parts_folder

__all__ = ["digits_folder", "kinship_folder", "kinship_parts_folder"]


def test_embed_writes_all_nodes(gatas, digits_folder, tmp_path):
    code, out, _ = gatas("embed", digits_folder, "--out", tmp_path / "emb.parquet", "--device", "cpu")
    assert code == 0 and "1,797 nodes, 16 numbers each, model" in out
    table = pq.read_table(tmp_path / "emb.parquet")
    rows = np.stack(table["embedding"].to_numpy())
    np.testing.assert_array_equal(rows[:50], load(digits_folder).embed(range(50)))


def test_embed_writes_some_nodes_the_same_in_any_batch(gatas, digits_folder, tmp_path):
    (tmp_path / "few.csv").write_text("id\n7\n3\n")
    for size in (1, 256):
        code, out, _ = gatas(
            "embed",
            digits_folder,
            "--nodes",
            tmp_path / "few.csv",
            "--out",
            tmp_path / f"{size}.npy",
            "--batch-size",
            size,
            "--json",
        )
        assert code == 0 and json.loads(out)["nodes"] == 2
    np.testing.assert_array_equal(np.load(tmp_path / "1.npy"), np.load(tmp_path / "256.npy"))
    np.testing.assert_array_equal(np.load(tmp_path / "1.npy"), load(digits_folder).embed([7, 3]))


def test_predict_prints_or_writes_classes(gatas, digits_folder, tmp_path):
    code, out, _ = gatas("predict", digits_folder, 3, 42)
    best = load(digits_folder).predict([3, 42])
    assert code == 0 and "Classes of 2 nodes" in out and f"{best.probabilities[0].max():.3f}" in out
    assert "Classes of 2 nodes" in out and "Class of 1 node\n" in gatas("predict", digits_folder, 3)[1]
    code, out, err = gatas("predict", digits_folder)
    assert code == 0 and "Classes of 20 nodes" in out and "20 of 1,797 nodes" in err
    code, out, _ = gatas("predict", digits_folder, "--out", tmp_path / "all.csv")
    assert code == 0 and pyarrow.csv.read_csv(tmp_path / "all.csv").num_rows == 1797
    code, out, _ = gatas("predict", digits_folder, 3, "--json")
    assert code == 0 and json.loads(out)[0]["p(3)"] == pytest.approx(float(best.probabilities[0, 3]))


def test_predict_scores_given_links(gatas, kinship_folder, tmp_path):
    graph = load_dataset("kinship").graph
    first, second = graph.id_of(0), graph.id_of(1)
    (tmp_path / "pairs.csv").write_text(f"source,type,target\n{first},cousin,{second}\n{second},grandparent,{first}\n")
    expected = load(kinship_folder).predict_links([first, second], ["cousin", "grandparent"], [second, first])
    for suffix in ("json", "parquet", "csv"):
        path = tmp_path / f"out.{suffix}"
        code, out, _ = gatas("predict", kinship_folder, "--pairs", tmp_path / "pairs.csv", "--out", path)
        assert code == 0 and "2 predictions" in out
    rows = json.loads((tmp_path / "out.json").read_text())
    assert [row["probability"] for row in rows] == pytest.approx(expected.tolist())
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == rows
    assert pyarrow.csv.read_csv(tmp_path / "out.csv")["target"].to_pylist() == [second, first]
    code, out, _ = gatas("predict", kinship_folder, "--pairs", tmp_path / "pairs.csv")
    assert code == 0 and f"{expected[0]:.4f}" in out


def test_predict_finds_likely_links_that_are_not_known(gatas, kinship_folder, tmp_path):
    dataset = load_dataset("kinship")
    train = dataset.splits["train"]
    node = int(train.source[(train.edge_type == 0) & (train.label == 1)][0])
    name = dataset.graph.id_of(node)
    code, out, _ = gatas(
        "predict", kinship_folder, "--source", name, "--type", "grandparent", "--top", 984, "--known", "train", "--json"
    )
    found = {row["target"] for row in json.loads(out)}
    known = {
        dataset.graph.id_of(int(k)) for k in train.target[(train.source == node) & (train.edge_type == 0) & (train.label == 1)]
    }
    assert code == 0 and known and not known & found and name not in found and len(found) == 984 - len(known)
    (tmp_path / "sources.csv").write_text(f"id\n{name}\n{dataset.graph.id_of(5)}\n")
    code, out, _ = gatas(
        "predict", kinship_folder, "--sources", tmp_path / "sources.csv", "--type", "cousin", "--top", 2, "--json"
    )
    assert code == 0 and [row["source"] for row in json.loads(out)] == [name] * 2 + [dataset.graph.id_of(5)] * 2


def test_links_by_parts_are_scored_and_ranked_from_either_end(gatas, kinship_parts_folder, tmp_path):
    predictor = load(kinship_parts_folder)
    first, second = (predictor.graph.id_of(node) for node in (0, 1))
    (tmp_path / "pairs.csv").write_text(f"source,type,target\n{first},cousin,{second}\n{second},cousin,{first}\n")
    code, out, _ = gatas("predict", kinship_parts_folder, "--pairs", tmp_path / "pairs.csv", "--json")
    chances = predictor.predict_links([first, second], "cousin", [second, first])
    assert code == 0 and [row["probability"] for row in json.loads(out)] == pytest.approx(chances.tolist(), rel=1e-7)
    for end in ("source", "target"):
        code, out, _ = gatas("predict", kinship_parts_folder, f"--{end}", first, "--type", "cousin", "--top", 3, "--json")
        asked: Any = {end: first, "edge_type": "cousin", "top": 3}
        assert code == 0 and json.loads(out) == predictor.rank_links(**asked).table().to_pylist()
    code, out, _ = gatas("evaluate", kinship_parts_folder, "--protocol", "ranking", "--json")
    assert code == 0 and json.loads(out)["test"]["mrr"] == pytest.approx(predictor.evaluate_ranking("test")["mrr"])


def test_links_of_nodes_to_themselves_are_remarked_on(gatas, kinship_parts_folder, tmp_path):
    first = load(kinship_parts_folder).graph.id_of(0)
    (tmp_path / "pairs.csv").write_text(f"source,target\n{first},{first}\n")
    code, _, err = gatas("predict", kinship_parts_folder, "--pairs", tmp_path / "pairs.csv", "--type", "cousin")
    assert code == 0 and err.startswith("1 link is of a node to itself: ")
    code, _, err = gatas("explain", kinship_parts_folder, "--link", first, "cousin", first, "--out", tmp_path)
    assert code == 0 and "1 link is of a node to itself: " in err


def test_new_nodes_come_from_files(gatas, kinship_folder, digits_folder, tmp_path):
    graph = load_dataset("kinship").graph
    (tmp_path / "edges.csv").write_text(f"source,type,target\nzoe,parent,{graph.id_of(4)}\n")
    code, out, _ = gatas(
        "predict", kinship_folder, "--new-edges", tmp_path / "edges.csv", "--type", "cousin", "--top", 2, "--json"
    )
    assert code == 0 and {row["source"] for row in json.loads(out)} == {"zoe"}
    code, out, _ = gatas("embed", kinship_folder, "--new-edges", tmp_path / "edges.csv", "--out", tmp_path / "emb.parquet")
    assert code == 0 and pq.read_table(tmp_path / "emb.parquet")["id"].to_pylist() == ["zoe"]
    features = load_dataset("digits").features
    assert isinstance(features, np.ndarray)
    image = features[0]
    header = ",".join(["id", *(f"pixel{number}" for number in range(64))])
    (tmp_path / "nodes.csv").write_text(f"{header}\n1797,{','.join(map(str, image))}\n")
    (tmp_path / "alike.csv").write_text("source,target\n1797,0\n")
    arguments = ("--new-nodes", tmp_path / "nodes.csv", "--new-edges", tmp_path / "alike.csv")
    code, out, _ = gatas("predict", digits_folder, *arguments, "--json")
    expected = load(digits_folder).embed_new(image[None], ([1797], ["alike"], [0]))
    assert code == 0 and [row["id"] for row in json.loads(out)] == [1797]
    assert gatas("embed", digits_folder, *arguments, "--out", tmp_path / "new.npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), expected)


def test_neighbours_are_printed_with_the_recall_of_hnsw(gatas, digits_folder, tmp_path):
    code, out, _ = gatas("neighbours", digits_folder, 42, "--top", 3, "--json")
    exact = json.loads(out)
    assert code == 0 and len(exact["neighbours"]) == 3 and exact["recall"] == 1
    gatas("embed", digits_folder, "--out", tmp_path / "emb.parquet")
    code, out, _ = gatas(
        "neighbours", digits_folder, 42, "--top", 3, "--method", "hnsw", "--embeddings", tmp_path / "emb.parquet"
    )
    assert code == 0 and "of the 3 nearest, measured on 1,000 nodes" in out
    assert all(str(row["id"]) in out for row in exact["neighbours"][:1])


def damaged(folder, kind):
    """A copy of a run with something wrong."""
    about = json.loads((folder / "about.json").read_text())
    if kind == "newer":
        (folder / "about.json").write_text(json.dumps({**about, "format": 3}))
    elif kind == "truncated":
        (folder / "weights.safetensors").write_bytes((folder / "weights.safetensors").read_bytes()[:200])
    elif kind == "listed":
        (folder / "about.json").write_text("[]")
    elif kind == "seeds":
        (folder / "seed-3").mkdir()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("newer", "has format 3; this version of gatas reads format 2. Update gatas."),
        ("truncated", "holds no finished run that can be read"),
        ("listed", "holds no finished run that can be read"),
        ("seeds", "holds the runs of 1 seeds. Give one of them"),
    ],
)
@pytest.mark.parametrize("command", [("embed", "--out", "{out}"), ("predict",), ("neighbours", "3")])
def test_a_damaged_run_is_refused(gatas, digits_folder, tmp_path, kind, message, command):
    shutil.copytree(digits_folder, tmp_path / "run")
    damaged(tmp_path / "run", kind)
    (tmp_path / "emb.npy").write_text("kept")
    name, *rest = (part.format(out=tmp_path / "emb.npy") for part in command)
    code, out, err = gatas(name, tmp_path / "run", *rest)
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert (tmp_path / "emb.npy").read_text() == "kept"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "{folder}/none", "--out", "{folder}/e.npy"], "is not a folder; expected one that `gatas train` wrote"),
        (["embed", "{digits}", "--out", "{folder}/e.txt"], "ending that is not known; expected .parquet or .npy"),
        (["embed", "{digits}", "--out", "{folder}/none/e.npy"], "is not a folder"),
        (["embed", "{digits}", "--out", "{folder}/e.npy", "--nodes", "{folder}/bad.csv"], "no node has the id '5000'"),
        (["embed", "{digits}", "--out", "{folder}/e.npy", "--nodes", "{folder}/none.csv"], "does not exist"),
        (["embed", "{digits}", "--out", "{folder}/e.npy", "--new-nodes", "{folder}/bad.csv"], "trained on 64 features"),
        (["embed", "{digits}", "--out", "{folder}/e.npy", "--new-nodes", "{folder}/narrow.csv"], "shape (1, 1)"),
        (["predict", "{digits}", "x"], "no node has the id 'x'; ids are 0 to 1796"),
        (["predict", "{digits}", "1", "--nodes", "{folder}/bad.csv"], "ids and --nodes were given"),
        (["predict", "{digits}", "--source", "1"], "the model predicts classes of nodes"),
        (["predict", "{digits}", "--out", "{folder}/p.npy"], "expected .parquet, .csv or .json"),
        (["predict", "{kinship}"], "the model predicts links. Give --pairs FILE, or --source ID"),
        (["predict", "{kinship}", "--source", "Elif-928"], "--type is missing; the model knows"),
        (["predict", "{kinship}", "--source", "Elif-928", "--type", "cosin"], "Did you mean 'cousin'"),
        (["predict", "{kinship}", "--source", "Elif-929", "--type", "cousin"], "Nearest known: Elif-9"),
        (["predict", "{kinship}", "--source", "a", "--pairs", "{folder}/bad.csv"], "--pairs and --source were given"),
        (["predict", "{kinship}", "--source", "a", "--target", "b"], "--source and --target were given"),
        (["predict", "{digits}", "--target", "1"], "the model predicts classes of nodes"),
        (["predict", "{kinship}", "--pairs", "{folder}/bad.csv"], "has no column 'source'"),
        (["predict", "{kinship}", "--new-edges", "{folder}/edges.csv", "--type", "cousin"], "no edge type 'friend'"),
        (["neighbours", "{digits}", "9999"], "no node has the id '9999'"),
    ],
)  # fmt: skip
def test_errors_are_one_line_and_exit_code_1(gatas, digits_folder, kinship_folder, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("id\n5000\n")
    (tmp_path / "narrow.csv").write_text("id,pixel\n5000,1\n")
    (tmp_path / "edges.csv").write_text("source,type,target\nzoe,friend,Elif-928\n")
    places = {"folder": tmp_path, "digits": digits_folder, "kinship": kinship_folder}
    code, out, err = gatas(*(argument.format(**places) for argument in arguments))
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv", "narrow.csv", "edges.csv"}


def test_without_faiss_neighbours_names_the_extra(gatas, digits_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    code, _, err = gatas("neighbours", digits_folder, 3)
    assert code == 1 and "pip install 'gatas[serve]'" in err
