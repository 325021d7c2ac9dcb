"""The code of the documentation: tutorials run from top to bottom, and every command on any page has options that exist."""

import shutil
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer

from gatas.cli.app import COMMANDS, imported_command
from tests.website.code_blocks import Block, Reader, blocks_of, gatas_commands, words

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs" / name
    for name in (
        "quick-start.md",
        "tutorials/own-data.md",
        "tutorials/links.md",
        "tutorials/explanations.md",
        "tutorials/serving.md",
        "tutorials/scale.md",
    )
]
NOT_RUN = {"quick-start.md": 1, "links.md": 1, "serving.md": 1, "scale.md": 2}
"""How many blocks of each page are marked as not run; every other block of code is."""
USAGE_ERROR: Any = typer.BadParameter.__base__
"""Of options that do not exist, among others; typer has no public name for it."""
SHOWN = 0.8
"""The share of the words shown as output that must be in it: what a model ranks may differ a little between processors."""


@pytest.fixture
def folder(tmp_path):
    """A folder with the examples of the repository, as a checkout has them."""
    shutil.copytree(ROOT / "examples/bibliography", tmp_path / "examples/bibliography")
    return tmp_path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")  # of columns that are not used
def test_the_code_of_the_quick_start_and_of_the_tutorials_runs_and_prints_what_is_shown(folder):
    for page in PAGES:
        reader, printed = Reader(folder, ROOT, free_port()), ""
        try:
            for block in blocks_of(page):
                if block.language == "text":
                    compare(block, printed)
                elif block.language in ("sh", "python") and block.reason is None:
                    printed = reader.run(block)
        finally:
            reader.end()


def compare(block: Block, printed: str) -> None:
    """A block of output has the words of what was printed."""
    shown = words(block.code)
    missing = shown - words(printed)
    assert len(missing) <= (1 - SHOWN) * len(shown), f"{block} shows {sorted(missing)}, which is not in:\n{printed}"


def test_no_block_of_a_tutorial_is_left_out_unless_it_says_why():
    found = [block for page in PAGES for block in blocks_of(page)]
    assert {block.language for block in found} == {"sh", "python", "text"}
    assert Counter(block.page.name for block in found if block.reason) == NOT_RUN
    assert all(text.count("```") == 2 * len(blocks_of(page)) for page in PAGES for text in [page.read_text()])


def every_command() -> list[tuple[Block, list[str]]]:
    """All commands of README, docs and showcases."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [block for page in pages for block in blocks_of(page) if block.language in ("sh", "bash")]
    return [(block, arguments) for block in blocks for arguments in gatas_commands(block)]


def test_every_command_of_every_page_exists_with_its_options():
    commands = every_command()
    assert len(commands) > 60
    problems = [f"{block}: gatas {' '.join(arguments)}: {why}" for block, arguments in commands if (why := wrong(arguments))]
    assert problems == []


def wrong(arguments: list[str]) -> str:
    """What is wrong with a command, apart from files that are not there; nothing where it is right."""
    if arguments in (["--help"], ["--version"]):
        return ""
    if arguments[0] not in COMMANDS:
        return "there is no such command"
    command = imported_command(arguments[0])
    rest = arguments[1:]
    while isinstance(getattr(command, "commands", None), dict):
        command, rest = command.commands[rest[0]], rest[1:]
    try:
        command.make_context("gatas", rest)
    except typer.BadParameter as error:
        return error.format_message() if error.format_message().startswith("Missing") else ""  # else a file that is not there
    except USAGE_ERROR as error:
        return str(error.format_message())
    return ""


def test_a_command_with_an_option_that_does_not_exist_is_found():
    assert "No such option" in wrong(["train", "digits", "--epochs", "3"])
    assert wrong(["learn"]) == "there is no such command"
    assert wrong(["train", "digits", "--seeds", "5"]) == ""


def test_blocks_know_their_language_their_line_and_why_they_are_not_run(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n```sh\ngatas train digits  # a comment\n```\n<!-- not run: a GPU -->\n```python\nx\n```\n")
    first, second = blocks_of(page)
    assert (first.language, first.line, first.reason) == ("sh", 2, None)
    assert (second.language, second.line, second.reason) == ("python", 6, "a GPU")
    assert list(gatas_commands(first)) == [["train", "digits"]]


def test_a_block_that_fails_is_named(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\nmkdir inner && cd inner\n```\n```python\nimport os\nprint(os.getcwd())\n```\n```sh\nfalse\n```\n")
    reader, (move, show, fail) = Reader(tmp_path, ROOT, 1), blocks_of(page)
    reader.run(move)
    assert reader.run(show).strip() == str(tmp_path / "inner")
    with pytest.raises(AssertionError, match=r"page\.md:8"):
        reader.run(fail)
