"""`gatas explain`."""

import json
import shutil
from typing import Any

import pytest

from gatas.datasets import load_dataset
from gatas.experiments.recipes import recipe
from gatas.inference import fit, fit_many
from gatas.tasks import LinkPredictor
from gatas.training.config import Config
from tests.inference.conftest import kinship_parts_folder, shop_folder

__all__ = ["kinship_parts_folder", "shop_folder"]

SMALL = {"model.sample_size": 5, "model.num_heads": 2, "model.num_steps": 2, "training.epochs": 2, "training.batch_size": 2000}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Little trained models: of digits, and of kinship with the paper's head."""
    folder = tmp_path_factory.mktemp("runs")
    fit_many(recipe("digits").with_settings(SMALL), [0], folder=folder / "digits")
    paper = Config.model_validate({"data": {"name": "kinship"}, "model": {"link_score": "pair"}})
    fit_many(paper.with_settings({**SMALL, "training.evaluation_mode": "all"}), [0], folder=folder / "kinship")
    return folder


def test_a_node_is_explained_in_tables_and_a_picture(gatas, runs):
    code, out, _ = gatas("explain", runs / "digits", "42", "--top", 3)
    assert code == 0 and "42 looks most at" in out and "By typed path" in out and "alike⁻¹" in out
    assert "… 2 more" in out and "Rows: 5 of " in out and "candidates (sample)" in out
    assert "Most for it: " in out and "effect: log-odds" in out
    for ending in ("png", "svg"):
        assert (runs / "digits/explanations" / f"node-42.{ending}").exists()


def test_what_spread_labels_add_is_told_apart(gatas, tmp_path):
    settings = {**SMALL, "model.label_spreading": True}
    fit_many(recipe("digits").with_settings(settings), [0], folder=tmp_path)
    found = json.loads(gatas("explain", tmp_path, "900", "--json")[1])
    parts, log_odds = found["label_spreading"], found["answer"]["log_odds"]
    assert parts["without"] + parts["effect"] == pytest.approx(log_odds) and parts["effect"]
    code, out, _ = gatas("explain", tmp_path, "900")
    added = f"{parts['without']:+.3f} by these rows, {parts['effect']:+.3f} by labels spread over the whole graph"
    assert code == 0 and f"Log-odds: {added}".replace("-", "−") in out.replace("-", "−")


def test_a_link_is_explained_at_both_ends(gatas, runs, tmp_path):
    link = ("Greta-932", "grandparent", "Otto-125")
    code, out, _ = gatas("explain", runs / "kinship", "--link", *link, "--out", tmp_path / "new")
    assert code == 0 and "Greta-932 – grandparent → Otto-125: " in out
    assert "Greta-932 looks most at" in out and "Otto-125 looks most at" in out and "candidates (all)" in out
    assert (tmp_path / "new/link-Greta-932-grandparent-Otto-125.png").read_bytes().startswith(b"\x89PNG")


def test_machines_get_json(gatas, runs, tmp_path):
    arguments = ("explain", runs / "digits", "42", "--json", "--top", 2, "--out", tmp_path)
    code, out, _ = gatas(*arguments)
    content = json.loads(out)
    assert code == 0 and content["target"] == 42 and len(content["rows"]) == 2 and content["num_rows"] == 5
    assert content["pictures"] == [str(tmp_path / "node-42.png"), str(tmp_path / "node-42.svg")]
    assert gatas(*arguments)[1] == out
    everything = json.loads(gatas(*arguments, "--mode", "all")[1])
    assert everything["mode"] == "all" and everything["coverage"] == pytest.approx(1) and content["coverage"] < 1


