"""Results against what they say they are: the settings of their recipe or peer, and the commit that made them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gatas.experiments import recipes
from gatas.experiments.contenders import contender
from gatas.experiments.paper import settings_of_config
from gatas.experiments.report_results import Result
from gatas.experiments.results import completed, kept

UNKNOWN = ("", "unknown")


def check_commits(results: Sequence[Result], root: Path) -> list[str]:
    """Sessions without a commit, and commits that the history lacks; these where there is a whole history to look into."""
    by_commit = {session.commit: one.path for one in results for session in one.record.sessions}
    problems = [f"{path}: a session names no commit." for name, path in by_commit.items() if name in UNKNOWN]
    if git(root, "rev-parse", "--is-shallow-repository") != "false":
        return problems
    lost = [
        name for name in by_commit if name not in UNKNOWN and git(root, "merge-base", "--is-ancestor", name, "HEAD") is None
    ]
    return [*problems, *(f"{by_commit[name]}: commit {name} is not in the history." for name in lost)]


def git(root: Path, *words: str) -> str | None:
    """What a command of git prints; None where it fails, as it does outside of a repository."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def outdated(results: Sequence[Result]) -> list[str]:
    """A line for each result whose recipe or peer has other settings now, with the commit at which it had them."""
    found = []
    for one in results:
        now = settings_now(one)
        if now is not None and completed(now) != completed(one.record.settings):
            commits = ", ".join(dict.fromkeys(session.commit for session in one.record.sessions))
            found.append(f"{one.path}: its settings have changed since; it is of commit {commits}.")
    return found


def settings_now(result: Result) -> dict[str, Any] | None:
    """The settings that a result's recipe or peer has now; None of data that is not known by name, or was never run."""
    record = result.record
    if record.model in recipes.names():
        return settings_of_config(recipes.recipe(record.model))
    if record.data not in recipes.names() or not record.runs:
        return None
    named: Any = SimpleNamespace(name=record.data, task=record.task, ranked=False)  # all that settings depend on
    return kept({"data": {"name": record.data}, **contender(record.model, named).settings})
