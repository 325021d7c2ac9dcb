"""Cells of tables that stay on one line where a line end would part a number from its sign, its deviation or its unit."""

import re

CELL = re.compile(r"(<t[dh][^>]*>)(.*?)(</t[dh]>)", re.DOTALL)
CODE = re.compile(r"(<code>.*?</code>|<[^>]+>)", re.DOTALL)
JOINED = re.compile(
    r"(?<=[\d)]) (?=[%±])|(?<=±) (?=\d)|(?<=\b[A-Z]) (?== \d)|(?<=\b[A-Z] =) (?=\d)|(?<=\d) (?=(?:ms|s|h|[KMG]i?B)\b)"
)


def without_breaks(html: str) -> str:
    """Put no-break spaces between the parts of `79.49 ± 1.18`, `S = 10` and `17.46 %` in cells, except in code."""
    return CELL.sub(lambda cell: cell[1] + _joined(cell[2]) + cell[3], html)


def _joined(content: str) -> str:
    parts = CODE.split(content)  # text, then code or a tag, and so on
    return "".join(JOINED.sub("\N{NO-BREAK SPACE}", part) if place % 2 == 0 else part for place, part in enumerate(parts))
