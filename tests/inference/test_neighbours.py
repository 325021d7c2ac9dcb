"""Nearest nodes by faiss, against the plain cosine of all pairs."""

import sys

import numpy as np
import pytest

import gatas
from gatas.graph import Graph
from gatas.inference import NearestNodes, read_embeddings


@pytest.fixture(scope="module")
def scattered():
    return np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)


def cosines(rows):
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def test_exact_neighbours_are_those_of_the_largest_cosine(scattered):
    index, wanted = NearestNodes(Graph.from_edges([], [], num_nodes=500), scattered), cosines(scattered)
    np.fill_diagonal(wanted, -2)
    for node in (0, 77, 499):
        found = index.nearest(node, top=6)
        assert found.ids.to_pylist() == np.argsort(-wanted[node])[:6].tolist()
        np.testing.assert_allclose(found.similarities, np.sort(wanted[node])[::-1][:6], atol=1e-5)
    assert index.recall(6) == 1.0


def test_recall_is_the_share_of_the_exact_ones_that_hnsw_finds(scattered):
    graph = Graph.from_edges([], [], num_nodes=500)
    index = NearestNodes(graph, scattered, "hnsw")
    exact = NearestNodes(graph, scattered)
    shares = [
        np.isin(exact.nearest(node, 5).ids.to_pylist(), index.nearest(node, 5).ids.to_pylist()).mean() for node in range(500)
    ]
    assert index.recall(5) == pytest.approx(np.mean(shares)) and index.recall(5) > 0.9
    index.index.hnsw.efSearch = 1  # hardly any effort
    assert 0.5 < index.recall(5) < 1


def test_a_node_is_not_its_own_neighbour_even_among_equals():
    same = np.ones((5, 3), np.float32)
    index = NearestNodes(Graph.from_edges([], [], num_nodes=5), same)
    for node in range(5):
        found = index.nearest(node, top=3).ids.to_pylist()
        assert len(set(found)) == 3 and node not in found
    assert len(index.nearest(0, top=50).ids) == 4  # there are no more


def test_names_go_in_and_come_out(camp_run):
    index = NearestNodes(camp_run.dataset.graph, camp_run.predictor.embed_all())
    assert all(name.startswith("a") for name in index.nearest("a3").ids.to_pylist())
    with pytest.raises(gatas.GraphError, match="no node has the id 'b3'"):
        index.nearest("b3")


def test_embeddings_are_read_back_by_the_model_that_wrote_them(camp_run, ring_run, tmp_path):
    path, names = tmp_path / "emb.parquet", [f"a{node}" for node in range(30)]
    camp_run.predictor.write_embeddings(path, names[::-1])
    np.testing.assert_array_equal(read_embeddings(path, camp_run.predictor), camp_run.predictor.embed(names))
    with pytest.raises(gatas.GatasError, match="was written by model"):
        read_embeddings(path, ring_run.predictor)
    camp_run.predictor.write_embeddings(path, names[:7])
    with pytest.raises(gatas.GatasError, match="has 7 of 30 nodes"):
        read_embeddings(path, camp_run.predictor)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(gatas.GatasError, match="could not be read as embeddings"):
        read_embeddings(path, camp_run.predictor)


def test_without_faiss_the_extra_is_named(scattered, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(gatas.GatasError, match=r"pip install 'gatas\[serve\]'"):
        NearestNodes(Graph.from_edges([], [], num_nodes=500), scattered)
