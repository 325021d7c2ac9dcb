"""Damage to the files of a store, as disks and forgers do it."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np


def forge(folder, change):
    """Change the manifest and give it the checksum that it should have."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    manifest.pop("sha256", None)
    canonical = json.dumps(manifest, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    manifest["sha256"] = hashlib.sha256(canonical).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False))


def flip(path: Path, at: int, mask: int = 0x10) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= mask
    path.write_bytes(content)


def is_mapped(array) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def set_at(*keys, value):
    """Return a change to a manifest: the value at these keys becomes another."""

    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


def damaged_at_every_seventh_byte(path: Path) -> Iterator[int]:
    """Flip one byte at a time, and put it right again."""
    size = path.stat().st_size
    for at in {*range(0, size, 7), size - 1}:
        flip(path, at)
        yield at
        flip(path, at)
