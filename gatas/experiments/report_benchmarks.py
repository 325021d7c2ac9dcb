"""Scaling curves in the dated reports under benchmarks/: tables in which time or memory stands against a graph's size."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

SIZES = ("edges", "nodes")
SCALES = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}
NUMBER = re.compile(r"([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([KMG]iB)?", re.IGNORECASE)
UNIT = re.compile(r"(?<![/\w])(seconds|s|ms|µs|MiB|GiB)\b")
DATED = re.compile(r"\d{4}-\d{2}-\d{2}-")


@dataclass(frozen=True)
class MarkdownTable:
    """A table of a report, the report's title, the heading it stands under, and what is said below it."""

    path: Path
    title: str
    heading: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def column(self, place: int) -> list[float | None]:
        return [number(row[place]) for row in self.rows]

    def unit(self, place: int) -> str:
        """The unit of a column of times or of memory; none of any other."""
        if any((found := NUMBER.fullmatch(row[place].strip())) and found[2] for row in self.rows):
            return "MiB"
        named = UNIT.search(self.header[place])
        return {"seconds": "s"}.get(named[1], named[1]) if named else ""

    @property
    def markdown(self) -> str:
        lines = [self.header, ("---",) * len(self.header), *self.rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        title = "" if self.title == self.heading else f"{self.title}\n\n"
        return f"### {self.heading}\n\n{title}{table}\n\n{self.note}"


@dataclass(frozen=True)
class Scaling:
    """What a unit of a table does as graphs grow: points (size, value) of every series."""

    table: MarkdownTable
    size: str
    unit: str
    series: dict[str, list[tuple[float, float]]]


def read_scaling(folder: Path) -> list[Scaling]:
    """From the latest report of each name."""
    latest = {DATED.sub("", path.name, count=1): path for path in sorted(folder.glob("*.md"))}
    tables = [table for path in latest.values() for table in tables_of(path)]
    return [curves for table in tables for curves in scalings_of(table)]


def tables_of(path: Path) -> list[MarkdownTable]:
    """All tables of a Markdown file."""
    title, heading, rows, found = "", "", list[list[str]](), []
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8", errors="replace"))
    for place, (before, token) in enumerate(pairwise(tokens), 1):
        if before.type == "heading_open":
            heading = token.content
            title = title or heading
        elif token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif before.type in ("th_open", "td_open"):
            rows[-1].append(token.content)
        elif token.type == "table_close":
            below = (
                tokens[place + 2].content if [one.type for one in tokens[place + 1 : place + 2]] == ["paragraph_open"] else ""
            )
            found.append(MarkdownTable(path, title, heading, tuple(rows[0]), tuple(tuple(row) for row in rows[1:]), below))
    return found


def scalings_of(table: MarkdownTable) -> list[Scaling]:
    """The curves of a table: one for each unit, with a series for each column of it and each name in the columns of text."""
    place = next((k for k, name in enumerate(table.header) if name.lower() in SIZES), None)
    if place is None or not grows(table.column(place)):
        return []
    measured = {k: unit for k in range(len(table.header)) if k != place and (unit := table.unit(k)) and any(table.column(k))}
    texts = [k for k in range(min(measured, default=0)) if k != place and not any(table.column(k))]
    found = []
    for unit in dict.fromkeys(measured.values()):
        columns = [k for k, own in measured.items() if own == unit]
        series: dict[str, list[tuple[float, float]]] = {}
        for row in table.rows:
            for k in columns:
                size, value = number(row[place]), number(row[k])
                if size and value:
                    series.setdefault(label(table, row, texts, k), []).append((size, value))
        found.append(Scaling(table, table.header[place].lower(), unit, {name: sorted(of) for name, of in series.items()}))
    return found


def label(table: MarkdownTable, row: Sequence[str], texts: list[int], place: int) -> str:
    """The names in a row, and what the column is."""
    column = UNIT.sub("", table.header[place]).strip(" ,") or table.header[place]
    return ", ".join([*(row[k] for k in texts), column])


def grows(sizes: list[float | None]) -> bool:
    """Three sizes or more, over a factor of ten."""
    known = {size for size in sizes if size}
    return len(known) >= 3 and max(known) >= 10 * min(known)


def number(text: str) -> float | None:
    """A cell's number, memory in MiB; none for words."""
    found = NUMBER.fullmatch(text.strip())
    return float(found[1].replace(",", "")) * SCALES.get(found[2], 1.0) if found else None
