"""Markdown tables of generated pages."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, without the columns that are empty in every row; nothing where there are no rows."""
    rows = list(rows)
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(line[place]) for place in used) + " |" for line in lines)


def cell(text: str) -> str:
    """Text on one line of a table, whose bars do not end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    """Text as code, where there is any."""
    return f"`{text}`" if str(text) else ""
