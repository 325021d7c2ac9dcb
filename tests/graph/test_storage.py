"""Saved graphs: written whole or not at all, mapped on opening, refused when damaged."""

import errno
import hashlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatas.errors import GatasError, StoreError
from gatas.graph import Graph
from gatas.graph.saved import graph_fingerprint
from tests.graph.damage import damaged_at_every_seventh_byte, flip, forge, is_mapped, set_at


def full_graph(*, ids: list[str] | list[int] | None = None) -> Graph:
    return Graph.from_edges(
        [0, 0, 1, 2, 0],
        [1, 1, 0, 3, 0],
        [0, 0, 1, 0, 1],
        weight=[0.5, 1.5, 2.0, 4.0, 1.0],
        node_ids=ids or ["ann", "böb", "", "日本"],
        edge_type_names=["likes", "knows⁻¹"],
        inverse_of=[1, 0],
    )


@pytest.fixture
def folder(tmp_path):
    full_graph().save(tmp_path / "graph")
    return tmp_path / "graph"


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("ids", [None, [10, -5, 2**62, 0]])
def test_a_graph_comes_back_as_it_was_saved(tmp_path, ids, verify):
    graph = full_graph(ids=ids)
    graph.save(tmp_path / "graph")
    opened = Graph.open(tmp_path / "graph", verify=verify)
    assert graph_fingerprint(opened) == graph_fingerprint(graph)
    assert opened.node_ids is not None and graph.node_ids is not None
    assert opened.node_ids.tolist() == graph.node_ids.tolist()
    assert (opened.edge_type_names, opened.inverse_of) == (("likes", "knows⁻¹"), (1, 0))
    assert opened.num_repeated == 1 and opened.original_edge_types == [0]
    assert opened.index_of(graph.id_of(3)) == 3


@pytest.mark.parametrize(
    ("direction", "inverse_of"),
    [({}, (-1, -1)), ({"inverse": True}, (2, 3, 0, 1)), ({"undirected": True}, (0, 1)), ({"inverse_of": [1, 0]}, (1, 0))],
)
def test_which_type_is_the_inverse_of_which_is_saved(tmp_path, direction, inverse_of):
    graph = Graph.from_edges([0, 1], [1, 2], [0, 1], edge_type_names=["rate", "rate⁻¹"], **direction)
    graph.save(tmp_path / "graph")
    opened = Graph.open(tmp_path / "graph")
    assert opened.inverse_of == graph.inverse_of == inverse_of
    assert opened.original_edge_types == graph.original_edge_types


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), max_size=12),
    weighted=st.booleans(),
    ids=st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=5, max_size=5, unique=True),
)
def test_any_graph_survives_a_round_trip(tmp_path, edges, weighted, ids):
    source, kind, target = np.array(edges, np.int64).reshape(-1, 3).T
    weight = np.arange(1, len(edges) + 1) if weighted else None
    graph = Graph.from_edges(source, target, kind, num_nodes=5, num_edge_types=3, weight=weight, node_ids=ids)
    graph.save(tmp_path / "graph", overwrite=True)
    assert graph_fingerprint(Graph.open(tmp_path / "graph", verify=True)) == graph_fingerprint(graph)


def test_opened_arrays_are_read_only_maps_and_not_copies(folder):
    graph = Graph.open(folder)
    assert graph.node_ids is not None
    arrays = [graph.indptr, graph.neighbour, graph.edge_type, graph.weight, graph.node_ids.values, graph.node_ids.bytes]
    for array in arrays:
        assert isinstance(array, np.ndarray) and is_mapped(array) and not array.flags.writeable


def test_a_graph_can_be_saved_over_the_folder_it_is_mapped_from(folder):
    graph = Graph.open(folder)
    before = graph_fingerprint(graph)
    graph.save(folder, overwrite=True)
    assert graph_fingerprint(Graph.open(folder, verify=True)) == before == graph_fingerprint(graph)


def npy_files():
    names = ("indptr", "neighbour", "edge_type", "weight", "node_id_offsets", "node_id_bytes")
    return sorted(f"{name}.npy" for name in names)


def test_every_file_of_a_graph_is_damaged_below(folder):
    assert npy_files() == sorted(path.name for path in folder.glob("*.npy"))


