"""Encodings that settings name for single columns: `log`, `frequent 100` and others."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

NUMBERS = ("standard", "unscaled", "log", "quantile")
CATEGORIES = ("one-hot", "frequent", "hashed")
MOST_COLUMNS = 1_000_000


class ColumnEncoding(NamedTuple):
    """What becomes of a column, and of how many columns its categories then are; 0: as many as there are."""

    kind: str
    size: int = 0

    @property
    def of_categories(self) -> bool:
        return self.kind in CATEGORIES


def parsed_encoding(text: str) -> ColumnEncoding | None:
    """Parse an encoding as settings write it; None for what is none."""
    kind, _, size = text.strip().lower().partition(" ")
    if kind in (*NUMBERS, "one-hot") and not size:
        return ColumnEncoding(kind)
    if kind in ("frequent", "hashed") and re.fullmatch(r"[1-9]\d*", size) and int(size) <= MOST_COLUMNS:
        return ColumnEncoding(kind, int(size))
    return None


def checked_encodings(given: Mapping[str, str]) -> dict[str, str]:
    """Return encodings by column, or refuse those that are not known."""
    for column, text in given.items():
        if parsed_encoding(text) is None:
            raise ValueError(
                f"{column!r} is to be encoded as {text!r}; expected {', '.join(NUMBERS)} for numbers, or one-hot, frequent N, "
                "hashed N for categories, such as frequent 100."
            )
    return dict(given)


def encoding_for(column: str, given: Mapping[str, str]) -> ColumnEncoding | None:
    """Return what settings say of a column: under its name, or under a pattern that it fits."""
    text = given.get(column) or next((text for pattern, text in given.items() if fnmatchcase(column, pattern)), None)
    return None if text is None else parsed_encoding(text)
