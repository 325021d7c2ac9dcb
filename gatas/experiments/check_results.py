"""Results against what they say they are: the settings of their recipe or peer, and the commit that made them.

Where a file is not as it should be and is shown all the same, a page has to name it and say so: `EARLIER`, `NO_COMMIT`.
"""

import json
import re
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
EARLIER, NO_COMMIT = "earlier settings", "no commit"


def check_commits(results: Sequence[Result], root: Path) -> list[str]:
    """Sessions without a commit, and commits that the history lacks; these where there is a whole history to look into."""
    by_commit = {session.commit: one.path for one in results for session in one.record.sessions}
    without = [one.path for one in results if any(session.commit in UNKNOWN for session in one.record.sessions)]
    problems = [f"{path}: a session names no commit." for path in without]
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


def check_others(results: Path, known: Sequence[Result], said: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files of results in another form: problems and notes for those that name no commit, which a page has to say."""
    problems, notes = [], []
    for path in sorted(set(results.rglob("*.json")) - {one.path for one in known}):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and content.get("commit", "") not in UNKNOWN:
            continue
        if tells(said, path, NO_COMMIT):
            notes.append(f"{path}: it names no commit, which a page says.")
        else:
            problems.append(f"{path} names no commit. Make it anew by its command, or name it in a page and say `{NO_COMMIT}`.")
    return problems, notes


def tells(said: Sequence[str], path: Path, words: str) -> bool:
    """Whether one of the passages of the pages names a file and has some words."""
    plain = (" ".join(text.split()) for text in said)
    return any(words in text and re.search(rf"(?<![\w-]){re.escape(path.stem)}(?![\w-])", text) for text in plain)


def outdated(results: Sequence[Result], said: Sequence[str]) -> tuple[list[str], list[str]]:
    """Results whose recipe or peer has other settings now, with their commits: problems, and notes where a page says it."""
    problems, notes = [], []
    for one in results:
        now = settings_now(one)
        if now is None or completed(now) == completed(one.record.settings):
            continue
        commits = ", ".join(dict.fromkeys(session.commit for session in one.record.sessions))
        line = f"{one.path}: its settings have changed since; it is of commit {commits}"
        if tells(said, one.path, EARLIER):
            notes.append(f"{line}, which a page says.")
        else:
            problems.append(f"{line}. Run it again, or name it in a page and say that it is of `{EARLIER}`.")
    return problems, notes


def settings_now(result: Result) -> dict[str, Any] | None:
    """The settings that a result's recipe or peer has now; None of data that is not known by name, or was never run."""
    record = result.record
    if record.model in recipes.names():
        return settings_of_config(recipes.recipe(record.model))
    if record.data not in recipes.names() or not record.runs:
        return None
    about: Any = SimpleNamespace(name=record.data, task=record.task, targets=None, ranked=False)  # what settings depend on
    return kept({"data": {"name": record.data}, **contender(record.model, about).settings})