def test_another_class_can_be_asked_for(gatas, runs, tmp_path):
    _, out, _ = gatas("explain", runs / "digits", "42", "--json", "--answer", "8", "--out", tmp_path)
    assert json.loads(out)["answer"]["name"] == "8"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{runs}/digits", "1797"], "no node has the id '1797'; ids are 0 to 1796"),
        (["{runs}/kinship", "--link", "Greta-93", "grandparent", "Otto-125"], "Nearest known: Greta-932"),
        (["{runs}/kinship", "--link", "Greta-932", "granparent", "Otto-125"], "Did you mean 'grandparent'"),
        (["{runs}/digits", "--link", "1", "alike", "2"], "says of what class a node is"),
        (["{runs}/digits", "1", "--answer", "ten"], "there is no class 'ten'. There are 0, 1"),
        (["{runs}/digits"], "give the id of a node, or --link"),
        (["{runs}/kinship", "Greta-932", "--link", "a", "b", "c"], "give the id of a node, or --link"),
        (["{folder}/nowhere", "1"], "nowhere"),
        (["{folder}/broken", "1"], "holds no finished run that can be read"),
        (["{runs}/digits", "1", "--out", "{folder}/file"], "File exists"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(gatas, tmp_path, runs, arguments, message):
    shutil.copytree(runs / "digits", tmp_path / "broken")
    (tmp_path / "broken/weights.safetensors").write_bytes(b"half a fi")
    (tmp_path / "file").write_text("")
    code, out, err = gatas("explain", *(argument.format(folder=tmp_path, runs=runs) for argument in arguments))
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err


@pytest.fixture(scope="module")
def by_parts(tmp_path_factory):
    """A little model of kinship whose score is a sum of parts."""
    folder, dataset = tmp_path_factory.mktemp("parts"), load_dataset("kinship")
    settings: Any = {"link_score": ("vectors", "neighbourhood", "paths"), "revisits": True, "vector_size": 4, "num_steps": 2}
    model = LinkPredictor(dataset, **settings, sample_size=5, num_heads=2, head_size=4, neighbour_size=4)
    fit(model, dataset, seed=0, device="cpu", loss="list", hidden_folds=2, epochs=1, batch_size=2000, l2=0, folder=folder)
    return folder


def test_a_link_is_explained_by_what_its_log_odds_add_up_from(gatas, by_parts, tmp_path):
    link = ("Timo-178", "grandparent", "Nils-719")
    code, out, err = gatas("explain", by_parts, "--link", *link, "--out", tmp_path)
    assert code == 0, err
    assert "Timo-178 – grandparent → Nils-719: " in out and "not a known link" in out and "the vectors of both" in out
    assert "100.0%  Timo-178 – parent → Nils-719" in out and "Shared neighbours: " in out and "Timo-178 looks most at" in out
    found = json.loads(gatas("explain", by_parts, "--link", *link, "--out", tmp_path, "--json")[1])
    names = [f"link-Timo-178-grandparent-Nils-719{suffix}" for suffix in ("", "-neighbourhoods")]
    assert found["pictures"] == [str(tmp_path / f"{name}.{ending}") for name in names for ending in ("png", "svg")]
    assert all((tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    total = sum(one["value"] for one in (*found["terms"], *found["paths"]))
    assert total == pytest.approx(found["answer"]["log_odds"], rel=1e-9)


def test_a_node_is_not_explained_by_attention_that_was_never_trained(gatas, kinship_parts_folder, tmp_path):
    asked = ("explain", kinship_parts_folder, "Timo-178", "--out", tmp_path)
    code, out, _ = gatas(*asked)
    note = "Links of this model are scored by vectors and paths: no neighbourhoods are looked at."
    assert (code, out) == (0, f"{note} Explain a link: gatas explain {kinship_parts_folder} --link Timo-178 TYPE TARGET\n")
    found = json.loads(gatas(*asked, "--json")[1])
    assert (found["note"], found["rows"], found["depths"], found["pictures"]) == (note, [], [], [])
    assert list(tmp_path.iterdir()) == []


def test_a_type_of_link_is_explained_by_its_strongest_paths(gatas, by_parts, runs):
    code, out, _ = gatas("explain", by_parts, "--type", "grandparent", "--top", 2)
    assert code == 0 and "Typed paths that speak most for “grandparent”" in out and "negatives" in out
    found = json.loads(gatas("explain", by_parts, "--type", "grandparent", "--top", 2, "--json")[1])
    assert found["type"] == "grandparent" and found["split"] == "valid"
    assert found["paths"][0]["relations"] == ["parent", "parent"] and found["paths"][0]["contribution"] > 0
    code, out, _ = gatas("explain", by_parts, "--type", "grandparent", "--split", "test")
    assert code == 0 and "over all test links" in out
    code, _, err = gatas("explain", by_parts, "Timo-178", "--split", "test")
    assert code == 1 and "--split says over which links --type looks" in err
    code, out, err = gatas("explain", runs / "kinship", "--type", "grandparent")
    assert (code, out) == (1, "") and "scores nothing by typed paths" in err and err.count("\n") == 1


def test_a_node_never_seen_is_explained(gatas, runs, tmp_path):
    (tmp_path / "edges.csv").write_text("source,type,target\nzoe,sibling,Otto-125\nOtto-125,sibling,zoe\n")
    arguments = ("--link", "zoe", "cousin", "Greta-932", "--new-edges", tmp_path / "edges.csv", "--out", tmp_path / "out")
    code, out, _ = gatas("explain", runs / "kinship", *arguments)
    assert code == 0 and "zoe – cousin → Greta-932: " in out and "Otto-125   sibling" in out
    code, out, err = gatas("explain", runs / "kinship", "--link", "zoe", "cousin", "Greta-932")
    assert (code, out) == (1, "") and err.startswith("error: no node has the id 'zoe'") and err.count("\n") == 1


def test_raw_columns_of_a_new_node_are_explained(gatas, shop_folder, tmp_path):
    (tmp_path / "nodes.csv").write_text("key,kind,age,town\nzoe,customer,25,rome\n")
    (tmp_path / "edges.csv").write_text("from,to,relation,times\nzoe,t1,buys,2\n")
    files = ("--new-nodes", tmp_path / "nodes.csv", "--new-edges", tmp_path / "edges.csv", "--out", tmp_path / "out")
    code, out, _ = gatas("explain", shop_folder, "zoe", *files, "--json")
    found = json.loads(out)
    assert code == 0 and found["target"] == "zoe" and "t1" in [row["neighbour"] for row in found["rows"]]
    (tmp_path / "nodes.csv").write_text("key,kind,age,town\nzoe,customer,25,lima\n")
    code, out, err = gatas("explain", shop_folder, "zoe", *files)
    assert (code, out) == (1, "") and "'lima' was in no node of training" in err and err.count("\n") == 1
