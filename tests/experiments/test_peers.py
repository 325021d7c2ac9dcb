"""Costs beside peers: what is measured, what fails, what is gone on from, and where lines cross."""

import json
import math
from multiprocessing import active_children

import numpy as np
import pytest
import torch

from benchmarks import peers
from benchmarks.peers_cell import hubs, measure, reason
from benchmarks.peers_report import MODELS, crossing, predicted_crossing
from gatas.errors import TooLargeError
from gatas.experiments.report_benchmarks import read_scaling

FIELDS = {"train_seconds", "train_bytes", "embed_seconds", "embed_bytes", "held_bytes", "making_seconds"}


def made_up(name, num_edges):
    """Full-graph GAT costs as many as there are edges, others as on 50,000 of them, in all respects."""
    cost = num_edges if name == "gat" else 50_000
    return {"edges": num_edges, "nodes": num_edges // 10, "largest_degree": 7, **dict.fromkeys(FIELDS, cost * 1e-3)}


@pytest.fixture
def asked(monkeypatch):
    """What was measured, in place of measuring it; stored rows fail from 10⁵ edges on."""
    cells = []

    def measure(worker, name, num_edges, limit):
        cells.append((name, num_edges))
        return {"failed": "out of memory"} if name == "stored" and num_edges >= 10**5 else made_up(name, num_edges)

    monkeypatch.setattr(peers.Worker, "measure", measure)
    return cells


def test_crossings_are_interpolated_on_logarithmic_axes():
    ours = {10**k: 5.0 * 10 ** (k / 3) for k in range(1, 6)}
    theirs = {10**k: 0.1 * 10**k for k in range(1, 6)}
    assert crossing(ours, theirs) == pytest.approx(50**1.5)  # 5 x^(1/3) = x / 10
    assert crossing(theirs, ours) == math.inf
    assert crossing({size: 0.9 * cost for size, cost in theirs.items()}, theirs) == 0


def test_of_several_crossings_the_last_counts_and_only_sizes_that_both_have():
    ours, theirs = {1: 2.0, 10: 2.0, 100: 2.0, 1000: 2.0, 10_000: 2.0}, {1: 4.0, 10: 1.0, 100: 1.0, 1000: 4.0}
    assert crossing(ours, theirs) == pytest.approx(10**2.5)
    assert crossing(ours, {}) == math.inf


def test_the_paper_predicts_where_nodes_and_edges_are_as_many_as_slots():
    settings = {"batch_size": 500, "sample_size": 100, "edges_per_node": 10}
    edges = predicted_crossing(settings, "train_seconds")
    assert edges + edges / 10 == pytest.approx(500 * 100)
    assert predicted_crossing(settings, "embed_seconds") == pytest.approx(2 * edges)


def test_graphs_have_hubs_no_self_edges_and_are_a_function_of_the_seed():
    graph = hubs(20_000).graph
    degrees = np.diff(graph.indptr)
    assert graph.num_nodes == 2000 and 0.95 * 20_000 < graph.num_edges <= 20_000
    assert degrees.max() > 20 * degrees.mean()
    assert (graph.source != graph.neighbour).all()
    assert (graph.neighbour == hubs(20_000).graph.neighbour).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_cell_has_seconds_and_memory(name):
    cell = measure(name, 10_000, torch.device("cpu"), passes=1)
    assert cell.keys() == {"edges", "nodes", "largest_degree", *FIELDS}
    assert cell["nodes"] == 1000 and cell["train_seconds"] > 0 and cell["embed_seconds"] > 0


def test_the_same_command_goes_on_where_it_was(tmp_path, asked):
    path = tmp_path / "2026-01-01-peers.json"
    peers.main(["--edges", "1e4,1e5", "--to", str(path)])
    first = json.loads(path.read_text())["cells"]
    assert len(asked) == len(first) == 2 * len(MODELS)
    asked.clear()
    peers.main(["--edges", "1e4,1e5,1e6", "--to", str(path)])
    cells = json.loads(path.read_text())["cells"]
    assert asked == [(name, 10**6) for name in MODELS if name != "stored"]
    assert cells[: len(first)] == first
    assert cells[-4] == {**cells[-4], "model": "stored", "failed": "not tried: out of memory at 100,000 edges"}


def test_the_report_says_what_failed_where_lines_cross_and_can_be_charted(tmp_path, asked):
    path = tmp_path / "2026-01-01-peers.json"
    peers.main(["--edges", "1e4,1e5,1e6", "--to", str(path)])
    text = path.with_suffix(".md").read_text()
    assert "| 100,000 | – | – | ours, rows stored | out of memory | – |" in text
    assert "| ours, rows on demand | 50,000 | 50,000 | 50,000 | 50,000 |" in text
    assert "| ours, rows stored | above 10,000 |" in text
    assert "| 1,000,000 | GAT, full graph | 1e+05 | 500 | 1e+03 |" in text  # 200 steps of 500 s, or one; one look
    assert "<svg" in path.with_suffix(".svg").read_text()
    charts = {(one.table.heading, one.unit): one.series for one in read_scaling(tmp_path)}
    assert charts["1,000 targets trained", "s"]["GAT, full graph, trained"] == [(1e4, 10.0), (1e5, 100.0), (1e6, 1000.0)]
    assert ("1,000 targets embedded", "MiB") in charts


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a file of this benchmark"),
        ("[]", "is not a file of this benchmark"),
        ('{"device": "cpu", "hardware": "an abacus", "settings": {}, "cells": []}', "another hardware and settings"),
    ],
)
def test_a_file_of_something_else_is_refused_and_kept(tmp_path, asked, content, words):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(SystemExit, match=words):
        peers.main(["--edges", "1e4", "--to", str(path)])
    assert path.read_text() == content and not asked


@pytest.mark.parametrize(("given", "words"), [("many", "no list of numbers"), ("1e4,900", "too few nodes"), ("inf", "no list")])
def test_sizes_that_make_no_sense_are_refused(given, words, capsys):
    with pytest.raises(SystemExit):
        peers.main(["--edges", given])
    assert words in capsys.readouterr().err


def test_reasons_tell_a_lack_of_memory_from_mistakes(capsys):
    lacks = [
        MemoryError(),
        torch.OutOfMemoryError("CUDA"),
        TooLargeError("9 GB"),
        RuntimeError("can't allocate memory: 1 bytes"),
    ]
    assert {reason(error) for error in lacks} == {"out of memory"}
    assert reason(ValueError("a\nb")) == "ValueError: a"
    assert "ValueError" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_is_ended_when_its_time_or_memory_is_over():
    with peers.Worker("cpu", 2**33) as worker:
        assert worker.measure("gat", 10_000, 0.01) == {"failed": "more than 0.01 s"}
        assert worker.measure("sage", 10_000, 300)["train_seconds"] > 0
    with peers.Worker("cpu", 5 * 2**20) as worker:
        assert worker.measure("gat", 100_000, 300) == {"failed": "out of memory"}
    assert not active_children()


@pytest.mark.long
def test_a_process_that_lasts_measures_one_cell_after_another_until_it_is_killed():
    with peers.Worker("cpu", 2**33) as worker:
        worker.lasts = True  # as on a GPU
        assert worker.measure("gat", 10_000, 300)["train_seconds"] > 0
        first = worker.process
        assert worker.measure("sage", 10_000, 300)["train_seconds"] > 0 and worker.process is first
        assert first is not None
        first.kill()
        assert "killed by signal 9" in worker.measure("sage", 10_000, 300)["failed"]
        assert worker.process is None
    assert not active_children()