@pytest.mark.parametrize("name", [*npy_files(), "manifest.json"])
def test_a_file_truncated_anywhere_is_refused(folder, name):
    content = (folder / name).read_bytes()
    for sixteenth in range(16):
        (folder / name).write_bytes(content[: len(content) * sixteenth // 16])
        with pytest.raises(StoreError, match=name if name.endswith(".npy") else "manifest.json is damaged"):
            Graph.open(folder)


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
@pytest.mark.parametrize("name", npy_files())
def test_a_flipped_byte_is_refused_when_verified_and_never_crashes_when_not(folder, name):
    for _ in damaged_at_every_seventh_byte(folder / name):
        with pytest.raises(StoreError, match=rf"{name} does not have the sha256"):
            Graph.open(folder, verify=True)
        try:
            opened = Graph.open(folder)
        except StoreError:
            pass  # most are noticed without reading every byte
        else:
            graph_fingerprint(opened)
    assert Graph.open(folder, verify=True)


def test_any_flipped_byte_in_the_manifest_is_refused(folder):
    whitespace = b" \n"
    for at, byte in enumerate((folder / "manifest.json").read_bytes()):
        if byte in whitespace:
            continue
        flip(folder / "manifest.json", at, 0x01)
        with pytest.raises(StoreError):
            Graph.open(folder)
        flip(folder / "manifest.json", at, 0x01)


@pytest.mark.parametrize("name", npy_files())
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(StoreError, match=rf"{name} is missing. Restore it"):
        Graph.open(folder)


def test_an_extra_file_is_ignored(folder):
    (folder / "notes.txt").write_text("mine")
    (folder / "other.npy").write_bytes(b"")
    assert Graph.open(folder, verify=True).num_nodes == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_at("format", value=3), "has format 3, but this version of gatas reads format 2. Update gatas"),
        (set_at("format", value="1"), "has format '1', but this version of gatas reads format 2"),
        (set_at("kind", value="transitions"), "holds 'transitions', not 'graph'"),
        (set_at("files", value=[]), "manifest.json is damaged"),
        (set_at("files", "indptr.npy", value={}), "describes indptr.npy incompletely"),
        (set_at("files", "indptr.npy", value="x"), "describes indptr.npy incompletely"),
        (set_at("files", "indptr.npy", "bytes", value="x"), "describes indptr.npy incompletely"),
        (set_at("files", "indptr.npy", "dtype", value="object"), "gives indptr.npy the type 'object'"),
        (set_at("files", "indptr.npy", "shape", value=[-1]), r"gives indptr.npy the type 'int64' and shape \(-1,\)"),
        (set_at("files", "indptr.npy", "shape", value=[4]), "indptr.npy holds int64"),
        (set_at("files", "indptr.npy", "shape", value=[2**41]), "indptr.npy holds int64"),
        (set_at("files", "indptr.npy", "dtype", value="float64"), "indptr.npy holds int64"),
        (lambda manifest: manifest["files"].pop("indptr.npy"), "lists no indptr.npy"),
        (lambda manifest: manifest["files"].pop("node_id_bytes.npy"), "is damaged"),
        (lambda manifest: manifest["parameters"].pop("num_edge_types"), "lacks the parameter 'num_edge_types'"),
        (set_at("parameters", "num_edge_types", value="many"), "is damaged"),
        (set_at("parameters", "edge_type_names", value=7), "is damaged"),
        (lambda manifest: manifest["parameters"].pop("inverse_of"), "lacks the parameter 'inverse_of'"),
        (set_at("parameters", "inverse_of", value=[1, 1]), r"is damaged: inverse_of\[0\] is 1"),
        (set_at("parameters", "inverse_of", value=None), "is damaged"),
        (set_at("parameters", "inverse_of", value=["x", "y"]), "is damaged"),
        *(
            (set_at("files", name, value={"dtype": "int64", "shape": [1], "bytes": 1, "sha256": ""}), "lists a file named")
            for name in ("../secret.npy", "/etc/secret.npy", "a/b.npy", "..npy", ".npy", "a.pkl", "A.npy", "a\n.npy", "")
        ),
    ],
)
def test_a_forged_manifest_is_refused(folder, change, message):
    forge(folder, change)
    with pytest.raises(StoreError, match=message):
        Graph.open(folder)


def test_a_store_of_gatas_0_1_is_refused_in_one_line(folder):
    forge(folder, set_at("format", value=1))
    with pytest.raises(StoreError) as error:
        Graph.open(folder)
    message = str(error.value)
    assert "manifest.json has format 1, but this version of gatas reads format 2" in message
    assert "It was written by gatas 0.1: write it again, with `gatas ingest`" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["indptr.npy", "manifest.json"])
