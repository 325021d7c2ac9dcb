"""The end of a job whose folder is not kept: a note that its result is written, and then the folder goes, the note last.

A job that is killed meanwhile is finished: the next command finds the note, says so, and removes the rest.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from gatas.errors import StoreError
from gatas.files import read_signed_json, remove, remove_folder, signed_json, write_file

NOTE, LOCK = "finished.json", ".lock"


def write_note(folder: Path, key: str, written: dict[str, Any]) -> None:
    """Note that the result of a job is written, and what was said of it."""
    write_file(folder / NOTE, signed_json({"key": key, "written": written}))


def read_note(folder: Path) -> dict[str, Any] | None:
    """Return the key of a finished job and what was said of its result; None without a note that is whole."""
    try:
        note = read_signed_json(folder / NOTE)
    except StoreError:
        return None
    return note if {"key", "written"} <= set(note) else None


def remove_finished(folder: Path, key: str, written: dict[str, Any]) -> None:
    """Remove the folder of a job that is finished. Where no note can be written, it goes under another name first."""
    try:
        write_note(folder, key, written)
    except OSError:
        remove_folder(folder)
        return
    with suppress(OSError):  # what stays is removed by the next command
        remove_but(folder, NOTE)
        (folder / NOTE).unlink()
        folder.rmdir()


def clear_for_another(folder: Path, data: Path) -> None:
    """Remove what is left of a finished job from a folder that another begins in, with its graph there at `data`."""
    remove_but(folder, NOTE, LOCK, *(path.name for path in folder.iterdir() if path == data))
    (folder / NOTE).unlink(missing_ok=True)


def remove_but(folder: Path, *kept: str) -> None:
    for path in sorted(folder.iterdir()):
        if path.name not in kept:
            remove(path)
