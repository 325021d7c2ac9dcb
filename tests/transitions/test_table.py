import hashlib
import json
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from gatas.errors import StoreError, TransitionError
from gatas.graph import Graph
from gatas.transitions import OnDemand, Transitions, build, kernels
from tests.transitions.oracles import entries, one_table, same_bytes
from tests.transitions.test_properties import random_graph


@pytest.fixture(scope="module")
def graph():
    return random_graph(300, 1_200, 2, seed=11, inverse=True)


@pytest.fixture(scope="module")
def table(graph):
    return Transitions.build(graph, 2)


def test_rows_come_in_the_order_asked_for_and_may_repeat(graph, table):
    rows = table.rows([7, 3, 7])
    assert rows.num_rows == 3
    for number, target in enumerate((7, 3, 7)):
        span = slice(rows.indptr[number * 3], rows.indptr[number * 3 + 3])
        row = table.row(target)
        assert rows.node[span].tolist() == row.node.tolist()
        assert rows.probability[span].tolist() == row.probability.tolist()
        assert rows.step[span].tolist() == row.step.tolist()


def test_on_demand_gives_the_tables_rows_to_the_bit(graph, table):
    targets = [5, 299, 5, 0, 123]
    assert same_bytes(OnDemand(graph, 2).rows(targets), table.rows(targets))


@pytest.mark.parametrize("source", [Transitions.build, OnDemand])
def test_no_targets_give_no_rows(graph, source):
    assert source(graph, 2).rows([]).num_rows == 0


def test_a_table_of_some_targets_holds_these_rows_only(graph, table):
    some = Transitions.build(graph, 2, targets=[200, 4, 4, 17])
    assert some.num_rows == 3
    assert same_bytes(some.rows([17, 4]), table.rows([17, 4]))
    with pytest.raises(TransitionError, match="node 5 has no row: the table was built for 3 of 300 nodes"):
        some.row(5)


def test_torch_builds_some_targets_too(graph, table):
    some = Transitions.build(graph, 2, targets=[200, 4], device="cpu")
    assert some.rows([4, 200]).node.tolist() == table.rows([4, 200]).node.tolist()


@pytest.mark.parametrize("target", [-1, 300, 1.5, "a"])
def test_a_target_that_is_no_node_is_refused(table, graph, target):
    for source in (table, OnDemand(graph, 2)):
        with pytest.raises(TransitionError, match="target"):
            source.row(target)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"num_steps": 0}, "num_steps is 0; expected a whole number from 1 on"),
        ({"kind": "steps"}, "kind is 'steps'"),
        ({"num_steps": 2.0}, "num_steps is 2.0"),
        ({"num_steps": True}, "num_steps is True"),
        ({"max_candidates": 0}, "max_candidates is 0"),
        ({"max_candidates": 10**30}, "max_candidates is 1000"),
        ({"device": "meta"}, "cannot be used"),
        ({"num_threads": 0}, "num_threads is 0"),
        ({"device": "abacus"}, "the device 'abacus' cannot be used"),
    ],
)
def test_settings_that_make_no_sense_are_refused(graph, setting, message):
    with pytest.raises(TransitionError, match=message):
        Transitions.build(graph, **setting)


def test_more_steps_than_the_graph_is_wide_add_nothing():
    line = Graph.from_edges([0, 1], [1, 2])
    assert entries(Transitions.build(line, 2), 0).keys() == {(0, 0, 0), (1, 1, 1), (2, 2, 5)}
    assert Transitions.build(line, 9).num_entries == Transitions.build(line, 2).num_entries


def test_path_ids_take_the_space_they_need(graph):
    assert one_table(Transitions.build(graph, 2)).path.dtype == np.int16
    assert one_table(Transitions.build(graph, 7, targets=[0], max_candidates=5)).path.dtype == np.int32
    assert OnDemand(graph, 2).row(0).path.dtype == np.int64


@pytest.mark.parametrize("shard_entries", [1, 1_000, 10**9])
def test_a_saved_table_opens_to_the_same_rows(tmp_path, graph, table, shard_entries):
    table.save(tmp_path / "t", shard_entries=shard_entries)
    opened = Transitions.open(tmp_path / "t", verify=True)
    assert len(opened.shards) == (1 if shard_entries == 10**9 else 300 if shard_entries == 1 else len(opened.shards))
    assert opened.setting == table.setting
    everything = np.arange(graph.num_nodes)
    assert same_bytes(opened.rows(everything[::-1]), table.rows(everything[::-1]))


def test_an_opened_table_is_mapped_and_read_only(tmp_path, table):
    table.save(tmp_path / "t")
    (shard,) = Transitions.open(tmp_path / "t").shards
    base: Any = shard.probability
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        shard.probability[0] = 0


def test_names_targets_and_dropped_mass_survive_the_trip(tmp_path):
    graph = Graph.from_edges([0, 0, 0], [1, 2, 3], node_ids=["a", "b", "c", "d"], edge_type_names=["knows"])
    Transitions.build(graph, 1, targets=[0, 2], max_candidates=1).save(tmp_path / "t")
    opened = Transitions.open(tmp_path / "t")
    assert opened.targets is not None and opened.targets.tolist() == [0, 2]
    assert opened.setting.relation_names == ("self", "knows")
    assert opened.setting.node_ids is not None and opened.setting.node_ids.tolist() == ["a", "b", "c", "d"]
    assert opened.row(0).dropped_mass == pytest.approx([0, 2 / 3])


