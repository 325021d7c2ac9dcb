"""Sums of files: what was written is known again, to the bit."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gatas.errors import StoreError


def canonical(content: Mapping[str, Any]) -> bytes:
    """One text for equal content."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def file_sum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def signed(content: Mapping[str, Any]) -> bytes:
    """JSON that holds its own sha256."""
    whole = {**content, "sha256": hashlib.sha256(canonical(content)).hexdigest()}
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()


def read_signed(path: Path) -> dict[str, Any]:
    """What `signed` gave, from a file that is as it was written."""
    try:
        written = path.read_bytes()
        content: dict[str, Any] = json.loads(written)
        del content["sha256"]
        whole = signed(content) == written
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise StoreError(f"{path} is damaged or missing. Restore it from a copy, or write the folder again.")
    return content


def check_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Read every byte of files and refuse what is not as it was written."""
    for name, recorded in sums.items():
        path = folder / name
        if not path.is_file():
            raise StoreError(f"{path} is missing. Restore it from a copy, or write the folder again.")
        if file_sum(path) != recorded:
            raise StoreError(f"{path} does not have the sha256 it was written with: it is damaged. Restore it from a copy.")
