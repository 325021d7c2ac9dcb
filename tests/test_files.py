"""Durable files: the old or the new after any end, nothing left behind, and what is damaged is found."""

import ctypes
import errno
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from gatas.errors import StoreError
from gatas.files import (
    ChecksumWriter,
    FileLock,
    RunningChecksum,
    alone_in,
    append_to_file,
    atomic_file,
    atomic_file_with_checksum,
    atomic_folder,
    check_free_space,
    checksum,
    checksum_of,
    checksum_of_json,
    interrupted_overwrite,
    is_disk_full,
    read_signed_json,
    reason,
    recover_overwritten,
    remove_all_leftovers_within,
    remove_folder,
    remove_leftovers,
    remove_leftovers_within,
    signed_json,
    verify_checksums,
    verify_file,
    write_file,
)
from gatas.files.exchange import exchange

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # sha256 of b"abc", FIPS 180-2
FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(scope="module")
def dead_process():
    process = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    return int(process.stdout)


def left_by(process, path, ending=""):
    return path.with_name(f".{path.name}.tmp-{socket.gethostname()}-{process}-0123abcd{ending}")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refuse(*_):
    raise FULL


def fill(path, content):
    """A file with its checksum, a file, and a folder: each is written by its own function."""
    if path.name == "folder":
        with atomic_folder(path, overwrite=True) as folder:
            (folder / "inner").mkdir()
            (folder / "inner" / "file").write_bytes(content)
    elif path.name == "checked":
        with atomic_file_with_checksum(path) as file:
            file.write(content)
    else:
        write_file(path, content)


def content_of(path):
    return (path / "inner" / "file" if path.is_dir() else path).read_bytes()


KINDS = pytest.mark.parametrize("kind", ["file", "checked", "folder"])


@KINDS
def test_what_is_written_replaces_what_was_there(tmp_path, kind):
    for content in (b"old", b"new"):
        fill(tmp_path / kind, content)
        assert content_of(tmp_path / kind) == content
    assert names(tmp_path) == ([".checked.sha256", "checked"] if kind == "checked" else [kind])


@KINDS
def test_an_error_or_an_interrupt_while_writing_leaves_the_old_and_nothing_else(tmp_path, kind):
    fill(tmp_path / kind, b"old")
    before = names(tmp_path)
    writers: dict[str, Any] = {"file": atomic_file, "checked": atomic_file_with_checksum, "folder": atomic_folder}
    write = writers[kind]
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), write(tmp_path / kind):
            raise error
    assert content_of(tmp_path / kind) == b"old" and names(tmp_path) == before


@KINDS
def test_a_full_disk_leaves_the_old_and_nothing_else(tmp_path, monkeypatch, kind):
    fill(tmp_path / kind, b"old")
    before = names(tmp_path)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left on device") as error:
        fill(tmp_path / kind, b"new")
    assert is_disk_full(error.value)
    assert content_of(tmp_path / kind) == b"old" and names(tmp_path) == before


@pytest.mark.parametrize("existing", [False, True])
def test_a_folder_whose_name_cannot_be_synced_is_as_before(tmp_path, monkeypatch, existing):
    if existing:
        fill(tmp_path / "folder", b"old")
    fsync = os.fsync

    def refuse_the_last(descriptor):
        return refuse() if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path else fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_the_last)
    with pytest.raises(OSError, match="No space left on device"):
        fill(tmp_path / "folder", b"new")
    assert names(tmp_path) == ["folder"] * existing and (not existing or content_of(tmp_path / "folder") == b"old")


@pytest.fixture
def no_exchange(monkeypatch):
    """A system that cannot exchange two names at once."""
    monkeypatch.setattr("gatas.files.atomic.exchange", lambda one, other: False)


