"""Regression from tables to answers, maps and spreads, by the command line alone."""

import json
import re

import numpy as np
import pyarrow.csv
import pytest

from gatas import load

pytestmark = pytest.mark.slow

SMALL = ["model.sample_size=8", "model.head_size=4", "model.num_heads=2", "training.epochs=4", "training.batch_size=20"]


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """A folder of tables: prices follow from sizes, and streets join houses."""
    folder, generator = tmp_path_factory.mktemp("houses"), np.random.default_rng(0)
    sizes = generator.normal(100, 20, 80)
    rows = (f"h{n},{size:.3f},{3000 * size:.1f},{size / 25:.2f}" for n, size in enumerate(sizes))
    (folder / "nodes.csv").write_text("\n".join(["id,size,price,rooms", *rows]) + "\n")
    edges = (f"h{n},h{(n + step) % 80}" for n in range(80) for step in (1, 7))
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    data = "{edges: edges.csv, nodes: nodes.csv, task: node regression, label: [price, rooms]}"
    (folder / "houses.yaml").write_text(f"data: {data}\n")
    return folder


@pytest.fixture(scope="module")
def run(houses, tmp_path_factory):
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("runs") / "houses"
    settings = [part for setting in SMALL for part in ("--set", setting)]
    command = [sys.executable, "-m", "gatas", "train", str(houses / "houses.yaml"), "--out", str(folder), *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mean MAE" in done.stdout and "R²" in done.stdout
    assert re.search(r"By number.*\n\s*number.*\n.*price +\d+ .*\n *rooms +\d+ ", done.stdout), done.stdout
    return folder


def test_evaluate_prints_every_number(gatas, run):
    code, out, _ = gatas("evaluate", run, "--device", "cpu")
    assert code == 0 and out.count("By number") == 1 and "rooms" in out and "RMSE" in out
    code, out, _ = gatas("evaluate", run, "--device", "cpu", "--json")
    known = json.loads((run / "metrics.json").read_text())
    assert json.loads(out)["test"]["by_target"]["price"]["mae"] == pytest.approx(known["test"]["by_target"]["price"]["mae"])


def test_predict_prints_and_writes_numbers(gatas, run, tmp_path):
    found = load(run, device="cpu").predict(["h3"])
    code, out, _ = gatas("predict", run, "h3")
    assert code == 0 and "Numbers of 1 node" in out and f"{found.values[0, 0]:.6g}" in out
    code, out, _ = gatas("predict", run, "h3", "--draws", 4, "--json")
    assert code == 0 and set(json.loads(out)[0]) == {"id", "price", "rooms", "sd(price)", "sd(rooms)"}
    one, parts = tmp_path / "one.csv", tmp_path / "parts.csv"
    assert gatas("predict", run, "--out", one)[0] == 0
    assert gatas("predict", run, "--out", parts, "--engine", "serial", "--parts", 2)[0] == 0
    assert one.read_bytes() == parts.read_bytes() and pyarrow.csv.read_csv(one).column_names == ["id", "price", "rooms"]


def test_explain_is_in_the_units_of_the_number(gatas, run, tmp_path):
    code, out, _ = gatas("explain", run, "h3", "--answer", "rooms", "--out", tmp_path)
    assert code == 0 and "h3: rooms" in out and "in its units" in out and (tmp_path / "node-h3.png").exists()


def test_what_is_for_links_is_refused(gatas, run):
    code, _, err = gatas("predict", run, "--source", "h3")
    assert code == 1 and "the model predicts numbers of nodes" in err


def test_embed_draws_a_map(gatas, run, tmp_path):
    code, out, _ = gatas("embed", run, "--map", tmp_path / "map.csv", "--map-method", "t-sne")
    assert code == 0 and "a map of 80 of 80 nodes, t-SNE" in out
    assert pyarrow.csv.read_csv(tmp_path / "map.csv").column_names == ["id", "x", "y", "price"]
    code, _, err = gatas("embed", run)
    assert code == 1 and "nothing is to be written" in err
    code, _, err = gatas("embed", run, "--map", tmp_path / "map.pdf")
    assert code == 1 and "ending that is not known" in err


def test_init_writes_a_config_for_numbers(gatas, houses, tmp_path):
    arguments = ("--nodes", houses / "nodes.csv", "--yes", "--set", "data.task=node regression", "--set", "data.label=price")
    code, out, _ = gatas("init", houses / "edges.csv", *arguments, "--out", tmp_path / "c.yaml")
    assert code == 0 and "node regression, 1 number" in out and "task: node regression" in (tmp_path / "c.yaml").read_text()
