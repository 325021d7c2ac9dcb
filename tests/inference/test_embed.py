"""Representations by id: the same in any batch, and as files that are whole or not there."""

import os
import socket
import subprocess
import weakref

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gatas
from gatas.inference import Predictor
from gatas.inference.exact import ExactEncoder, parts_of


def test_a_node_has_the_same_bits_alone_and_in_any_batch(digits_folder):
    predictor = gatas.load(digits_folder)
    nodes = np.arange(700)
    whole = predictor.embed(nodes, batch_size=700)
    for batch_size in (1, 3, 64, 256):
        some = nodes[:150] if batch_size == 1 else nodes
        np.testing.assert_array_equal(predictor.embed(some, batch_size=batch_size), whole[: len(some)])
    np.testing.assert_array_equal(predictor.embed(nodes[::-1]), whole[::-1])
    assert len(np.unique(whole, axis=0)) > 600  # they are not all one


def test_bits_do_not_depend_on_threads(digits_folder):
    predictor = gatas.load(digits_folder)
    torch.set_num_threads(2)
    two = predictor.embed(range(500))
    torch.set_num_threads(1)
    np.testing.assert_array_equal(predictor.embed(range(500)), two)


@pytest.mark.parametrize("run", ["camp_run", "ring_run", "like_run"])
def test_embeddings_are_what_the_model_represents(run, request):
    run = request.getfixturevalue(run)
    predictor, nodes = run.predictor, torch.arange(run.dataset.graph.num_nodes)
    with torch.no_grad():
        expected = run.model.eval().represent(nodes, draw=torch.tensor(-1), mode=predictor.mode)
    found = predictor.embed([run.dataset.graph.id_of(node) for node in nodes.tolist()])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_several_draws_are_averaged(camp_run):
    single = [camp_run.predictor.exact.represent(np.array([0]), "sample", draw) for draw in (-1, -2, -3)]
    several = Predictor(camp_run.model, camp_run.dataset, draws=3)
    np.testing.assert_allclose(several.embed(["a0"])[0], torch.stack(single).mean(0)[0], atol=1e-6)


def test_ids_may_come_in_many_shapes_and_repeat(camp_run, ring_run):
    both = camp_run.predictor.embed(["a3", "a1"])
    np.testing.assert_array_equal(camp_run.predictor.embed("a1"), both[1:])
    np.testing.assert_array_equal(camp_run.predictor.embed(np.array(["a1", "a3", "a1"])), both[[1, 0, 1]])
    numbers = ring_run.predictor.embed([4, 2])
    for ids in (np.array([4, 2]), torch.tensor([4, 2]), ("4", "2"), (number for number in (4, 2))):
        np.testing.assert_array_equal(ring_run.predictor.embed(ids), numbers)
    assert ring_run.predictor.embed([]).shape == (0, numbers.shape[1])


def test_asking_changes_nothing(camp_run):
    before = {name: tensor.clone() for name, tensor in camp_run.model.state_dict().items()}
    camp_run.predictor.embed(["a0", "a7"])
    assert all(torch.equal(before[name], tensor) for name, tensor in camp_run.model.state_dict().items())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a1", "a99"], r"no node has the id 'a99'. Nearest known: a\d"),
        ([1.5], "no node has the id 1.5"),
        ([None], "no node has the id None"),
        (object(), "ids came as a object; expected a list"),
    ],
)
def test_unknown_ids_are_refused_with_the_nearest(camp_run, ids, message):
    with pytest.raises(gatas.GraphError, match=message):
        camp_run.predictor.embed(ids)


@pytest.mark.parametrize("node", [20, -1, "x", 1.0, True])
def test_unknown_numbers_are_refused_with_the_range(ring_run, node):
    with pytest.raises(gatas.GraphError, match="ids are 0 to 19"):
        ring_run.predictor.embed([0, node])


def test_a_parquet_file_has_ids_embeddings_and_the_fingerprint(camp_run, tmp_path):
    heard: list[float] = []
    path = tmp_path / "emb.parquet"
    assert camp_run.predictor.write_embeddings(path, batch_size=7, progress=heard.append) == 30
    table, fingerprint = pq.read_table(path), camp_run.predictor.fingerprint
    assert table.column_names == ["id", "embedding", "model"] and table["id"].to_pylist() == [f"a{n}" for n in range(30)]
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: float>[8]"
    rows = np.stack(table["embedding"].to_numpy())
    np.testing.assert_array_equal(rows, camp_run.predictor.embed(table["id"].to_pylist()))
    assert set(table["model"].to_pylist()) == {fingerprint} and table.schema.metadata[b"gatas.model"].decode() == fingerprint
    assert heard == sorted(heard) and heard[-1] == 1 and len(heard) == 5
    assert {found.name for found in tmp_path.iterdir()} == {"emb.parquet", ".emb.parquet.sha256"}


