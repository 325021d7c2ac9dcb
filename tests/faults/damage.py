"""Damage to what is stored, a bit or a half at a time: `gatas verify` must find it."""

import random
from pathlib import Path

from gatas.cli.verify import verified
from gatas.errors import GatasError
from tests.faults.world import Row

FLIPS = "a bit flips"
CUTS = "a file is cut short"


def damaged(name: str, stored: Path, rounds: int, seed: int) -> list[Row]:
    """Damage every file of what is stored, one after another: `gatas verify` must find it."""
    verified(stored)
    chance = random.Random(f"{name} {seed}")
    rows = [Row(name, fault) for fault in (FLIPS, CUTS)]
    for file in files_of(stored):
        content = file.read_bytes()
        for row in rows * rounds:
            file.write_bytes(flipped(content, chance) if row.fault == FLIPS else cut(content, chance))
            row.injected += 1
            try:
                verified(stored)
                row.bytes_lost += 1
                row.said = f"not found in {file.name}"
            except GatasError as error:
                row.survived += 1
                row.said = row.said or f"error: {error}"
        file.write_bytes(content)
    verified(stored)
    return rows


def files_of(stored: Path) -> list[Path]:
    """All that have bytes; beside a file, its sum."""
    found = stored.rglob("*") if stored.is_dir() else [stored, stored.with_name(f".{stored.name}.sha256")]
    return sorted(file for file in found if file.is_file() and file.stat().st_size)


def flipped(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]