@pytest.mark.parametrize(("function", "kind"), [("replace", "file"), ("replace", "checked"), ("rename", "folder")])
def test_a_refused_rename_leaves_the_old(tmp_path, monkeypatch, no_exchange, function, kind):
    fill(tmp_path / kind, b"old")
    monkeypatch.setattr(os, function, refuse)
    with pytest.raises(OSError, match="No space left on device"):
        fill(tmp_path / kind, b"new")
    assert content_of(tmp_path / kind) == b"old"
    assert [name for name in names(tmp_path) if ".tmp" in name] == []


def test_two_folders_are_exchanged_at_once(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    assert exchange(tmp_path / "one", tmp_path / "other")
    assert names(tmp_path / "one") == ["other"] and names(tmp_path / "other") == ["one"]
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "missing")


def test_a_folder_that_is_overwritten_is_there_at_every_moment(tmp_path, monkeypatch):
    fill(tmp_path / "folder", b"old")
    there = []
    for name in ("rename", "replace", "rmdir", "unlink", "fsync"):
        call = getattr(os, name)

        def seeing(*args, call=call, **named):
            there.append((tmp_path / "folder").is_dir())
            return call(*args, **named)

        monkeypatch.setattr(os, name, seeing)
    fill(tmp_path / "folder", b"new")
    assert all(there) and len(there) > 5 and content_of(tmp_path / "folder") == b"new" and names(tmp_path) == ["folder"]


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.EIO])
def test_where_folders_cannot_be_exchanged_they_are_renamed(tmp_path, monkeypatch, code):
    def call(one, other):
        ctypes.set_errno(code)
        return -1

    monkeypatch.setattr("gatas.files.exchange._call", lambda: call)
    fill(tmp_path / "folder", b"old")
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            fill(tmp_path / "folder", b"new")
    else:
        fill(tmp_path / "folder", b"new")
    assert content_of(tmp_path / "folder") == (b"old" if code == errno.EIO else b"new") and names(tmp_path) == ["folder"]


@KINDS
@pytest.mark.parametrize("existing", [False, True])
def test_everything_is_synced_before_it_gets_its_name_and_the_name_after(tmp_path, monkeypatch, kind, existing):
    done, fsync = [], os.fsync

    def noted(descriptor):
        done.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        return fsync(descriptor)

    def noting(function):
        def renamed(source, target):
            done.append("renamed")
            return function(source, target)

        return renamed

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, noting(getattr(os, name)))
    monkeypatch.setattr("gatas.files.atomic.exchange", noting(exchange))
    monkeypatch.setattr(os, "fsync", noted)
    if existing:
        fill(tmp_path / kind, b"old")
        done.clear()
    fill(tmp_path / kind, b"new")
    first = done.index("renamed")
    assert done[-1] == tmp_path.name
    assert any(name.startswith(f".{kind}.tmp-") for name in done[:first])
    assert kind != "folder" or {"inner", "file"} <= set(done[:first])


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from gatas.files import atomic
from tests.test_files import fill
name, at, calls = sys.argv[2], int(sys.argv[3]), []
place = atomic if name == "exchange" else os
if name == "rename":
    atomic.exchange = lambda one, other: False  # as where the system cannot
def kill(*args, **named):
    calls.append(args)
    if len(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **named)
