"""Ingested stores: the bytes that `Dataset.save` writes, from files of any number, in little memory, after any end."""

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gatas.datasets import Dataset
from gatas.datasets.generating import GraphRecipe, generate_graph
from gatas.datasets.ingest import ingest, work
from gatas.datasets.ingest.work import working_beside
from gatas.datasets.own import read_dataset
from gatas.errors import ConfigError, GatasError, GatasWarning, GraphError, StoreError
from gatas.graph import Graph, read_graph

MEMORY = 400 << 20
RATIOS: dict[str, Any] = {"ratios": {"train": 0.5, "valid": 0, "test": 0}, "seed": 3}


def contents(folder):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir()) if path.name[0] != "."
    }


def write(table, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ","))


def in_parts(table, folder, suffix, cuts):
    """A table as several files of one folder."""
    ends = [0, *sorted(cut % (table.num_rows + 1) for cut in cuts), table.num_rows]
    for number, (first, last) in enumerate(pairwise(ends)):
        if last > first or table.num_rows == 0:
            write(table.slice(first, last - first), folder / f"part-{number}{suffix}")
    return folder


@st.composite
def graphs(draw):
    """An edge table and a node table, of any kind that the settings allow."""
    num_nodes = draw(st.integers(6, 12))
    text = draw(st.booleans())
    order = draw(st.permutations(range(num_nodes)))
    names = [f"n{k}" if text else k * draw(st.sampled_from([1, 7])) for k in range(num_nodes)]
    names = names if len(set(names)) == num_nodes else (list("abcdefghijkl")[:num_nodes] if text else list(range(num_nodes)))
    ends = st.lists(st.sampled_from(names), min_size=20, max_size=60)
    source = draw(ends)
    target = draw(st.lists(st.sampled_from(names), min_size=len(source), max_size=len(source)))
    edges = {"source": source, "target": target}
    if draw(st.booleans()):
        kinds = draw(st.sampled_from([["cites", "writes", "b"], [0, 1, 2]]))
        edges["type"] = draw(st.lists(st.sampled_from(kinds), min_size=len(source), max_size=len(source)))
    if draw(st.booleans()):
        weights = st.sampled_from([0.1, 0.2, 0.3, 1.0, 2.5, 1e-3, 0.0])
        edges["weight"] = draw(st.lists(weights, min_size=len(source), max_size=len(source)))
    rows = [names[k] for k in order]
    people = {"id": rows, "label": [("red", "blue", None)[k % 3] for k in order]}
    people["label"][:4] = ["red", "blue", "red", "blue"]
    if draw(st.booleans()):
        people["split"] = ["train", "train", "valid", "val"] + [("test", "", "Train")[k % 3] for k in order[4:]]
    if draw(st.booleans()):
        people["type"] = ["person" if k % 2 else "paper" for k in order]
    if draw(st.booleans()):
        people["age"] = [float(k) / 3 for k in order]
    return edges, people


def read_and_ingested(folder, edges, people, suffix, cuts, **chosen):
    """The stores of both readers."""
    edges, nodes = pa.table(edges), pa.table(people)
    write(edges, folder / f"edges{suffix}")
    write(nodes, folder / f"nodes{suffix}")
    in_parts(edges, folder / "edges", suffix, cuts)
    in_parts(nodes, folder / "nodes", suffix, cuts[:1] if suffix == ".parquet" else ())
    read_dataset(folder / f"edges{suffix}", folder / f"nodes{suffix}", **chosen).save(folder / "read")
    ingest(folder / "edges", folder / "nodes", out=folder / "ingested", memory=MEMORY, **chosen)
    return folder / "read", folder / "ingested"


@settings(
    max_examples=25,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    tables=graphs(),
    suffix=st.sampled_from([".parquet", ".csv", ".tsv"]),
    cuts=st.lists(st.integers(0, 60), max_size=3),
    direction=st.sampled_from(["inverse", "undirected", "as given"]),
)
def test_an_ingested_store_has_the_bytes_of_one_that_was_read_and_saved(tmp_path_factory, tables, suffix, cuts, direction):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GatasWarning)
        folders = read_and_ingested(
            tmp_path_factory.mktemp("g"), tables[0], tables[1], suffix, cuts, direction=direction, **RATIOS
        )
    assert contents(folders[0]) == contents(folders[1])


