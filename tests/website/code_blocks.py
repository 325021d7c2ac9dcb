"""Code blocks of Markdown pages: which there are, and how they are run as a reader would.

A block of `sh` or `python` is run, unless the line before it is a comment with the reason why not:
`<!-- not run: needs a GPU -->`.
A block of `text` is what the block before it prints.
"""

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
WORD = re.compile(r"[^\W\d_]{2,}")
PORT = "8000"
"""The port of servers in pages; a free one takes its place."""


@dataclass(frozen=True)
class Block:
    """A block of code; `reason` says why it is not run, if it is not."""

    page: Path
    line: int
    language: str
    code: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start("code")), found["language"], found["code"], found["reason"])
        for found in BLOCK.finditer(text)
    ]


def words(text: str) -> set[str]:
    """The words of a text, without numbers."""
    return set(WORD.findall(text))


class Reader:
    """Runs the blocks of one page after another: in one folder, which `cd` changes, and with one set of Python names."""

    def __init__(self, folder: Path, repository: Path, port: int) -> None:
        self.folder, self.repository, self.port = folder, repository, port
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.groups: list[int] = []

    def run(self, block: Block) -> str:
        """Run a block, and return what it printed."""
        code = block.code.replace(PORT, str(self.port))
        return self._python(code, block) if block.language == "python" else self._shell(code, block)

    def _python(self, code: str, block: Block) -> str:
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + code, str(block.page), "exec"), self.names)
        return printed.getvalue()

    def _shell(self, code: str, block: Block) -> str:
        """Run a block in a shell; what it leaves in the background goes on until `end`."""
        place, output = self.folder / ".place", self.folder / ".output"
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        with output.open("w", encoding="utf-8") as printed:
            shell = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", f"{code}\npwd > '{place}'"],
                cwd=self.folder, env={**os.environ, "PATH": path, "PYTHONPATH": str(self.repository), "COLUMNS": "80"},
                stdout=printed, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.groups.append(shell.pid)
        assert shell.wait() == 0, f"{block}: {output.read_text(encoding='utf-8')}"
        self.folder = Path(place.read_text(encoding="utf-8").strip())
        return output.read_text(encoding="utf-8")

    def end(self) -> None:
        """End what blocks have left in the background."""
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def gatas_commands(block: Block) -> Iterator[list[str]]:
    """The arguments of each `gatas` command of a block, as a shell would split them."""
    for line in block.code.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|\|\||[|;&]", line.split(" #")[0].split("<")[0].split(" >")[0].split(" 2>")[0]):
            match = re.match(r"\s*(?:\$ )?(?:torchrun .* -m )?gatas (?!\w+\.)(.*)", part)
            if match:
                yield shlex.split(match[1])