def test_links_are_not_followed(folder, tmp_path, name):
    shutil.move(folder / name, tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"is a link|has no manifest.json"):
        Graph.open(folder)


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def replaced(folder, name, content):
    """Put other bytes in the place of a file, and let the manifest vouch for them."""
    (folder / name).write_bytes(content)
    forge(folder, set_at("files", name, "bytes", value=len(content)))
    forge(folder, set_at("files", name, "sha256", value=hashlib.sha256(content).hexdigest()))


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "object"])
def test_pickled_objects_are_refused_and_never_executed(folder, tmp_path, verify, dtype):
    trap = tmp_path / "executed"
    np.save(tmp_path / "evil.npy", np.array([Payload(trap)], object), allow_pickle=True)
    replaced(folder, "indptr.npy", (tmp_path / "evil.npy").read_bytes())
    forge(folder, set_at("files", "indptr.npy", "dtype", value=dtype))
    forge(folder, set_at("files", "indptr.npy", "shape", value=[1]))
    with pytest.raises(StoreError):
        Graph.open(folder, verify=verify)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Payload(trap)))
    assert trap.exists()  # so the payload is a real one


def header(text: str) -> bytes:
    padded = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


@pytest.mark.parametrize("shape", [[5], [0], [2**41]])
@pytest.mark.parametrize(
    "content",
    [
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (2199023255552,), }") + bytes(40),  # 16 TB
        header("{'descr': '>i8', 'fortran_order': False, 'shape': (5,), }") + bytes(40),
        header("{'descr': '<i8', 'fortran_order': True, 'shape': (5,), }") + bytes(40),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (5L,), }") + bytes(40),  # as Python 2 wrote it
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (-5,), }") + bytes(40),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }") + bytes(39),
        header("{'descr': '<i8', 'fortran_order': False}") + bytes(40),
        header("__import__('os').abort()") + bytes(40),
        header("((((((((((") + bytes(40),
        header("'''") + bytes(40),
        b"\x93NUMPY\x03\x00" + bytes(100),
        b"PK\x03\x04" + bytes(100),
        b"",
    ],
    ids=range(13),
)
def test_a_header_that_lies_is_refused_without_allocating(folder, content, shape):
    replaced(folder, "indptr.npy", content)
    forge(folder, set_at("files", "indptr.npy", "shape", value=shape))
    with pytest.raises(StoreError, match=r"indptr.npy"):
        Graph.open(folder, verify=True)


@pytest.mark.parametrize("damage", ["missing", "a file", "empty", "nonsense", "not an object", "deep"])
def test_a_folder_that_is_no_graph_is_refused(tmp_path, damage):
    folder = tmp_path / "graph"
    if damage == "a file":
        folder.write_text("x")
    elif damage != "missing":
        folder.mkdir()
    content = {"nonsense": b"\xff{", "not an object": b"[1]", "deep": b"[" * 100_000}.get(damage)
    if content is not None:
        (folder / "manifest.json").write_bytes(content)
    with pytest.raises(StoreError):
        Graph.open(folder)


def test_an_existing_folder_is_refused_unless_it_is_to_be_overwritten(folder):
    before = graph_fingerprint(Graph.open(folder))
    other = Graph.from_edges([0], [1])
    with pytest.raises(StoreError, match=r"exists already. Choose another folder, or overwrite it"):
        other.save(folder)
    assert graph_fingerprint(Graph.open(folder)) == before
    other.save(folder, overwrite=True)
    assert Graph.open(folder, verify=True).num_nodes == 2
    assert sorted(path.name for path in folder.parent.iterdir()) == ["graph"]


