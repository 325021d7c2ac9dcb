"""The whole is the same to the byte, for any engine, number of workers and number of parts, as from one process."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatas
from gatas.datasets.loading import open_dataset
from gatas.graph import Graph
from gatas.scale import open_engine, run_job
from gatas.scale.answers import AnswersTask
from gatas.scale.transitions import TransitionsTask
from gatas.training import Config, load_config
from gatas.transitions import Transitions
from tests.tasks.toys import SMALL, camps, likes
from tests.transitions.test_properties import random_graph


def digest(path: Path) -> str:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()


def done(engine: str, task, folder: Path, out: Path, num_parts: int | None, num_workers: int | None = 2) -> str:
    with open_engine(engine, None if engine == "serial" else num_workers) as opened:  # type: ignore[arg-type]
        run_job(task, folder, out, opened, num_parts=num_parts)
    return digest(out)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Typed, directed, with ids and a hub."""
    plain = random_graph(100, 300, 2, seed=11, inverse=True)
    hub = np.arange(1, 80)
    source, target = np.concatenate([plain.source, 0 * hub]), np.concatenate([plain.neighbour, hub])
    kind = np.concatenate([plain.edge_type, 0 * hub])
    named = Graph.from_edges(
        source, target, kind, num_nodes=100, num_edge_types=4, inverse=True, node_ids=[f"node {n}" for n in range(100)]
    )
    named.save(tmp_path_factory.mktemp("graph") / "graph")
    return named, tmp_path_factory.getbasetemp() / "graph0/graph"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kind": "count"},
        {"max_candidates": 5},
        {"max_candidates": [5, 3]},
        {"revisits": True},
        {"shard_entries": 2_000},
        {"shard_entries": 40, "num_steps": 1},
    ],
)
def test_transitions_for_any_number_of_parts(graph, tmp_path, settings):
    graph, stored = graph
    settings = {"num_steps": 2, "shard_entries": 1 << 26, **settings}
    shard_entries = settings.pop("shard_entries")
    Transitions.build(graph, **settings).save(tmp_path / "one", shard_entries=shard_entries)
    task = TransitionsTask(str(stored), shard_entries=shard_entries, **settings)
    for parts in (1, 2, 12):
        assert done("serial", task, tmp_path / f"job{parts}", tmp_path / f"{parts}", parts) == digest(tmp_path / "one")
    assert Transitions.open(tmp_path / "12", verify=True).num_rows == 100


def test_jobs_with_and_without_revisits_are_different_jobs(graph):
    _, stored = graph
    with_revisits, without = (TransitionsTask(str(stored), 2, revisits=revisits).identity() for revisits in (True, False))
    assert with_revisits != without and without == TransitionsTask(str(stored), 2).identity()


def test_transitions_for_any_engine(graph, engine, tmp_path):
    graph, stored = graph
    Transitions.build(graph, 2).save(tmp_path / "one")
    task = TransitionsTask(str(stored), 2)
    assert done(engine, task, tmp_path / "job", tmp_path / "out", 5, num_workers=1) == digest(tmp_path / "one")


def test_transitions_by_torch(graph, tmp_path):
    graph, stored = graph
    Transitions.build(graph, 2, device="cpu").save(tmp_path / "one")
    task = TransitionsTask(str(stored), 2, device="cpu")
    assert done("serial", task, tmp_path / "job", tmp_path / "out", 3) == digest(tmp_path / "one")


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """A run on files: nodes with ids, features and one class, or several."""
    folder, random = tmp_path_factory.mktemp("topics"), np.random.default_rng(3)
    edges = "\n".join(f"n{a},n{b}" for a, b in random.integers(0, 500, (2_000, 2)) if a != b)
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n")
    rows = "\n".join(
        f"n{n},{x:.4f},{y:.4f},{'red' if x > 0 else 'blue'}" for n, (x, y) in enumerate(random.normal(size=(500, 2)))
    )
    (folder / "nodes.csv").write_text(f"id,x,y,label\n{rows}\n")
    dataset = gatas.read_dataset(folder / "edges.csv", folder / "nodes.csv", label="label")
    model = gatas.NodeClassifier(dataset, **SMALL, node_embedding_size=3)
    gatas.fit(model, dataset, seed=0, device="cpu", epochs=1, folder=folder / "run")
    return folder / "run"


