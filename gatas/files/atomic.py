"""Files and folders that are there with all of their content, or not at all.

They are written under a temporary name beside their own, synced, and then renamed: after any kill there is the old one or
the new one. A temporary name tells which process of which machine writes under it, so that what a writer which no longer
runs has left behind is removed by the next writer to the same place.
"""

import glob
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import psutil

from gatas.files.checksums import checksum_line, checksum_path
from gatas.files.exchange import exchange

OLD = "-old"
"""Ends the name of a folder that is being overwritten, for the moment between two renames where they cannot be exchanged."""


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Give a binary file to fill, which gets its name when all of it is on the disk."""
    temporary = _temporary_beside(path)
    remove_leftovers(path)
    try:
        with _synced_file(temporary) as file:
            yield file
        temporary.replace(path)
        _sync_path(path.absolute().parent)
    finally:
        _remove_file(temporary)


@contextmanager
def atomic_file_with_checksum(path: Path) -> Iterator[BinaryIO]:
    """Give a binary file to fill, which gets its name when all of it and its checksum are on the disk.

    The checksum is in a hidden file beside it, in the format of `sha256sum`.
    """
    temporary, beside = _temporary_beside(path), checksum_path(path)
    new_beside = temporary.with_name(f"{temporary.name}.sha256")
    remove_leftovers(path)
    try:
        with _synced_file(temporary) as file:
            yield file
        with _synced_file(new_beside) as file:
            file.write(checksum_line(temporary, path.name))
        beside.unlink(missing_ok=True)  # a checksum is never beside a file that it is not of
        temporary.replace(path)
        new_beside.replace(beside)
        _sync_path(path.absolute().parent)
    finally:
        _remove_file(temporary)
        _remove_file(new_beside)


def write_file(path: Path, content: bytes) -> None:
    """Write a file so that after any kill there is all of it, or what was there before."""
    with atomic_file(path) as file:
        file.write(content)


def append_to_file(path: Path, content: bytes) -> None:
    """Append to a file, and return when this is on the disk. A kill may leave a part of `content`."""
    with path.open("ab") as file:
        file.write(content)
        _sync_file(file)


@contextmanager
def atomic_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give an empty folder to fill, which gets its name when everything in it is on the disk.

    Without `overwrite` a folder of that name which has content, also one that appears meanwhile, raises `OSError`.
    """
    folder = folder.absolute()
    temporary = _temporary_beside(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    try:
        temporary.mkdir()
        yield temporary
        for path in (*temporary.rglob("*"), temporary):
            _sync_path(path)
        _rename_folder(temporary, folder, overwrite)
        try:
            _sync_path(folder.parent)
        except OSError:  # it is said that nothing was changed
            exchange(temporary, folder) if temporary.exists() else folder.rename(temporary)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _rename_folder(temporary: Path, folder: Path, overwrite: bool) -> None:
    if not (overwrite and folder.exists()):
        temporary.rename(folder)  # fails if another writer was quicker
    elif not exchange(temporary, folder):  # else the old one is now the temporary one, and goes
        _rename_in_two_steps(temporary, folder)


def _rename_in_two_steps(temporary: Path, folder: Path) -> None:
    old = folder.with_name(f"{temporary.name}{OLD}")
    folder.rename(old)
    try:
        temporary.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def recover_overwritten(folder: Path) -> None:
    """Give a folder its old content back if its overwriting was cut short by a kill between two renames.

    Where the system does not let us, as on a disk that is only read, it stays as it is.
    """
    if not folder.exists() and interrupted_overwrite(folder) is not None:
        with suppress(OSError):
            remove_leftovers(folder.absolute())


def interrupted_overwrite(folder: Path) -> Path | None:
    """The old content of a folder that is gone because overwriting it was cut short, if there is one beside it."""
    old = [left for left in _leftovers(folder) if left.name.endswith(OLD)]
    return old[0] if old and not folder.exists() else None


def _temporary_beside(path: Path) -> Path:
    """A name to write under, which tells whose it is."""
    return path.with_name(f".{path.name}.tmp-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}")


def remove_leftovers(path: Path) -> None:
    """Remove what writers that no longer run have left of earlier attempts at a file or folder."""
    for left in _leftovers(path):
        host, _, owner = left.name.removeprefix(f".{path.name}.tmp-").removesuffix(OLD).rpartition("-")[0].rpartition("-")
        if host != socket.gethostname() or not owner.isdecimal() or psutil.pid_exists(int(owner)):
            continue
        if left.name.endswith(OLD) and not path.exists():  # killed between the two renames: the old folder stands
            left.rename(path)
        else:
            remove(left)


def remove_leftovers_within(folder: Path) -> None:
    """Remove what writers that no longer run have left of anything in a folder."""
    for name in {left.name[1:].partition(".tmp-")[0] for left in folder.glob(".*.tmp-*")}:
        remove_leftovers(folder / name)


def remove_all_leftovers_within(folder: Path) -> None:
    """Remove every temporary file and folder in a folder that the caller has locked, so that nobody else writes in it."""
    for left in (*folder.glob(".*.tmp-*"), *folder.glob("*.tmp")):  # versions before 0.2 wrote under NAME.tmp
        remove(left)


def _leftovers(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.tmp-*"), reverse=True)  # the old folder first


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, as far as the system lets us."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder so that after any kill there is all of it under its name, or nothing."""
    temporary = _temporary_beside(folder)
    try:
        folder.rename(temporary)
    except OSError:
        temporary = folder
    shutil.rmtree(temporary, ignore_errors=True)


def _remove_file(path: Path) -> None:
    """Remove what is half written, if it is there: it is of no use, and takes room."""
    with suppress(OSError):
        path.unlink()


@contextmanager
def _synced_file(path: Path) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        yield file
        _sync_file(file)


def _sync_file(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_path(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the disk allows no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
