"""Figures in Markdown: numbers that were measured, and the files that a passage names as where they come from.

A figure is a number with a unit (`26 s`, `1.2 GiB`, `95.9 %`, `12 ×`), with a deviation (`82.3 ± 0.9`) or with a decimal point,
in prose or in a table; in a table also a plain number below a head that has the unit. What stands in code is none: settings,
limits, and what commands print. Nor is what a passage reckons from numbers that it gives, where a comment in it says so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest

TIMES = ("s", "ms", "µs", "ns", "seconds", "minutes", "hours")
SIZES = ("KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB")
UNITS = ("%", "points", "×", *TIMES, *SIZES)
NUMBER = r"(?<![\w.·^/=⁻])[-+−]?\d[\d,]*(?:\.\d+)?(?![\d⁰¹²³⁴⁵⁶⁷⁸⁹·]|\.\d| · 10)"
UNIT = rf"(?:{'|'.join(map(re.escape, UNITS))})(?!\w| \d)"
PAIR = re.compile(rf"({NUMBER}) ± ({NUMBER})(?: ({UNIT}))?")
LISTED = re.compile(rf"({NUMBER}(?:(?:,| to| and| or| /) {NUMBER})*)[ \u00a0]?({UNIT})")
PLAIN = re.compile(rf"{NUMBER}(?: ± {NUMBER})?(?:(?:,| to| /)? \(?{NUMBER}\)?)*")
HEAD_UNIT = re.compile(rf"(?<!\w)(?<!\d )({UNIT})")
NOT_FIGURES = re.compile(
    r"§[\d.]+|\b95 % intervals?|\(95 %\)|(?i:\b(?:python|torch|triton|numba|pyg|duckdb|pyarrow|dgl|tensorflow)) (?:≥ )?\d[\d.]*"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
RECKONED = "<!-- reckoned -->"
FENCE = re.compile(r"^\s*(```|~~~)")
NEW_BLOCK = re.compile(r"^(?:#|\s*(?:[-*]|\d+\.) )")


@dataclass(frozen=True)
class Figure:
    """A number as it is shown: its value, how many digits it has after the point, its unit, and its deviation if it has one."""

    value: float
    digits: int
    unit: str = ""
    spread: "Figure | None" = None
    line: int = 0

    def __str__(self) -> str:
        shown = f"{self.value:.{self.digits}f}" + (f" ± {self.spread}" if self.spread else "")
        return f"{shown} {self.unit}".strip()


@dataclass(frozen=True)
class Passage:
    """A paragraph, an item of a list or a table, from a line on, with the links of it or, if it has none, beside it."""

    line: int
    text: str
    links: tuple[str, ...]


def figure(number: str, unit: str = "", line: int = 0, spread: "Figure | None" = None) -> Figure:
    """A figure from how it is written."""
    plain = number.replace(",", "").replace("−", "-")
    return Figure(float(plain), len(plain.partition(".")[2]), unit, spread, line)


def passages(markdown: str) -> list[Passage]:
    """The passages of a page, but for code and for what is generated."""
    blocks = list(_blocks(_without_generated(markdown)))
    found = []
    for place, (line, text) in enumerate(blocks):
        if text.startswith("#"):
            continue
        links = LINK.findall(text)
        if not links:  # a table has its source in the sentence before or after it
            beside = [blocks[other][1] for other in (place - 1, place + 1) if 0 <= other < len(blocks)]
            links = [link for other in beside if not other.startswith("#") for link in LINK.findall(other)]
        found.append(Passage(line, text, tuple(links)))
    return found


def _without_generated(markdown: str) -> str:
    """The page with as many lines, those empty that are between the marks of a generated part."""
    pattern = re.compile(r"<!-- results: (\S+) -->.*?<!-- end of \1 -->", re.DOTALL)
    return pattern.sub(lambda found: "\n" * found[0].count("\n"), markdown)


def _blocks(markdown: str) -> Iterator[tuple[int, str]]:
    """Blocks with the number of their first line."""
    first, lines, fenced = 1, list[str](), False
    for number, line in enumerate([*markdown.splitlines(), ""], 1):
        fence = FENCE.match(line) is not None
        ends = fenced or fence or not line.strip() or NEW_BLOCK.match(line) or (lines and lines[0].startswith("#"))
        if ends and lines:
            yield first, "\n".join(lines)
            lines = []
        if fence:
            fenced = not fenced
        elif not fenced and line.strip() and not line.startswith("    "):
            first, lines = (first, lines) if lines else (number, [])
            lines.append(line)


def figures_in(passage: Passage) -> list[Figure]:
    """The figures of a passage; none where it reckons."""
    if RECKONED in passage.text:
        return []
    return [found for found in numbers_in(passage) if found.unit or found.spread or found.digits]


def numbers_in(passage: Passage) -> list[Figure]:
    """All numbers of a passage that are not in code, each with its unit or that of its column."""
    bare = re.sub(r"`[^`]*`", lambda code: re.sub(r"\S", "`", code[0]), passage.text)
    bare = NOT_FIGURES.sub(" ", LINK.sub("]", bare)).replace("**", "")
    units, found = _head_units(bare), list[Figure]()
    for line, text in enumerate(bare.split("\n"), passage.line):
        cells = text.strip().strip("|").split("|") if text.lstrip().startswith("|") else [text]
        for cell, unit in zip_longest(cells, units[: len(cells)], fillvalue=""):
            found += _of_cell(cell, unit if PLAIN.fullmatch(cell.strip()) else "", line)
    return found


def _of_cell(text: str, column: str, line: int) -> list[Figure]:
    """Numbers with a deviation, then those with a unit of their own, then others, which have the column's."""
    found = [figure(mean, unit or column, line, figure(spread)) for mean, spread, unit in PAIR.findall(text)]
    text = PAIR.sub(" ", text)
    for numbers, unit in LISTED.findall(text):
        found += [figure(number, unit, line) for number in re.findall(NUMBER, numbers)]
    return found + [figure(number, column, line) for number in re.findall(NUMBER, LISTED.sub(" ", text))]


def _head_units(text: str) -> list[str]:
    """Of a table the unit of each column, or nothing."""
    for head, rule in pairwise(text.split("\n")):
        if re.fullmatch(r"\|[-:| ]+\|", rule.strip()):
            return [(HEAD_UNIT.findall(cell) or [""])[-1] for cell in head.strip().strip("|").split("|")]
    return []
