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
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gatas.cli import main

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
WORD = re.compile(r"(?<![^\W_])[^\W\d_]{2,}+(?!\d)")
PORT = "8000"
"""The port of servers in pages; a free one takes its place."""
SHOWN = 0.8
"""The share of the words shown as output that must be in it: what a model ranks may differ a little between processors."""
PLAIN = re.compile(r"gatas (?!serve)[^|&;<>$]*")
"""A command that needs no shell."""
SERVE = re.compile(r"^gatas serve [^#&\n]*[^#&\n ]", re.MULTILINE)
LESS = {
    r"\bepochs=\d+": "epochs=1",
    r"\bseed=0\b": "seed=0, epochs=1",
    r"\btrials([= ])\d+": r"trials\g<1>2",
    r"--seeds \d+": "--seeds 2",
    r"--workers \d+": "--workers 1",
    r"(?m)^gatas (init|config show) [^#>\n]*": r"\g<0> --set training.epochs=1 ",
    r"(?m)^gatas train [^#>\n]*": r"\g<0> --set training.epochs=1 --no-report ",
}
"""What takes the place of what, where code shall take seconds."""


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
    """The words of a text, without numbers and fingerprints."""
    return set(WORD.findall(text))


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def compare(block: Block, printed: str) -> None:
    """A block of output has the words of what was printed."""
    shown = words(block.code)
    missing = shown - words(printed)
    assert len(missing) <= (1 - SHOWN) * len(shown), f"{block} shows {sorted(missing)}, which is not in:\n{printed}"


class Reader:
    """Runs the blocks of one page after another: in one folder, which `cd` changes, and with one set of Python names."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.folder, self.repository, self.port = folder, repository, free_port()
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.groups: list[int] = []

    def run_page(self, page: Path) -> None:
        """Run the code of a page, and compare what it prints with what is shown; end what is left in the background."""
        printed = ""
        try:
            for block in blocks_of(page):
                if block.language == "text":
                    compare(block, printed)
                elif block.language in ("sh", "python") and block.reason is None:
                    printed = self.run(block)
        finally:
            self.end()

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


class QuickReader(Reader):
    """Runs blocks in seconds: with less to do, and commands of `gatas` in this process, which has imported what they need.

    A server is started in the background, where a reader would open another terminal.
    """

    def run(self, block: Block) -> str:
        code = block.code.replace("\\\n", " ")
        for written, less in LESS.items():
            code = re.sub(written, less, code)
        return super().run(replace(block, code=code))

    def _shell(self, code: str, block: Block) -> str:
        printed = ""
        for plain, lines in groupby(code.splitlines(), lambda line: bool(PLAIN.fullmatch(line.split(" #")[0]))):
            if plain:
                printed += "".join(self._gatas(shlex.split(line, comments=True), block) for line in lines)
            else:
                printed += super()._shell(self._in_background("\n".join(lines)), block)
        return printed

    def _gatas(self, words: list[str], block: Block) -> str:
        """Run a command that asks nothing, and shows warnings as it would elsewhere."""
        printed = io.StringIO()
        streams = patch("sys.stdin", io.StringIO()), patch("sys.stdout", printed), patch("sys.stderr", printed)
        with contextlib.ExitStack() as stack:
            for one in (*streams, patch("sys.argv", words), contextlib.chdir(self.folder), warnings.catch_warnings()):
                stack.enter_context(one)
            warnings.simplefilter("default")
            try:
                main()
            except SystemExit as end:
                assert not end.code, f"{block}: {shlex.join(words)}: {printed.getvalue()}"
        return printed.getvalue()

    def _in_background(self, code: str) -> str:
        """Start servers in the background, each at a port of its own, and wait until they answer."""
        if not SERVE.search(code):
            return code
        self.port = free_port()
        ready = f"http://127.0.0.1:{self.port}/v2/health/ready"
        wait = f"curl --silent --retry 300 --retry-delay 1 --retry-connrefused --output .ready {ready}"
        return SERVE.sub(rf"\g<0> --port {self.port} 2> .server.log &\n{wait}", code)


def gatas_commands(block: Block) -> Iterator[list[str]]:
    """The arguments of each `gatas` command of a block, as a shell would split them."""
    for line in block.code.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|\|\||[|;&]", line.split(" #")[0].split("<")[0].split(" >")[0].split(" 2>")[0]):
            match = re.match(r"\s*(?:\$ )?(?:torchrun .* -m )?gatas (?!\w+\.)(.*)", part)
            if match:
                yield shlex.split(match[1])
