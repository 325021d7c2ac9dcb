"""The code of README and docs: every block runs, or says why not, and every command has options that exist."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import typer

from gatas.cli.app import COMMANDS, imported_command
from tests.website.code_blocks import Block, QuickReader, Reader, blocks_of, gatas_commands

ROOT = Path(__file__).parents[2]
BIBLIOGRAPHY = Path("examples/bibliography")
TUTORIALS = [
    "docs/quick-start.md",
    "docs/tutorials/own-data.md",
    "docs/tutorials/links.md",
    "docs/tutorials/explanations.md",
    "docs/tutorials/serving.md",
    "docs/tutorials/scale.md",
]
"""Pages that run as they are, one after another in the same folder."""
OTHERS = {
    "README.md": BIBLIOGRAPHY,  # in a folder with its tables
    "docs/coming-from.md": BIBLIOGRAPHY,
    "docs/concepts.md": Path(),
    "docs/explanations.md": Path(),
    "docs/explorer.md": Path(),
    "docs/export.md": Path(),
    "docs/install.md": Path(),
    "docs/new-nodes.md": Path(),
    "docs/nodes.md": Path(),
    "docs/own-data.md": Path(),
    "docs/peers.md": Path(),
    "docs/reliability.md": Path(),
    "docs/scale.md": Path(),
    "docs/serving.md": Path(),
    "docs/tuning.md": Path(),
}
"""Pages that run with less to do, each alone, and the folder of a checkout that they begin in."""
ELSEWHERE = ["docs/showcase-genes.md", "docs/showcase-packages.md"]
"""Pages that run where their small tables are made: tests/test_genes.py, tests/test_packages.py."""
NOT_RUN = {
    "README.md": 1,
    "docs/coming-from.md": 2,
    "docs/explorer.md": 1,
    "docs/export.md": 1,
    "docs/index.md": 1,
    "docs/install.md": 4,
    "docs/peers.md": 1,
    "docs/quick-start.md": 1,
    "docs/scale.md": 5,
    "docs/serving.md": 2,
    "docs/showcase-genes.md": 1,
    "docs/showcase-packages.md": 1,
    "docs/tutorials/links.md": 1,
    "docs/tutorials/scale.md": 2,
    "docs/tutorials/serving.md": 1,
}
"""How many blocks of each page are marked as not run; every other block of code is."""
USAGE_ERROR: Any = typer.BadParameter.__base__
"""Of options that do not exist, among others; typer has no public name for it."""
LANGUAGES = {"sh", "python", "text", "json", "yaml", "bibtex"}
"""Of all blocks; what is not `sh` or `python` is not code."""


@pytest.fixture
def folder(tmp_path):
    """A folder with the examples of the repository, as a checkout has them."""
    shutil.copytree(ROOT / "examples/bibliography", tmp_path / "examples/bibliography")
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Runs that most pages begin with."""
    reader = QuickReader(tmp_path_factory.mktemp("trained"), ROOT)
    reader.run(Block(Path("trained"), 0, "sh", "gatas train digits\ngatas train kinship\n", None))
    return reader.folder / "runs"


@pytest.mark.slow
def test_the_code_of_the_quick_start_and_of_the_tutorials_runs_and_prints_what_is_shown(folder):
    for page in TUTORIALS:
        Reader(folder, ROOT).run_page(ROOT / page)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore", r"error:.*columns? (was|were) not used")
@pytest.mark.parametrize("page", OTHERS)
def test_the_code_of_a_page_runs_with_fewer_epochs_and_prints_what_is_shown(page, folder, trained):
    shutil.copytree(trained, folder / "runs")
    (folder / BIBLIOGRAPHY / "runs").symlink_to(folder / "runs")
    QuickReader(folder / OTHERS[page], ROOT).run_page(ROOT / page)


def test_no_block_is_left_out_unless_it_says_why():
    blocks = {page: blocks_of(ROOT / page) for page in every_page()}
    code = {page: [block for block in found if block.language in ("sh", "python")] for page, found in blocks.items()}
    assert {page: n for page, found in code.items() if (n := sum(block.reason is not None for block in found))} == NOT_RUN
    run = {page for page, found in code.items() if any(block.reason is None for block in found)}
    assert run == {*TUTORIALS, *OTHERS, *ELSEWHERE}
    assert {block.language for found in blocks.values() for block in found} == LANGUAGES
    assert all((ROOT / page).read_text().count("```") == 2 * len(found) for page, found in blocks.items())


def every_page() -> list[str]:
    """README and all pages of docs."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


def every_command() -> list[tuple[Block, list[str]]]:
    """All commands of README, docs and showcases."""
    blocks = [block for page in every_page() for block in blocks_of(ROOT / page) if block.language == "sh"]
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
    reader, (move, show, fail) = Reader(tmp_path, ROOT), blocks_of(page)
    reader.run(move)
    assert reader.run(show).strip() == str(tmp_path / "inner")
    with pytest.raises(AssertionError, match=r"page\.md:8"):
        reader.run(fail)
