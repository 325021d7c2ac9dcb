"""Text as wide as it is drawn: what it takes in inches, and how it is broken into lines that fit."""

import re
from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

POINTS = 72
"""Of an inch."""
HINTING = 1.07
"""Letters are set to whole pixels, so that a line may be wider than its outlines by so much."""
LEADING = 1.2
"""Height of a line, as a multiple of the letters' size."""
BREAKS = re.compile(r"(?<=[-_/.,;)])")
"""Where a word may be broken that is too long for a line."""


@lru_cache(maxsize=10_000)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the inches that a line of text takes at a size in points."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) * HINTING / POINTS


def widest_line(text: str, size: float, bold: bool = False) -> float:
    """Return the inches that the widest of several lines takes."""
    return max(text_width(line, size, bold) for line in text.split("\n"))


def text_height(text: str, size: float) -> float:
    """Return the inches that lines of text take."""
    return (1 + text.count("\n")) * size * LEADING / POINTS


def wrapped(text: str, room: float, size: float, *, bold: bool = False, max_lines: int) -> str:
    """Break text into lines of at most `room` inches; only what does not fit into `max_lines` of them is cut.

    Lines end between words. A word that is wider than a line is broken behind a hyphen or the like, else between letters.
    """
    lines = [""]
    for word in text.split():
        for place, piece in enumerate(_pieces(word, room, size, bold)):
            longer = f"{lines[-1]} {piece}" if lines[-1] and place == 0 else f"{lines[-1]}{piece}"
            if lines[-1] and text_width(longer, size, bold) > room:
                lines.append(piece)
            else:
                lines[-1] = longer
    if len(lines) <= max_lines:
        return "\n".join(lines)
    return "\n".join([*lines[: max_lines - 1], cut(f"{lines[max_lines - 1]} …", room, size, bold)])


def longest_word(text: str, size: float, bold: bool = False) -> float:
    """Return the inches that a line must have so that no word is broken, but where there is a hyphen or the like."""
    return max((text_width(part, size, bold) for word in text.split() for part in BREAKS.split(word)), default=0.0)


def _pieces(word: str, room: float, size: float, bold: bool) -> list[str]:
    """Break a word that is wider than a line."""
    if text_width(word, size, bold) <= room:
        return [word]
    return [piece for part in BREAKS.split(word) if part for piece in _letters(part, room, size, bold)]


def _letters(part: str, room: float, size: float, bold: bool) -> list[str]:
    """Break between letters where it must be; a piece has one letter at least."""
    pieces = [""]
    for letter in part:
        if pieces[-1] and text_width(pieces[-1] + letter, size, bold) > room:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def cut(text: str, room: float, size: float, bold: bool = False) -> str:
    """Take letters from the end until the rest fits with `…`."""
    if text_width(text, size, bold) <= room:
        return text
    kept = text.rstrip(" …")
    while len(kept) > 1 and text_width(f"{kept}…", size, bold) > room:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"
