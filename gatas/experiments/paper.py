"""`reproduce`: run what stands behind a table's cells, resume where it stopped, and render the table."""

import json
import re
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gatas.errors import ConfigError
from gatas.experiments.results import run_recipe, spread, values
from gatas.experiments.tables import TABLES, Cell, Table


def recipes_of(table: str, only: list[str]) -> list[str]:
    """The recipes behind a table, or those whose name contains one of `only`."""
    if table not in TABLES:
        raise ConfigError(f"there is no table {table!r}. Known: {', '.join(TABLES)}.")
    names = list(dict.fromkeys(cell.recipe for cell in TABLES[table].cells))
    chosen = [name for name in names if not only or any(part in name for part in only)]
    if not chosen:
        raise ConfigError(f"nothing in {table} is named like {', '.join(only)}. Known: {', '.join(names)}.")
    return chosen


def reproduce(
    table: str,
    folder: Path,
    *,
    seeds: int | None = None,
    only: list[str] | None = None,
    begin: Callable[[str], None] = lambda name: None,
    **settings: Any,
) -> str:
    """Run a table's recipes that have fewer seeds than asked for, and render it. `settings` are those of `run_recipe`."""
    for name in recipes_of(table, only or []):
        begin(name)
        run_recipe(name, range(seeds or TABLES[table].seeds), folder, **settings)
    return render(TABLES[table], folder)


def render(table: Table, folder: Path) -> str:
    """The table in Markdown, from what is in the folder."""
    paths = {cell.recipe: folder / f"{cell.recipe}.json" for cell in table.cells}
    found = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
    return rendered(table, found)


def rendered(table: Table, found: Mapping[str, dict[str, Any]]) -> str:
    """The table in Markdown, from results by recipe."""
    lines = [f"### {table.title}", "", "| | data | paper | ours | seeds | verdict |", "|---|---|---|---|---|---|"]
    for cell in table.cells:
        numbers = values(found[cell.recipe], cell.metric) if cell.recipe in found else []
        lines.append(f"| {cell.row} | {cell.column} | {shown(cell, cell.paper, cell.spread)} | {_ours(cell, numbers)} |")
    return "\n".join([*lines, "", *table.notes, ""])


def _ours(cell: Cell, numbers: list[float]) -> str:
    if not numbers:
        return "not run yet | 0 | –"
    scale = 100 if cell.percent else 1
    mean, deviation = scale * statistics.fmean(numbers), scale * spread(numbers)
    return f"{shown(cell, mean, deviation)} | {len(numbers)} | {verdict(cell, mean, deviation)}"


def shown(cell: Cell, mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "–"
    digits = 2 if cell.percent else 4
    return f"{mean:.{digits}f}" + (f" ± {deviation:.{digits}f}" if deviation else "")


def verdict(cell: Cell, mean: float, deviation: float) -> str:
    """How far from the paper, in its standard deviations; in ours where it gives none."""
    if cell.paper is None:
        return "–"
    unit = cell.spread or deviation
    if not unit:
        return "one run"
    distance = (mean - cell.paper) / unit
    if abs(distance) <= 1:
        return "within one deviation"
    return f"{abs(distance):.1f} deviations {'above' if distance > 0 else 'below'}"


def update_readme(readme: Path, name: str, text: str) -> None:
    """Put a table between its marks in a file."""
    content = readme.read_text(encoding="utf-8")
    marks = f"<!-- results: {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), re.DOTALL)
    if not pattern.search(content):
        raise ConfigError(f"{readme} has no marks {marks[0]} and {marks[1]} to put the table between.")
    readme.write_text(pattern.sub(lambda _: f"{marks[0]}\n{text}\n{marks[1]}", content), encoding="utf-8")