@pytest.mark.parametrize("name", ["emb.parquet", "emb.npy"])
def test_embeddings_for_any_number_of_parts(topics, tmp_path, name):
    gatas.load(topics).write_embeddings(tmp_path / name, batch_size=64)
    task = AnswersTask("embeddings", str(topics), 64)
    for parts in (1, 3, 100):
        out = tmp_path / str(parts) / name
        out.parent.mkdir()
        assert done("serial", task, tmp_path / f"job{parts}", out, parts) == digest(tmp_path / name)
    assert len(list((tmp_path / "job100/parts").iterdir())) == 8  # whole batches


@pytest.mark.parametrize("name", ["all.parquet", "all.csv", "all.json"])
def test_predictions_for_any_number_of_parts(topics, tmp_path, name):
    gatas.load(topics).write_predictions(tmp_path / name)
    task = AnswersTask("predictions", str(topics))
    for parts in (1, 2):
        out = tmp_path / str(parts) / name
        out.parent.mkdir()
        assert done("serial", task, tmp_path / f"job{parts}", out, parts) == digest(tmp_path / name)


def test_answers_for_any_engine(topics, engine, tmp_path):
    gatas.load(topics).write_embeddings(tmp_path / "embeddings.parquet")
    gatas.load(topics).write_predictions(tmp_path / "predictions.parquet")
    (tmp_path / "made").mkdir()
    with open_engine(engine, None if engine == "serial" else 2) as opened:
        for asked in ("embeddings", "predictions"):
            task, name = AnswersTask(asked, str(topics)), f"{asked}.parquet"
            run_job(task, tmp_path / asked, tmp_path / "made" / name, opened, num_parts=2)
            assert digest(tmp_path / "made" / name) == digest(tmp_path / name)


def test_a_run_on_a_store_is_answered_for_from_that_store(tmp_path):
    camps(300).save(tmp_path / "store")
    config = Config(data={"store": tmp_path / "store"}, model=SMALL, training={"epochs": 1})
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    stored = open_dataset(load_config(tmp_path / "config.yaml").data)
    gatas.fit(gatas.NodeClassifier(stored, **SMALL), stored, seed=0, device="cpu", epochs=1, folder=tmp_path / "run")
    for file in (tmp_path / "store").iterdir():
        assert file.samefile(tmp_path / "run/data" / file.name)  # linked, not stored twice
    gatas.load(tmp_path / "run").write_embeddings(tmp_path / "one.npy", batch_size=64)
    task = AnswersTask("embeddings", str(tmp_path / "run"), 64)
    assert done("serial", task, tmp_path / "job", tmp_path / "all.npy", 3)
    assert (tmp_path / "all.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()


@pytest.mark.parametrize("parts", [("vectors", "paths"), ("neighbourhood",)], ids="+".join)
def test_representations_by_parts_of_a_link_s_score(tmp_path, parts):
    dataset = likes()
    settings: Any = {**SMALL, "link_score": parts, "vector_size": 6, "revisits": True, "node_embedding_size": 3}
    training: Any = {"loss": "list", "hidden_folds": 3, "n3": 0.01, "epochs": 1, "batch_size": 8}
    gatas.fit(gatas.LinkPredictor(dataset, **settings), dataset, seed=0, device="cpu", folder=tmp_path / "run", **training)
    predictor = gatas.load(tmp_path / "run")
    predictor.write_embeddings(tmp_path / "one.npy", batch_size=5)
    assert predictor.embedding_size == (6 if "vectors" in parts else 8)
    task = AnswersTask("embeddings", str(tmp_path / "run"), 5)
    assert done("serial", task, tmp_path / "job", tmp_path / "all.npy", 2)
    assert (tmp_path / "all.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()


def test_a_model_of_paths_alone_has_no_representations(tmp_path):
    dataset = likes()
    settings: Any = {**SMALL, "link_score": ("paths",)}
    training: Any = {"loss": "list", "epochs": 1, "batch_size": 8}
    gatas.fit(gatas.LinkPredictor(dataset, **settings), dataset, seed=0, device="cpu", folder=tmp_path / "run", **training)
    with pytest.raises(gatas.GatasError, match="by typed paths alone"):
        done("serial", AnswersTask("embeddings", str(tmp_path / "run")), tmp_path / "job", tmp_path / "all.npy", 2)


def test_answers_of_other_weights_are_another_job(topics, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(topics, run)
    task = AnswersTask("embeddings", str(run))
    done("serial", task, tmp_path / "job", tmp_path / "all.npy", 2)
    (run / "weights.safetensors").write_bytes((run / "weights.safetensors").read_bytes()[:-1] + b"\x01")
    with pytest.raises(gatas.GatasError, match="is of another job: it differs in run"):
        done("serial", task, tmp_path / "job", tmp_path / "all.npy", 2)
