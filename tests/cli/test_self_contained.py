"""A run's folder holds all that answering needs: the tables may be deleted, and the folder moved."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from gatas import NodeClassifier, OnDemand, Transitions, fit, load, read_dataset
from gatas.errors import GatasWarning
from gatas.inference import fit_many
from gatas.inference.columns import read_new_nodes
from gatas.tasks.settings import ModelSettings
from gatas.training import Config
from gatas.training.evaluation import evaluate_run
from gatas.transitions import Nearby
from tests.inference.conftest import SHOP, SHOP_EDGES, SHOP_NODES
from tests.tasks.toys import SMALL, camps

SIZES: ModelSettings = {"num_steps": 2, "sample_size": 10, "num_heads": 2, "head_size": 4, "neighbour_size": 4}


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """A run on tables that are gone, in a folder that is not where it was; and what it said before."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "edges.csv").write_text(SHOP_EDGES)
    (folder / "nodes.csv").write_text(SHOP_NODES)
    dataset = read_dataset(folder / "edges.csv", folder / "nodes.csv", **SHOP)
    run = fit(NodeClassifier(dataset, **SIZES), dataset, seed=0, device="cpu", epochs=1, folder=folder / "run")
    (folder / "edges.csv").unlink()
    (folder / "nodes.csv").unlink()
    return (folder / "run").rename(tmp_path_factory.mktemp("elsewhere") / "run"), run


@pytest.fixture
def new(tmp_path):
    """Files of a new customer, with the column names of the tables that were trained on."""
    (tmp_path / "new-nodes.csv").write_text("key,kind,age,town\nzoe,customer,25,rome\n")
    (tmp_path / "new-edges.csv").write_text("from,to,relation,times\nzoe,t1,buys,2\n")
    return tmp_path / "new-nodes.csv", tmp_path / "new-edges.csv"


def test_it_answers_from_python(moved, new):
    folder, run = moved
    predictor = load(folder)
    ids = ["c3", "t1"]
    np.testing.assert_array_equal(predictor.embed(ids), run.predictor.embed(ids))
    np.testing.assert_array_equal(predictor.predict(ids).probabilities, run.predictor.predict(ids).probabilities)
    assert predictor.explain("c3").to_dict() == run.predictor.explain("c3").to_dict()
    assert evaluate_run(folder, "test", device="cpu")["accuracy"] == pytest.approx(run.metrics["test"]["accuracy"])
    later, before = (own.with_new_nodes(**read_new_nodes(own.dataset, *new)) for own in (predictor, run.predictor))
    np.testing.assert_array_equal(later.embed(["zoe"]), before.embed(["zoe"]))


def test_it_answers_from_the_command_line(moved, new, gatas, tmp_path):
    folder, run = moved
    code, out, _ = gatas("predict", folder, "c3", "--json")
    expected = run.predictor.predict("c3")
    assert code == 0 and json.loads(out)[0]["class"] == expected.labels[0]
    code, out, _ = gatas("explain", folder, "c3", "--json", "--out", tmp_path)
    assert code == 0 and json.loads(out)["target"] == "c3"
    assert gatas("embed", folder, "--out", tmp_path / "all.parquet")[0] == 0
    rows = np.stack(pq.read_table(tmp_path / "all.parquet")["embedding"].to_numpy())
    np.testing.assert_array_equal(rows, run.predictor.embed_all())
    code, out, _ = gatas("evaluate", folder, "--json")
    assert code == 0 and json.loads(out)["test"]["accuracy"] == pytest.approx(run.metrics["test"]["accuracy"])
    code, out, _ = gatas("predict", folder, "--new-nodes", new[0], "--new-edges", new[1], "--json")
    assert code == 0 and [row["id"] for row in json.loads(out)] == ["zoe"]
    code, out, _ = gatas("explain", folder, "zoe", "--new-nodes", new[0], "--new-edges", new[1], "--json", "--out", tmp_path)
    assert code == 0 and json.loads(out)["target"] == "zoe"
    assert gatas("verify", folder)[0] == 0


def test_a_run_on_a_store_answers_without_it_and_without_its_transitions(tmp_path, gatas):
    camps(60).save(tmp_path / "store")
    Transitions.build(camps(60).graph, 2).save(tmp_path / "table")
    data = {"store": tmp_path / "store", "transitions": tmp_path / "table"}
    config = Config(data=data, model=SMALL, training={"epochs": 1})
    (run,) = fit_many(config, [0], folder=tmp_path / "run", device="cpu")
    for name in ("store", "table"):
        (tmp_path / name).rename(tmp_path / f"{name}-gone")
    code, out, _ = gatas("evaluate", tmp_path / "run", "--json", "--device", "cpu")
    assert code == 0 and json.loads(out)["test"]["loss"] == pytest.approx(run.metrics["test"]["loss"])
    np.testing.assert_array_equal(load(tmp_path / "run").embed([3]), run.predictor.embed([3]))


@pytest.mark.parametrize("question", ["embed", "predict", "explain"])
def test_answers_for_one_node_compute_rows_for_that_node_only(moved, monkeypatch, question):
    asked, make = list[int](), Nearby._made

    def counted(self, wanted):
        asked.extend(wanted.tolist())
        return make(self, wanted)

    def refused(*given, **settings):
        raise AssertionError("the transitions of the whole graph were built")

    monkeypatch.setattr(Nearby, "_made", counted)
    monkeypatch.setattr(Transitions, "build", refused)
    monkeypatch.setattr(OnDemand, "__init__", refused)
    predictor = load(moved[0])
    getattr(predictor, question)("c3" if question == "explain" else ["c3"])
    assert set(asked) == {predictor.graph.index_of("c3")}


def test_columns_that_files_of_new_nodes_have_too_many_are_named(moved, new):
    new[0].write_text("key,kind,age,town,height\nzoe,customer,25,rome,3\n")
    with pytest.warns(GatasWarning, match="height"):
        read_new_nodes(load(moved[0]).dataset, *new)