def test_lists_and_categories_of_several_node_types_are_encoded_alike(tmp_path):
    edges = {"source": ["a", "b", "c"], "target": ["d", "e", "f"]}
    people = {
        "id": list("abcdef"),
        "type": ["p", "q"] * 3,
        "label": ["x", "y", "x", "y", "x", "y"],
        "split": ["train", "train", "valid", "valid", "test", "test"],
        "vector": [[1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0], [8.0, 9.0, 10.0], [0.0, 1.0], [2.0, 2.0, 2.0]],
        "city": ["Rome", None, "Oslo", None, "Rome", None],
        "age": [1, 2, 3, 4, 5, 6],
    }
    chosen: dict[str, Any] = {"features": ["vector", "city", "age"]}
    one, other = read_and_ingested(tmp_path, edges, people, ".parquet", [2], **chosen)
    assert contents(one) == contents(other)
    features = Dataset.open(other).features
    assert features is not None and features.shape == (6, 8)


def test_without_a_node_table_all_ids_are_nodes_in_ascending_order(tmp_path):
    edges = pa.table({"source": ["b", "ä", "b", "Z"], "target": ["a", "b", "a", "b"]})
    in_parts(edges, tmp_path / "edges", ".parquet", [2])
    write(edges, tmp_path / "edges.parquet")
    ingest(tmp_path / "edges", out=tmp_path / "store", memory=MEMORY, direction="undirected")
    read = read_graph(tmp_path / "edges.parquet", undirected=True)
    graph = Graph.open(tmp_path / "store", verify=True)
    assert [graph.id_of(node) for node in range(4)] == ["Z", "a", "b", "ä"]
    assert np.array_equal(graph.neighbour, read.neighbour) and graph.num_repeated == read.num_repeated == 1


def test_more_triplets_than_one_number_holds_are_sorted_by_columns(tmp_path, monkeypatch):
    from gatas.datasets.ingest import sorting

    generator = np.random.default_rng(0)
    edges = {name: generator.integers(0, 30, 500) for name in ("source", "target")} | {"weight": generator.random(500) + 0.1}
    people = {"id": list(range(30)), "label": [k % 2 for k in range(30)]}
    monkeypatch.setattr(sorting.Order, "packed", property(lambda self: False))
    monkeypatch.setattr(sorting, "BATCH_ROWS", 64)
    with pytest.warns(GatasWarning, match="different weights"):
        one, other = read_and_ingested(tmp_path, edges, people, ".parquet", [100], direction="undirected")
    assert contents(one) == contents(other)


