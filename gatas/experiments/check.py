"""`reproduce check`: every figure of README and docs against the file it came from, every result against its recipe."""

import re
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from gatas.errors import ConfigError, GatasError
from gatas.experiments import paper, recipes
from gatas.experiments.figures import figures_in, passages
from gatas.experiments.report import TABLES_OF_PEERS
from gatas.experiments.report_results import Result, Results, is_current, read_results
from gatas.experiments.sources import Numbers, holds, read_source
from gatas.experiments.tables import TABLES

SOURCES = ("results", "benchmarks")
"""Folders whose files figures may come from."""

BLOCK = re.compile(r"<!-- results: (\S+) -->\n(.*?)\n<!-- end of \1 -->", re.DOTALL)


def check(root: Path, results: Path | None = None) -> list[str]:
    """All that is not as it should be, a line each: in the pages of a checkout, and in its results."""
    results = results or root / "results"
    found = read_results(results)
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    missing = [page for page in pages if not page.exists()]
    if missing:
        raise ConfigError(f"{missing[0]} is not there. Call it in a checkout of gatas, whose README and docs it reads.")
    problems, read = [*found.problems, *check_results(found, root)], cache(read_source)
    for page in pages:
        problems += [*check_generated(page, results, found), *check_figures(page, root, read)]
    return problems


def check_generated(page: Path, results: Path, found: Results) -> list[str]:
    """Generated parts that are not what the results give."""
    problems = []
    for name, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if name not in {**TABLES, **TABLES_OF_PEERS}:
            problems.append(f"{page}: there is no table {name!r}; known: {', '.join([*TABLES, *TABLES_OF_PEERS])}.")
        elif text != generated(name, results, found):
            command = "gatas report" if name in TABLES_OF_PEERS else f"gatas reproduce {name} --render-only"
            problems.append(
                f"{page}: the table {name} is not what the results give. Make it anew: `{command} --readme {page.name}`."
            )
    return problems


def generated(name: str, results: Path, found: Results) -> str:
    """A generated part, from what the results hold now."""
    return TABLES_OF_PEERS[name](found) if name in TABLES_OF_PEERS else paper.render(TABLES[name], results)


def check_figures(page: Path, root: Path, read: Callable[[Path], Numbers] = read_source) -> list[str]:
    """Figures of a page that no linked file has, and those without any link."""
    problems = []
    for passage in passages(page.read_text(encoding="utf-8")):
        found = figures_in(passage)
        if not found:
            continue
        sources = [path for link in passage.links if (path := source_of(link, page, root)) is not None]
        problems += [f"{page}:{passage.line}: {path} is not there." for path in sources if not path.exists()]
        numbers = Numbers()
        try:
            for path in filter(Path.exists, sources):
                numbers.add(read(path))
        except GatasError as error:
            problems.append(f"{page}:{passage.line}: {error}")
        for one in found:
            if not sources:
                problems.append(
                    f"{page}:{one.line}: {one} has no source. Link the file it comes from, or write a setting as `code`."
                )
            elif not holds(numbers, one):
                names = ", ".join(path.relative_to(root).as_posix() for path in sources)
                problems.append(f"{page}:{one.line}: {one} is not in {names}.")
    return problems


def source_of(link: str, page: Path, root: Path) -> Path | None:
    """The file or folder that a link leads to, if figures may come from it."""
    if "://" in link:
        return None
    path = (page.parent / link.partition("#")[0]).resolve()
    inside = path.is_relative_to(root.resolve()) and path.relative_to(root.resolve()).parts[:1]
    return root / path.relative_to(root.resolve()) if inside and inside[0] in SOURCES else None


def check_results(found: Results, root: Path) -> list[str]:
    """Results without a commit, of a commit that is not in the history, or of a recipe that there is not."""
    problems = []
    for result in (*found.recipes.values(), *found.peers):
        commits = [session.commit for session in result.record.sessions]
        problems += [f"{result.path}: a session names no commit." for commit in commits if commit in ("", "unknown")]
    known = [*found.recipes.values()]
    problems += [f"{one.path}: there is no recipe {one.name!r}." for one in known if one.name not in recipes.names()]
    return [*problems, *check_commits([*known, *found.peers], root)]


def check_commits(results: Iterable[Result], root: Path) -> list[str]:
    """Commits that results name and the history lacks; nothing where there is no history, as in a copy of the files."""
    if not (root / ".git").exists():
        return []
    by_commit = {session.commit: one.path for one in results for session in one.record.sessions if session.commit}
    return [f"{path}: commit {name} is not in the history." for name, path in by_commit.items() if not in_history(name, root)]


def in_history(commit: str, root: Path) -> bool:
    """Whether a commit is an ancestor of the one that is checked out."""
    command = ["git", "-C", str(root), "merge-base", "--is-ancestor", commit.removesuffix("-dirty"), "HEAD"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def outdated(found: Results) -> list[str]:
    """Results whose recipe has other settings now, with the commit at which it had theirs."""
    old = [one for one in found.recipes.values() if one.name in recipes.names() and not is_current(one)]
    return [f"{one.path}: the recipe has other settings now; this is of {commits_of(one)}." for one in old]


def commits_of(result: Result) -> str:
    """The commits that a result was made at."""
    return ", ".join(dict.fromkeys(session.commit for session in result.record.sessions))
