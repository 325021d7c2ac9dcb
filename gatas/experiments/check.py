"""`reproduce check`: every figure of README and docs against the file it came from, every result against its recipe."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gatas.errors import ConfigError, GatasError
from gatas.experiments import paper
from gatas.experiments.check_results import check_commits, check_others, outdated
from gatas.experiments.compare import FOLDER
from gatas.experiments.figures import figures_in, passages
from gatas.experiments.matching import mistakes
from gatas.experiments.report import TABLES_OF_PEERS
from gatas.experiments.report_results import Results, read_all, read_results
from gatas.experiments.sources import SourceNumber, read_source
from gatas.experiments.tables import TABLES

SOURCES = ("results", "benchmarks")
"""Folders whose files figures may come from."""

BLOCK = re.compile(r"<!-- results: (\S+) -->\n(.*?)\n<!-- end of \1 -->", re.DOTALL)


@dataclass
class Checked:
    """What was looked at, a line for each thing that is not as it should be, and what a reader should know."""

    num_figures: int = 0
    num_tables: int = 0
    num_results: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = f"{self.num_figures} figures and {self.num_tables} tables of README and docs, {self.num_results} results"
        said = f"{len(self.problems)} problems" if self.problems else "all as their files have them"
        return "\n".join([*self.problems, *self.notes, f"{counts}: {said}."])


def check(root: Path, results: Path | None = None) -> Checked:
    """Compare the pages of a checkout with its files, and its results with their recipes and commits."""
    results = results or root / "results"
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    if not pages[0].exists():
        raise ConfigError(f"{pages[0]} is not there. Call this in a checkout of gatas, whose README and docs it reads.")
    found = read_results(results)
    problems = list(found.problems)
    further = [one for folder in sorted(results.glob(f"*/{FOLDER}")) for one in read_all(folder, problems)]
    every = [*found.recipes.values(), *found.peers, *further]
    said = [passage.text for page in pages for passage in passages(page.read_text(encoding="utf-8"))]
    checked = Checked(num_results=len(every), problems=problems)
    for wrong, noted in (outdated(every, said), check_others(results, every, said)):
        checked.problems += wrong
        checked.notes += noted
    checked.problems += [*check_commits(every, root), *check_reports(root)]
    read = cache(read_source)
    for page in pages:
        check_tables(page, results, found, checked)
        check_figures(page, root, checked, read)
    return checked


def check_reports(root: Path) -> list[str]:
    """Reports of benchmarks name the command that made them."""
    problems = []
    for path in sorted((root / "benchmarks").glob("*.md")):
        try:
            read_source(path)
        except GatasError as error:
            problems.append(str(error))
    return problems


def check_tables(page: Path, results: Path, found: Results, checked: Checked) -> None:
    """Generated tables are what the results give, to the letter."""
    for name, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        checked.num_tables += 1
        if name not in {**TABLES, **TABLES_OF_PEERS}:
            checked.problems.append(f"{page}: there is no table {name!r}; known: {', '.join([*TABLES, *TABLES_OF_PEERS])}.")
        elif text != generated(name, results, found):
            command = "gatas report" if name in TABLES_OF_PEERS else f"gatas reproduce {name} --render-only"
            checked.problems.append(
                f"{page}: the table {name} is not what the results give. Make it anew: `{command} --readme {page}`."
            )


def generated(name: str, results: Path, found: Results) -> str:
    """A generated table, from what the results hold now."""
    return TABLES_OF_PEERS[name](found) if name in TABLES_OF_PEERS else paper.render(TABLES[name], results)


def check_figures(page: Path, root: Path, checked: Checked, read: Callable[[Path], list[SourceNumber]] = read_source) -> None:
    """Every figure of a page has a link beside it to a file that has it where the page says."""
    for passage in passages(page.read_text(encoding="utf-8")):
        found = figures_in(passage)
        sources = list(dict.fromkeys(path for link in passage.links if (path := source_of(link, page, root)) is not None))
        numbers = list[SourceNumber]()
        for path in sources if found else []:
            try:
                numbers += read(path)
            except GatasError as error:
                checked.problems.append(f"{page}:{passage.line}: {error}")
        names = ", ".join(path.relative_to(root).as_posix() for path in sources)
        checked.num_figures += len(found)
        hint = "has no source. Link the file it comes from, or write a setting as `code`"
        wrong = mistakes(found, numbers, passage.only) if sources else [(one, hint) for one in found]
        checked.problems += [f"{page}:{one.line}: {one} {said.format(names)}." for one, said in wrong]


def source_of(link: str, page: Path, root: Path) -> Path | None:
    """The file or folder that a link leads to, if figures may come from it."""
    if "://" in link:
        return None
    path, whole = (page.parent / link.partition("#")[0]).resolve(), root.resolve()
    if not path.is_relative_to(whole) or path.relative_to(whole).parts[:1] not in [(name,) for name in SOURCES]:
        return None
    return root / path.relative_to(whole)
