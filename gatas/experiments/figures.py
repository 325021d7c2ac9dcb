"""Figures in Markdown: numbers that were measured, and the files that a passage names as where they come from.

A figure is a number with a unit (`26 s`, `1.2 GiB`, `95.9 %`, `12 ×`), with a deviation (`82.3 ± 0.9`) or with a decimal point,
in prose or in a table; in a table also a plain number below a head that has the unit. What stands in code is none: settings,
limits, and what commands print. Nor is what a passage reckons from numbers that it gives, where a comment in it says so.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise, zip_longest

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
COMMENT = re.compile(r"<!--.*?-->")
OF = re.compile(r"<!-- of: (.+?) -->")
FENCE = re.compile(r"^\s*(```|~~~)")
NEW_BLOCK = re.compile(r"^(?:#|\s*(?:[-*]|\d+\.) )")


@dataclass(frozen=True)
class Figure:
    """A number as it is shown: its value, how many digits it has after the point, its unit, and its deviation if it has one.

    In a table it is the `order`-th of its cell, in a `column`; in prose both are −1. `near` are the texts that say what it is
    of, the nearest first: what is before it in its cell, the column's head, the other cells of its row; in prose the passage.
    """

    value: float
    digits: int
    unit: str = ""
    spread: "Figure | None" = None
    line: int = 0
    column: int = -1
    order: int = -1
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = f"{self.value:.{self.digits}f}" + (f" ± {self.spread}" if self.spread else "")
        return f"{shown} {self.unit}".strip()


@dataclass(frozen=True)
class Passage:
    """A paragraph, an item of a list or a table, from a line on, with the links of it or, if it has none, beside it."""

    line: int
    text: str
    links: tuple[str, ...]
    section: str = ""  # the heading above

    @property
    def only(self) -> list[list[str]]:
        """The parts of its sources that a comment says it is of: any of some, each by words that are all there."""
        return [part.strip().split(" & ") for said in OF.findall(self.text) for part in said.split(";")]


def figure(number: str, unit: str = "", *, spread: "Figure | None" = None) -> Figure:
    """A figure from how it is written."""
    plain = number.replace(",", "").replace("−", "-")
    return Figure(float(plain), len(plain.partition(".")[2]), unit, spread)


def passages(markdown: str) -> list[Passage]:
    """The passages of a page, but for code and for what is generated."""
    blocks = list(_blocks(_without_generated(markdown)))
    found, section = list[Passage](), ""
    for place, (line, text) in enumerate(blocks):
        if text.startswith("#"):
            section = text.lstrip("# ")
            continue
        links = LINK.findall(text)
        if not links:  # a table has its source in the sentence before or after it
            beside = [blocks[other][1] for other in (place - 1, place + 1) if 0 <= other < len(blocks)]
            links = [link for other in beside if not other.startswith("#") for link in LINK.findall(other)]
        if rows := _rows_with_links(line, text, section):
            found += rows
            continue
        following = blocks[place + 1][1] if place + 1 < len(blocks) else ""
        if OF.fullmatch(following):  # a table cannot hold it
            text = f"{text}\n{following}"
        found.append(Passage(line, text, tuple(links), section))
    return found


def _rows_with_links(line: int, text: str, section: str) -> list[Passage]:
    """Each row of a table as a passage of its own, under the table's head, where every row names its source."""
    head, rows = text.split("\n")[:2], text.split("\n")[2:]
    if not text.startswith("|") or not rows or not all(LINK.search(row) for row in rows):
        return []
    return [Passage(line + place, "\n".join([*head, row]), tuple(LINK.findall(row)), section) for place, row in enumerate(rows)]


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
    words = passage.text.replace("`", "")
    bare = re.sub(r"`[^`]*`", lambda code: re.sub(r"\S", "`", code[0]), LINK.sub("]", COMMENT.sub("", passage.text)))
    bare = bare.replace("**", "")
    heads, found = _heads(bare), list[Figure]()
    numbered = enumerate(bare.split("\n"), passage.line)
    for is_row, group in groupby(numbered, key=lambda one: one[1].lstrip().startswith("|")):
        lines = list(group)
        if is_row:
            found += [one for line, text in lines for one in _of_row(line, text, heads)]
        else:
            found += [replace(one, near=(words,)) for one in _of_prose(lines)]
    return found


def _of_prose(lines: list[tuple[int, str]]) -> list[Figure]:
    """The numbers of lines that follow on one another: a unit may be on the line below its number."""
    text = " ".join(line.strip() for _, line in lines)
    starts = [0, *accumulate(len(line.strip()) + 1 for _, line in lines)]
    return [replace(one, line=lines[bisect_right(starts, start) - 1][0]) for start, one in _of_cell(text, "")]


def _of_row(line: int, text: str, heads: list[str]) -> list[Figure]:
    """The numbers of a table's row."""
    found, cells = list[Figure](), cells_of(text)
    for place, (cell, head) in enumerate(zip_longest(cells, heads[: len(cells)], fillvalue="")):
        unit = (HEAD_UNIT.findall(head) or [""])[-1] if PLAIN.fullmatch(cell.strip()) else ""
        rest = " | ".join(other for other in cells if other is not cell)
        for order, (_, one) in enumerate(_of_cell(cell, unit)):
            found.append(replace(one, line=line, column=place, order=order, near=(*one.near, head, rest)))
    return found


def cells_of(text: str) -> list[str]:
    """The cells of a table's row."""
    return [cell.strip() for cell in text.strip().removeprefix("|").removesuffix("|").split("|")]


def _of_cell(text: str, column: str) -> list[tuple[int, Figure]]:
    """Numbers with a deviation, then those with a unit, then others, which have the column's; each with where it starts."""
    text, found = NOT_FIGURES.sub(_blank, text), list[tuple[int, Figure]]()
    for pair in PAIR.finditer(text):
        mean, spread, unit = pair.groups()
        one = figure(mean, unit or column, spread=figure(spread))
        found.append((pair.start(), replace(one, near=(_before(text, pair.start()),))))
    text = PAIR.sub(_blank, text)
    for listed in LISTED.finditer(text):
        before = (_before(text, listed.start()),)
        for number in re.finditer(NUMBER, listed[1]):
            found.append((listed.start() + number.start(), replace(figure(number[0], listed[2]), near=before)))
    text = LISTED.sub(_blank, text)
    for number in re.finditer(NUMBER, text):
        found.append((number.start(), replace(figure(number[0], column), near=(_before(text, number.start()),))))
    return found


def _blank(found: re.Match[str]) -> str:
    """As many blanks as there are letters."""
    return " " * len(found[0])


def _before(text: str, start: int) -> str:
    """What a cell says of a number before it, from the number before that on."""
    return re.split(NUMBER, text[:start])[-1]


def _heads(text: str) -> list[str]:
    """The heads of a table's columns, or nothing."""
    for head, rule in pairwise(text.split("\n")):
        if re.fullmatch(r"\|[-:| ]+\|", rule.strip()):
            return cells_of(head)
    return []