def test_row_groups_are_not_as_small_as_batches(camp_run, tmp_path):
    names = [f"a{number % 30}" for number in range(9000)]
    camp_run.predictor.write_embeddings(tmp_path / "emb.parquet", names, batch_size=1000)
    file = pq.ParquetFile(tmp_path / "emb.parquet")
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [9000]
    np.testing.assert_array_equal(np.stack(file.read()["embedding"].to_numpy())[-30:], camp_run.predictor.embed(names[-30:]))


def test_an_npy_file_has_the_rows_that_were_asked_for(ring_run, tmp_path):
    ring_run.predictor.write_embeddings(tmp_path / "emb.npy", [3, 1], batch_size=1)
    np.testing.assert_array_equal(np.load(tmp_path / "emb.npy"), ring_run.predictor.embed([3, 1]))


def test_a_failed_write_leaves_what_was_there(camp_run, tmp_path, monkeypatch):
    path = tmp_path / "emb.parquet"
    path.write_text("kept")

    def failing(self, nodes, mode, draw=-1):
        raise KeyboardInterrupt

    monkeypatch.setattr(ExactEncoder, "represent", failing)
    with pytest.raises(KeyboardInterrupt):
        camp_run.predictor.write_embeddings(path)
    assert path.read_text() == "kept" and list(tmp_path.iterdir()) == [path]


def test_what_a_killed_write_left_behind_is_removed(camp_run, tmp_path):
    with subprocess.Popen(["true"]) as ended:
        pass
    left, at_work = (f".emb.npy.tmp-{socket.gethostname()}-{process}-0123abcd" for process in (ended.pid, os.getpid()))
    for name in (left, f"{left}.sha256", at_work):
        (tmp_path / name).write_text("half")
    camp_run.predictor.write_embeddings(tmp_path / "emb.npy")
    assert {found.name for found in tmp_path.iterdir()} == {"emb.npy", ".emb.npy.sha256", at_work}


@pytest.mark.parametrize("name", ["emb.txt", "emb", "nowhere/emb.npy", "folder.parquet"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(camp_run, tmp_path, name):
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(gatas.GatasError, match=r"ending that is not known|is not a folder|is a folder"):
        camp_run.predictor.write_embeddings(tmp_path / name)


def test_the_fingerprint_is_of_weights_settings_and_graph_but_not_of_use(camp_run, ring_run, tmp_path):
    first = camp_run.predictor.fingerprint
    camp_run.model.sampler(torch.tensor([0]))  # advances a counter
    assert camp_run.predictor.fingerprint == first != ring_run.predictor.fingerprint
    camp_run.save(tmp_path / "run")
    again = gatas.load(tmp_path / "run")
    assert again.fingerprint == first
    with torch.no_grad():
        again.model.encoder.neighbours.score[0, 0] += 1e-3
    assert Predictor(again.model, again.dataset).fingerprint != first


@given(st.lists(st.integers(0, 70_000), max_size=20))
def test_parts_hold_every_target_once_and_few_slots(sizes):
    mask = torch.zeros(len(sizes), 70_000, dtype=torch.bool)
    for row, size in enumerate(sizes):
        mask[row, :size] = True
    parts = parts_of(mask)
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(len(sizes)))
    for part in parts:
        assert part.stop - part.start == 1 or max(sizes[part]) * (part.stop - part.start) <= 65_536


@pytest.mark.parametrize("ending", ["parquet", "npy"])
def test_what_is_written_is_not_kept(camp_run, tmp_path, monkeypatch, ending):
    """Memory is for a row group, however many nodes there are."""
    make, made, kept = Predictor.embed_indices, [], []

    def noted(self, nodes, batch_size):
        rows = make(self, nodes, batch_size)
        made.append(weakref.ref(rows))
        return rows

    monkeypatch.setattr(Predictor, "embed_indices", noted)
    monkeypatch.setattr("gatas.inference.files.ROW_GROUP", 4)
    camp_run.predictor.write_embeddings(
        tmp_path / f"all.{ending}",
        batch_size=1,
        progress=lambda share: kept.append(sum(rows() is not None for rows in made)),
    )
    assert len(made) == 30 and max(kept) <= 5