original = getattr(place, name)
setattr(place, name, kill)
fill(Path(sys.argv[1]), b"new")
"""


@pytest.mark.parametrize(
    ("kind", "function", "at"),
    [("file", "fsync", 1), ("file", "replace", 1), ("file", "fsync", 2), ("checked", "fsync", 2), ("checked", "replace", 2),
     ("folder", "fsync", 2), ("folder", "fsync", 4), ("folder", "exchange", 1), ("folder", "rename", 1),
     ("folder", "rename", 2), ("folder", "rmdir", 1)],
)  # fmt: skip
def test_after_a_kill_there_is_the_old_or_the_new_and_the_next_writer_tidies_up(tmp_path, kind, function, at):
    path, root = tmp_path / kind, str(Path(__file__).parents[1])
    fill(path, b"old")
    process = subprocess.run([sys.executable, "-c", KILLED, str(path), function, str(at), root], check=False, timeout=60)
    assert process.returncode == -9
    recover_overwritten(path)
    assert content_of(path) in (b"old", b"new")
    remove_leftovers(path)
    assert content_of(path) in (b"old", b"new")
    assert set(names(tmp_path)) <= {kind, f".{kind}.sha256"}
    fill(path, b"newer")
    assert content_of(path) == b"newer"


def test_a_folder_that_another_writer_has_filled_meanwhile_is_not_overwritten(tmp_path):
    with pytest.raises(OSError), atomic_folder(tmp_path / "folder") as late:
        (late / "file").write_text("late")
        with atomic_folder(tmp_path / "folder") as quick:
            (quick / "file").write_text("quick")
    assert (tmp_path / "folder" / "file").read_text() == "quick" and names(tmp_path) == ["folder"]


def test_only_what_dead_writers_of_this_machine_left_is_removed(tmp_path, dead_process):
    path = tmp_path / "file [1]*"
    for process in (dead_process, os.getpid()):
        left_by(process, path).write_bytes(b"half")
        left_by(process, path, ".sha256").write_bytes(b"half")
    elsewhere, other = (
        tmp_path / f".{path.name}.tmp-elsewhere-{dead_process}-0123abcd",
        left_by(dead_process, tmp_path / "other"),
    )
    elsewhere.mkdir()
    other.mkdir()
    write_file(path, b"content")
    kept = [left_by(os.getpid(), path, ending).name for ending in ("", ".sha256")]
    assert names(tmp_path) == sorted([path.name, elsewhere.name, other.name, *kept])
    remove_leftovers_within(tmp_path)
    assert names(tmp_path) == sorted([path.name, elsewhere.name, *kept])
    (tmp_path / "name.tmp").mkdir()
    remove_all_leftovers_within(tmp_path)
    assert names(tmp_path) == [path.name]


def test_a_folder_whose_overwriting_was_cut_short_comes_back(tmp_path, dead_process):
    folder = tmp_path / "folder"
    fill(folder, b"old")
    assert interrupted_overwrite(folder) is None
    shutil.move(folder, left_by(dead_process, folder, "-old"))
    left_by(dead_process, folder).mkdir()
    assert interrupted_overwrite(folder) == left_by(dead_process, folder, "-old")
    remove_leftovers(folder)
    assert content_of(folder) == b"old" and names(tmp_path) == ["folder"]


def test_a_folder_that_is_removed_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    fill(tmp_path / "folder", b"content")
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as killed before it
    remove_folder(tmp_path / "folder")
    (left,) = names(tmp_path)
    assert left.startswith(".folder.tmp-")
    monkeypatch.undo()
    fill(tmp_path / "folder", b"content")
    remove_folder(tmp_path / "folder")
    assert "folder" not in names(tmp_path)


def test_lines_are_appended_and_synced(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def noted(descriptor):
        synced.append(descriptor)
        return fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    for line in (b"1\n", b"2\n"):
        append_to_file(tmp_path / "lines", line)
    assert (tmp_path / "lines").read_bytes() == b"1\n2\n" and len(synced) == 2


def test_a_disk_without_room_is_noticed_before_writing(tmp_path, monkeypatch):
    check_free_space(tmp_path, 1)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10))
    with pytest.raises(OSError, match="it needs 1,000 bytes and the disk has 10 free") as error:
        check_free_space(tmp_path, 1000)
    assert is_disk_full(error.value)


def test_a_full_disk_is_known_also_as_a_cause():
    try:
        raise StoreError("could not be written") from FULL
    except StoreError as error:
        assert is_disk_full(error)
    assert not is_disk_full(OSError(errno.EIO, "Input/output error"))
    assert not is_disk_full(ValueError()) and not is_disk_full(None)


def test_a_reason_is_never_empty():
    assert reason(FULL) == "No space left on device"
    assert reason(OSError("12 requested and 3 written")) == "12 requested and 3 written"
    assert reason(OSError()) == "the disk may be full"


def test_one_process_at_a_time_holds_a_lock(tmp_path):
    with FileLock(tmp_path / "lock") as lock, FileLock(tmp_path / "lock") as other:
        lock.acquire()
        for acquire in (other.acquire, other.acquire_shared):
            with pytest.raises(BlockingIOError):
                acquire()
    with FileLock(tmp_path / "lock") as lock:
        lock.acquire()


def test_a_shared_lock_becomes_exclusive_when_the_others_are_gone(tmp_path):
    with FileLock(tmp_path / "lock") as lock:
        with FileLock(tmp_path / "lock") as other:
            lock.acquire_shared()
            other.acquire_shared()
            with pytest.raises(BlockingIOError):
                lock.acquire()
        lock.acquire()


def test_one_at_a_time_is_alone_in_a_folder(tmp_path):
    entered: list[str] = []

    def enter():
        with alone_in(tmp_path):
            entered.append("second")

    with alone_in(tmp_path):
        other = threading.Thread(target=enter)
        other.start()
        other.join(0.1)
        entered.append("first")
    other.join(10)
    assert entered == ["first", "second"]


def test_a_lock_ends_with_its_process(tmp_path):
    code = "import os, sys; from pathlib import Path; from gatas.files import FileLock; "
    code += "lock = FileLock(Path(sys.argv[1])); lock.acquire(); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "lock")], check=False).returncode == 9
    with FileLock(tmp_path / "lock") as lock:
        lock.acquire()


def test_checksums_are_sha256(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    running = RunningChecksum(b"a")
    running.update(memoryview(b"bc"))
    with (tmp_path / "written").open("wb") as file:
        writer = ChecksumWriter(file)
        assert writer.write(b"ab") + writer.write(b"c") == 3
    assert {checksum(tmp_path / "abc"), checksum_of(b"abc"), running.hexdigest(), writer.hexdigest()} == {ABC}
    assert (tmp_path / "written").read_bytes() == b"abc"


def test_equal_json_has_one_checksum():
    assert (
        checksum_of_json({"a": 1, "b": "é"}) == checksum_of_json({"b": "é", "a": 1}) == checksum_of('{"a":1,"b":"é"}'.encode())
    )


def test_signed_json_is_read_back_and_refused_when_any_byte_is_another(tmp_path):
    path, content = tmp_path / "signed.json", {"sums": {"é": ABC}, "number": 3}
    path.write_bytes(written := signed_json(content))
    assert read_signed_json(path) == content
    for damaged in (
        *(written[:k] + bytes([written[k] ^ 1]) + written[k + 1 :] for k in range(len(written))),
        b"",
        b"[]",
        b"{}",
    ):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="is damaged or missing"):
            read_signed_json(path)
    path.unlink()
    with pytest.raises(StoreError, match="is damaged or missing"):
        read_signed_json(path)


def test_files_that_are_missing_or_damaged_are_named(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    verify_checksums(tmp_path, {"abc": ABC})
    with pytest.raises(StoreError, match="lost is missing"):
        verify_checksums(tmp_path, {"abc": ABC, "lost": ABC})
    (tmp_path / "abc").write_bytes(b"abd")
    with pytest.raises(StoreError, match="abc does not have the sha256 it was written with"):
        verify_checksums(tmp_path, {"abc": ABC})


def test_a_file_with_its_checksum_beside_it_is_verified_by_sha256sum_and_by_us(tmp_path):
    path = tmp_path / "abc"
    with atomic_file_with_checksum(path) as file:
        file.write(b"abc")
    assert (tmp_path / ".abc.sha256").read_text() == f"{ABC}  abc\n"
    verify_file(path)
    path.write_bytes(b"abd")
    with pytest.raises(StoreError, match=r"abc or .abc.sha256 beside it is damaged"):
        verify_file(path)
    (tmp_path / ".abc.sha256").unlink()
    with pytest.raises(StoreError, match=r"has no .abc.sha256 beside it"):
        verify_file(path)