BAD: dict[str, Any] = {
    "a missing id": ({"source": [1, None, None]}, {}, r"edges.parquet, row 2, column 'source': the id is missing.*\(2 rows"),
    "a blank id": ({"source": ["a", " b", "c"]}, {}, "row 2, column 'source': the id is ' b', which is empty or has spaces"),
    "a float id": (
        {"source": [1.0, 2.0, 3.0]},
        {},
        r"row 1, column .source.: ids are of type double \(first value 1.0\); expected integers",
    ),
    "a large id": ({"source": pa.array([1, 2**63, 3], pa.uint64())}, {}, f"row 2, column 'source': {2**63} does not fit"),
    "a NaN weight": ({"weight": [1.0, float("nan"), float("nan")]}, {}, r"row 2, column 'weight': weight is nan.*\(2 rows"),
    "a negative weight": ({"weight": [1.0, 1.0, -2.0]}, {}, "row 3, column 'weight': weight is -2.0"),
    "a missing weight": ({"weight": [1.0, None, 1.0]}, {}, "row 2, column 'weight': the weight is missing"),
    "a weight of text": ({"weight": ["1", "2", "3"]}, {}, "row 1, column 'weight': '1' is string; expected numbers"),
    "an unknown node": ({"target": [2, 77, 78]}, {}, r"row 2, column 'target': the node 77 is not in .*\(2 ends"),
    "ids of two kinds": (
        {"target": ["1", "2", "3"]},
        {},
        "ids must be of one kind, but sources are integers, targets are text",
    ),
    "a column that is named but absent": ({}, {"weight": "wheight"}, "has no column 'wheight'"),
    "a setting that is unknown": ({}, {"wieght": "w"}, "Did you mean 'weight'"),
    "a task for links": ({}, {"task": "link prediction"}, "holds all edges"),
    "labels that are no column": ({}, {"label": "topic"}, "has no column 'topic'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_counts_and_the_first_rows(case, tmp_path):
    changed, chosen, said = BAD[case]
    write(pa.table({"source": [1, 2, 3], "target": [2, 3, 1]} | changed), tmp_path / "edges.parquet")
    ids = ["a", "b", "c"] if case == "a blank id" else [1, 2, 3]
    write(pa.table({"id": ids, "label": ["x", "y", "x"]}), tmp_path / "nodes.parquet")
    with pytest.raises(GatasError, match=said):
        ingest(tmp_path / "edges.parquet", tmp_path / "nodes.parquet", out=tmp_path / "out", memory=MEMORY, **chosen)
    assert not (tmp_path / "out").exists()


BAD_TEXT = {
    "decimals": ("source,target\n1,2\n1.0,3\n", "row 2, column 'source': '1.0' is not a whole number"),
    "a ragged row": ("source,target\n1,2\n1\n", "edges.csv, row 2: 1 values, but there are 2 columns"),
    "a weight that is no number": ("source,target,weight\n1,2,heavy\n", "row 1, column 'weight': 'heavy' is not a number"),
    "an empty id": ("source,target\n1,2\n,2\n", "row 2, column 'source': the id is ''"),
    "another separator": ("source;target\n1;2\n", "separated by ';'"),
    "a column twice": ("source,source,target\n1,1,2\n", "2 columns named 'source'"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text_is_refused(case, tmp_path):
    content, said = BAD_TEXT[case]
    (tmp_path / "edges.csv").write_text(content)
    with pytest.raises(GraphError, match=said):
        ingest(tmp_path / "edges.csv", out=tmp_path / "out", memory=MEMORY)


def test_a_node_twice_in_the_node_table_is_refused(tmp_path):
    write(pa.table({"source": [1], "target": [2]}), tmp_path / "edges.parquet")
    write(pa.table({"id": [1, 2, 1], "label": ["x", "y", "x"]}), tmp_path / "nodes.parquet")
    with pytest.raises(GraphError, match=r"row 3, column .id.: duplicate id 1 \(also in row 1\); remove one"):
        ingest(tmp_path / "edges.parquet", tmp_path / "nodes.parquet", out=tmp_path / "out", memory=MEMORY)


def test_files_with_other_columns_are_refused(tmp_path):
    write(pa.table({"source": [1], "target": [2]}), tmp_path / "e" / "a.parquet")
    write(pa.table({"source": [1], "target": [2], "type": ["x"]}), tmp_path / "e" / "b.parquet")
    with pytest.raises(GraphError, match=r"b\.parquet has a column for the type of edges, but .*a\.parquet has none"):
        ingest(tmp_path / "e", out=tmp_path / "out", memory=MEMORY)


def test_a_folder_that_is_there_is_not_written_over(tmp_path):
    write(pa.table({"source": [1], "target": [2]}), tmp_path / "edges.parquet")
    with pytest.raises(StoreError, match="exists already"):
        ingest(tmp_path / "edges.parquet", out=tmp_path, memory=MEMORY)


def test_an_ingest_that_was_ended_while_it_tidied_up_is_done(tmp_path, monkeypatch):
    data, store = generated(tmp_path / "data", nodes=200, edges=1_000, train=0.5), tmp_path / "store"
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed_at(work.beside(store)))
        with pytest.raises(KeyboardInterrupt):
            ingest(data / "edges", data / "nodes", out=store)
    with pytest.raises(StoreError, match="exists already"):
        ingest(data / "edges", data / "nodes", out=store, direction="as given")  # another
    assert not ingest(data / "edges", data / "nodes", out=store)
    assert not work.beside(store).exists() and Graph.open(store, verify=True).num_nodes == 200
    assert not ingest(data / "edges", data / "nodes", out=store)


@pytest.mark.parametrize("at", ["note", "work folder"])
def test_an_ingest_that_is_done_is_known_again_and_any_other_is_refused(at, tmp_path, monkeypatch):
    data, store = generated(tmp_path / "data", nodes=200, edges=1_000, train=0.5), tmp_path / "store"
    with monkeypatch.context() as patch:
        if at == "note":
            patch.setattr(work, "NOTE", "nowhere/at/all")
        else:
            patch.setattr(shutil, "rmtree", killed_at(work.beside(store)))
        with pytest.raises((StoreError, KeyboardInterrupt)):
            ingest(data / "edges", data / "nodes", out=store, threads=1)
    assert not ingest(data / "edges", data / "nodes", out=store, threads=2)
    before = contents(store)
    assert not ingest(data / "edges", data / "nodes", out=store) and contents(store) == before
    with pytest.raises(StoreError, match="exists already, and is not of an ingest of these files with these settings"):
        ingest(data / "edges", data / "nodes", out=store, direction="as given")
    os.utime(next((data / "edges").iterdir()), ns=(1, 1))
    with pytest.raises(StoreError, match="exists already"):
        ingest(data / "edges", data / "nodes", out=store)


def killed_at(folder):
    remove = shutil.rmtree

    def rmtree(path, **options):
        if Path(path) == folder:
            raise KeyboardInterrupt
        remove(path, **options)

    return rmtree


def test_an_empty_folder_and_too_little_memory_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(GraphError, match="holds no table"):
        ingest(tmp_path / "empty", out=tmp_path / "out")
    with pytest.raises(GraphError, match="300 MB at least"):
        ingest(tmp_path / "empty", out=tmp_path / "out", memory=1 << 20)


def test_stages_of_other_files_are_not_gone_on_from(tmp_path):
    edges = tmp_path / "edges.parquet"
    write(pa.table({"source": [1, 2], "target": [2, None]}), edges)
    with pytest.raises(GraphError, match="the id is missing"):
        ingest(edges, out=tmp_path / "out", memory=MEMORY)
    assert (tmp_path / ".out.ingest" / "edges-000000").is_dir()
    write(pa.table({"source": [1, 2], "target": [2, 3]}), edges)
    ingest(edges, out=tmp_path / "out", memory=MEMORY)
    assert Graph.open(tmp_path / "out").num_nodes == 3
    assert not (tmp_path / ".out.ingest").exists()


def test_a_setting_of_own_data_must_be_known(tmp_path):
    write(pa.table({"source": [1], "target": [2]}), tmp_path / "edges.parquet")
    chosen: Any = {"direction": "backwards"}
    with pytest.raises(ConfigError, match="direction"):
        ingest(tmp_path / "edges.parquet", out=tmp_path / "out", memory=MEMORY, **chosen)


INGEST = """
import resource, sys
from pathlib import Path
from gatas.datasets.ingest import ingest
import duckdb  # libraries first: the limit is on what the work takes
if int(sys.argv[4]):
    held = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (held + int(sys.argv[4]), held + int(sys.argv[4])))
nodes = Path(sys.argv[1]) / "nodes"
ingest(Path(sys.argv[1]) / "edges", nodes, out=sys.argv[2], memory=int(sys.argv[3]), threads=2, direction="undirected")
"""


def in_process(data, out, memory, limit=0):
    """An ingest in a process of its own, which may be given no more than `limit` bytes beyond what it starts with."""
    return subprocess.Popen(
        [sys.executable, "-c", INGEST, data, out, str(memory), str(limit)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # the usual one reserves a GB, and uses little of it
    )


def generated(folder, **settings):
    recipe = GraphRecipe(**{"features": 4, "train": 0.01, "valid": 0.01, "test": 0.01, **settings})
    generate_graph(folder, recipe, part_rows=1 << 20)
    return folder


def finished(process):
    _, said = process.communicate()
    assert process.returncode == 0, said


def test_edges_several_times_larger_than_memory_are_sorted_within_it(tmp_path):
    # 3,000,000 edges in both directions, as triplets of int64: 144 MB. DuckDB gets 72 MB of the 300.
    data = generated(tmp_path / "data", nodes=20_000, edges=3_000_000)
    finished(in_process(data, tmp_path / "out", 300 << 20, limit=300 << 20))
    assert Graph.open(tmp_path / "out", verify=True).num_nodes == 20_000


@pytest.mark.slow
def test_edges_many_times_larger_than_memory_are_sorted_within_it(tmp_path):
    # 25,000,000 edges in both directions, as triplets of int64: 1.2 GB, four times what is allowed. The limit counts stacks
    # and arenas that are reserved and not used, and DuckDB may exceed its own for a moment: 128 MB more.
    data = generated(tmp_path / "data", nodes=200_000, edges=25_000_000)
    finished(in_process(data, tmp_path / "out", 300 << 20, limit=428 << 20))
    assert Graph.open(tmp_path / "out").num_nodes == 200_000


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_a_killed_ingest_goes_on_where_it_was_and_gives_the_same_bytes(tmp_path, kills):
    data = generated(tmp_path / "data", nodes=5_000, edges=1_500_000, text_ids=True)
    started = time.monotonic()
    finished(in_process(data, tmp_path / "undisturbed", MEMORY))
    seconds = time.monotonic() - started
    generator, out = np.random.default_rng(kills), tmp_path / "killed"
    for _ in range(kills):
        process = in_process(data, out, MEMORY)
        with suppress(subprocess.TimeoutExpired):
            process.wait(generator.uniform(0.2, 1.0) * seconds)
        process.kill()
        process.communicate()
        if out.exists():
            break
    if not out.exists():
        finished(in_process(data, out, MEMORY))
    assert contents(out) == contents(tmp_path / "undisturbed")
    assert not (tmp_path / ".killed.ingest").exists() or process.returncode


def full_disk(*_):
    raise OSError(28, "No space left on device")


def test_stages_that_are_done_are_not_done_again(tmp_path, monkeypatch):
    write(pa.table({"source": ["a", "b"], "target": ["b", "c"]}), tmp_path / "edges.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module(ingest.__module__), "write_store", full_disk)
        with pytest.raises(StoreError, match=r"No space left on device.* What was done so far is kept"):
            ingest(tmp_path / "edges.parquet", out=tmp_path / "out", memory=MEMORY)

    def forbidden(*_):
        raise AssertionError("done before")

    for name in ("copy_file", "find_types", "find_ids", "write_csr"):
        monkeypatch.setattr(importlib.import_module(ingest.__module__), name, forbidden)
    ingest(tmp_path / "edges.parquet", out=tmp_path / "out", memory=MEMORY)
    assert Graph.open(tmp_path / "out").num_nodes == 3


@pytest.mark.parametrize("damage", [lambda content: content[:-1] + bytes([content[-1] ^ 1]), lambda content: content[:-1]])
def test_stages_that_were_damaged_are_done_again(tmp_path, monkeypatch, damage):
    write(pa.table({"source": ["a", "b"], "target": ["b", "c"]}), tmp_path / "edges.parquet")
    ingest(tmp_path / "edges.parquet", out=tmp_path / "undisturbed", memory=MEMORY)
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module(ingest.__module__), "write_store", full_disk)
        with pytest.raises(StoreError):
            ingest(tmp_path / "edges.parquet", out=tmp_path / "out", memory=MEMORY)
    stored = [path for path in (tmp_path / ".out.ingest").glob("*/*") if path.stat().st_size and path.name != "facts.json"]
    assert len({path.parent for path in stored}) > 3
    for path in stored:
        path.write_bytes(damage(path.read_bytes()))
    ingest(tmp_path / "edges.parquet", out=tmp_path / "out", memory=MEMORY)
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")


def test_two_ingests_into_one_store_do_not_meet(tmp_path):
    write(pa.table({"source": ["a", "b"], "target": ["b", "c"]}), tmp_path / "edges.parquet")
    with (
        working_beside(tmp_path / "out", {}),
        pytest.raises(GraphError, match="another ingest is writing"),
    ):
        ingest(tmp_path / "edges.parquet", out=tmp_path / "out", memory=MEMORY)
