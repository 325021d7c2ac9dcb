"""Checksums: what was written is known again, to the bit. All of them are sha256, in hexadecimal digits."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from gatas.errors import StoreError

Content = bytes | bytearray | memoryview


class RunningChecksum:
    """The sha256 of content that comes in pieces."""

    def __init__(self, content: Content = b"") -> None:
        self._digest = hashlib.sha256(content)

    def update(self, content: Content) -> None:
        self._digest.update(content)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


class ChecksumWriter(RunningChecksum):
    """A file to write to, with the sha256 of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file = file

    def write(self, content: Content) -> int:
        self.update(content)
        return self.file.write(content)


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_of(content: bytes) -> str:
    """The sha256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def canonical_json(content: Mapping[str, Any]) -> bytes:
    """One text for equal content, whatever the order of its keys."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def checksum_of_json(content: Mapping[str, Any]) -> str:
    """The sha256 of JSON content, whatever the order of its keys."""
    return checksum_of(canonical_json(content))


def signed_json(content: Mapping[str, Any]) -> bytes:
    """JSON that holds its own checksum, for `read_signed_json`."""
    signed = {**content, "sha256": checksum_of_json(content)}
    return (json.dumps(signed, indent=1, ensure_ascii=False) + "\n").encode()


def read_signed_json(path: Path) -> dict[str, Any]:
    """Read what `signed_json` gave; a file that is not as it was written is refused."""
    try:
        written = path.read_bytes()
        content: dict[str, Any] = json.loads(written)
        del content["sha256"]
        intact = signed_json(content) == written
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise StoreError(f"{path} is damaged or missing. Restore it from a copy, or write the folder again.")
    return content


def verify_checksum(path: Path, recorded: str) -> None:
    """Read every byte of a file, and refuse it if it is not as it was written."""
    if checksum(path) != recorded:
        raise StoreError(f"{path} does not have the sha256 it was written with: it is damaged. Restore it from a copy.")


def verify_checksums(folder: Path, checksums: Mapping[str, str]) -> None:
    """Read every byte of a folder's files, by name, and refuse what is missing or not as it was written."""
    for name, recorded in checksums.items():
        path = folder / name
        if not path.is_file():
            raise StoreError(f"{path} is missing. Restore it from a copy, or write the folder again.")
        verify_checksum(path, recorded)


def checksum_path(path: Path) -> Path:
    """Where the checksum of a single file is kept: hidden, as readers of folders take all files that they see."""
    return path.with_name(f".{path.name}.sha256")


def checksum_line(path: Path, name: str) -> bytes:
    """What `sha256sum` prints for a file of this name that has the content of `path`."""
    return f"{checksum(path)}  {name}\n".encode()


def verify_file(path: Path) -> None:
    """Read every byte of a file that has its checksum beside it, and refuse it if either is damaged."""
    beside = checksum_path(path)
    if not beside.exists():
        raise StoreError(f"{path} has no {beside.name} beside it, so nothing tells what was written. Write it again.")
    if beside.read_bytes() != checksum_line(path, path.name):
        raise StoreError(f"{path} or {beside.name} beside it is damaged: the sha256 is another. Write it again.")