def test_a_table_of_nothing_can_be_saved(tmp_path, graph):
    Transitions.build(graph, 2, targets=[]).save(tmp_path / "t")
    assert Transitions.open(tmp_path / "t").num_rows == 0


def test_a_damaged_table_is_refused(tmp_path, table):
    table.save(tmp_path / "t")
    path = tmp_path / "t" / "shard-00000-node.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="sha256"):
        Transitions.open(tmp_path / "t", verify=True)
    path.write_bytes(content[:-4])
    with pytest.raises(StoreError, match="truncated or damaged"):
        Transitions.open(tmp_path / "t")


def test_a_table_is_not_a_graph(tmp_path, graph, table):
    table.save(tmp_path / "t")
    graph.save(tmp_path / "g")
    with pytest.raises(StoreError, match="holds 'transitions', not 'graph'"):
        Graph.open(tmp_path / "t")
    with pytest.raises(StoreError, match="holds 'graph', not 'transitions'"):
        Transitions.open(tmp_path / "g")


def test_the_manifest_says_what_was_built(tmp_path, table):
    table.save(tmp_path / "t")
    manifest = json.loads((tmp_path / "t" / "manifest.json").read_text())
    wanted = {"num_steps": 2, "kind": "walk", "max_candidates": None, "num_nodes": 300, "num_shards": 1}
    assert wanted.items() <= manifest["parameters"].items()


def test_graphs_that_differ_have_tables_that_say_so(table):
    other = Transitions.build(random_graph(300, 1_200, 2, seed=12, inverse=True), 2)
    assert other.setting.graph_fingerprint != table.setting.graph_fingerprint


def test_progress_ends_at_one_and_never_falls(graph):
    seen: list[float] = []
    Transitions.build(graph, 2, num_threads=2, progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1.0


@pytest.mark.parametrize("max_candidates", [None, 5, (2, 30)])
def test_rows_are_the_same_whether_they_are_counted_first_or_not(graph, max_candidates, monkeypatch):
    monkeypatch.setattr(build, "SMALL_WALKS", 100)
    at_once = Transitions.build(graph, 2, max_candidates=max_candidates, num_threads=2).shards[0]
    monkeypatch.setattr(build, "fits", lambda num_bytes: False)
    counted = Transitions.build(graph, 2, max_candidates=max_candidates, num_threads=2).shards[0]
    for name in ("indptr", "node", "path", "probability", "dropped_mass"):
        assert np.array_equal(getattr(at_once, name), getattr(counted, name)), name


def test_an_interrupted_build_begins_nothing_more_and_the_next_one_is_whole(graph, table, monkeypatch):
    monkeypatch.setattr(build, "SMALL_WALKS", 100)
    begun: list[int] = []
    interrupted, fill_rows = threading.Event(), kernels.fill_rows

    def filled(*arguments) -> None:
        begun.append(1)
        if len(begun) > 1:
            interrupted.wait(10)  # or small blocks would all be done before the interrupt is seen
        fill_rows(*arguments)

    def interrupt(share: float) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "fill_rows", filled)
    with pytest.raises(KeyboardInterrupt):
        Transitions.build(graph, 2, num_threads=2, progress=interrupt)
    at_the_end = len(begun)
    assert np.array_equal(Transitions.build(graph, 2, num_threads=2).shards[0].probability, table.shards[0].probability)
    assert len(begun) - at_the_end > at_the_end  # the blocks of a whole build


def test_an_error_leaves_no_marks_for_later_rows(graph, table, monkeypatch):
    source = OnDemand(graph, 2, num_threads=1)
    fill_rows = kernels.fill_rows

    def breaks(adjacency, workspace, *arguments) -> None:
        workspace.seen[:] = 2**64 - 1
        raise MemoryError

    source.rows([0])
    monkeypatch.setattr(kernels, "fill_rows", breaks)
    with pytest.raises(MemoryError):
        source.rows([1])
    monkeypatch.setattr(kernels, "fill_rows", fill_rows)
    assert np.array_equal(source.row(1).probability, table.row(1).probability)


def test_a_forked_process_has_threads_of_its_own():
    program = """
import os, sys
import numpy as np
from gatas.transitions import OnDemand, build
from tests.transitions.test_properties import random_graph

build.SMALL_WALKS = 100
source = OnDemand(random_graph(300, 1_200, 2, seed=1, inverse=True), 2, num_threads=2)
before = source.rows(np.arange(300)).probability
child = os.fork()
if not child:
    os._exit(0 if np.array_equal(source.rows(np.arange(300)).probability, before) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=120, check=False).returncode == 0


@pytest.mark.parametrize(
    "change",
    [
        {"num_shards": -1},
        {"num_shards": True},
        {"num_steps": ""},
        {"num_steps": 5},
        {"relation_names": []},
        {"relation_names": 2},
        {"kind": [1, 2]},
        {"max_candidates": "x"},
        {"num_nodes": 10**30},
    ],
)
def test_a_manifest_that_does_not_fit_its_files_is_refused(tmp_path, table, change):
    table.save(tmp_path / "t")
    path = tmp_path / "t" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("sha256")
    manifest["parameters"] |= change
    canonical = json.dumps(manifest, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    path.write_text(json.dumps(manifest | {"sha256": hashlib.sha256(canonical).hexdigest()}))
    with pytest.raises(StoreError):
        Transitions.open(tmp_path / "t")