@pytest.mark.parametrize("manifest", [None, '{"name": "a web page"}', "[]", "nonsense"])
def test_a_folder_that_gatas_did_not_write_is_never_overwritten(tmp_path, manifest):
    (tmp_path / "thesis.tex").write_text("years of work")
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(StoreError, match="is not a folder that gatas wrote"):
        Graph.from_edges([0], [1]).save(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_damaged_graph_may_be_overwritten(folder):
    manifest = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(manifest.replace('"num_repeated": 1', '"num_repeated": 2'))
    (folder / "indptr.npy").unlink()
    Graph.from_edges([0], [1]).save(folder, overwrite=True)
    assert Graph.open(folder, verify=True).num_nodes == 2


def test_a_link_to_a_graph_is_overwritten_where_it_points_to(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    Graph.from_edges([0], [1]).save(tmp_path / "link", overwrite=True)
    assert Graph.open(folder).num_nodes == 2 and (tmp_path / "link").is_symlink()


def fail_with(code):
    def failing(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    return failing


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("function", ["os.fsync", "numpy.lib.format.write_array", "pathlib.Path.mkdir"])
def test_a_failed_write_leaves_the_old_folder_as_it_was(folder, monkeypatch, function, code):
    before = graph_fingerprint(Graph.open(folder))
    monkeypatch.setattr(function, fail_with(code))
    with pytest.raises(StoreError, match=rf"could not be written: {os.strerror(code)}. Nothing was changed there"):
        Graph.from_edges([0], [1]).save(folder, overwrite=True)
    monkeypatch.undo()
    assert graph_fingerprint(Graph.open(folder, verify=True)) == before
    assert [path.name for path in folder.parent.iterdir()] == ["graph"]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_rename_leaves_the_old_folder_as_it_was(folder, monkeypatch, failing):
    before, rename, calls = graph_fingerprint(Graph.open(folder)), Path.rename, []

    def sometimes(path, target):
        calls.append(path)
        if len(calls) == failing:
            raise OSError(errno.EIO, "rename failed")
        return rename(path, target)

    monkeypatch.setattr("gatas.files.atomic.exchange", lambda one, other: False)  # as where the system cannot
    monkeypatch.setattr(Path, "rename", sometimes)
    with pytest.raises(StoreError, match=r"rename failed. Nothing was changed there"):
        Graph.from_edges([0], [1]).save(folder, overwrite=True)
    assert graph_fingerprint(Graph.open(folder, verify=True)) == before
    assert [path.name for path in folder.parent.iterdir()] == ["graph"]


def test_a_full_disk_is_noticed_before_anything_is_written(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10))
    with pytest.raises(StoreError, match="bytes and the disk has 10 free"):
        Graph.from_edges([0], [1]).save(tmp_path / "graph")
    assert not list(tmp_path.iterdir())


def test_a_writer_that_was_quicker_is_not_overwritten(tmp_path, monkeypatch):
    quick, late, fsync = Graph.from_edges([0], [1]), Graph.from_edges([0, 1], [1, 2]), os.fsync
    done: list[bool] = []

    def meanwhile(descriptor):
        if not done:
            done.append(True)
            quick.save(tmp_path / "graph")
        return fsync(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(StoreError, match="could not be written"):
        late.save(tmp_path / "graph")
    assert Graph.open(tmp_path / "graph", verify=True).num_nodes == 2


KILLED = """
import os, signal, sys
from gatas.files import atomic
from gatas.graph import Graph
if sys.argv[2] == "rename":
    atomic.exchange = lambda one, other: False  # as where the system cannot
name, at, calls = sys.argv[2], int(sys.argv[3]), []
def kill(*args):
    calls.append(args)
    if len(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args)
original = getattr(os, name)
setattr(os, name, kill)
Graph.from_edges([0, 1], [1, 2]).save(sys.argv[1], overwrite=True)
"""


def killed_while_saving(folder, function, at):
    process = subprocess.run([sys.executable, "-c", KILLED, str(folder), function, str(at)], check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("name", ["graph", "graph [1]*"])
def test_a_killed_write_leaves_no_folder_and_the_next_one_cleans_up(tmp_path, name):
    folder = tmp_path / name
    killed_while_saving(folder, "fsync", 2)
    assert not folder.exists() and len(list(tmp_path.iterdir())) == 1
    full_graph().save(folder)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert Graph.open(folder, verify=True).num_nodes == 4


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_write_killed_between_its_renames_loses_nothing(folder, overwrite, opened):
    before = graph_fingerprint(Graph.open(folder))
    killed_while_saving(folder, "rename", 2)
    assert not folder.exists()
    if opened:
        assert graph_fingerprint(Graph.open(folder)) == before
    new = Graph.from_edges([0], [1])
    if overwrite:
        new.save(folder, overwrite=True)
    else:
        with pytest.raises(StoreError, match="exists already"):
            new.save(folder)
    expected = graph_fingerprint(new) if overwrite else before
    assert graph_fingerprint(Graph.open(folder, verify=True)) == expected
    assert [path.name for path in folder.parent.iterdir()] == ["graph"]


def test_equal_graphs_have_equal_fingerprints_and_others_do_not():
    assert graph_fingerprint(full_graph()) == graph_fingerprint(full_graph())
    assert graph_fingerprint(full_graph()) != graph_fingerprint(full_graph(ids=[1, 2, 3, 4]))


def test_every_complaint_about_a_folder_is_a_gatas_error():
    assert issubclass(StoreError, GatasError)
