"""The command line as a whole: what its help says, and what it imports to say it."""

import subprocess
import sys
from importlib import import_module
from typing import get_args

import pytest
import typer

from gatas.cli.app import COMMANDS
from gatas.cli.jobs import EngineChoice
from gatas.scale import EngineName

HEAVY = ("matplotlib", "numba", "numpy", "pyarrow", "rich", "scipy", "sklearn", "torch")


def loaded(*arguments):
    """Modules that a command loads, by their first name."""
    code = (
        "import atexit, sys; from gatas.cli import main\n"
        "atexit.register(lambda: print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_help_is_the_first_of_the_command_itself(name):
    place, line = COMMANDS[name]
    module, attribute = place.split(":")
    found = getattr(import_module(module), attribute)
    text = found.info.help if isinstance(found, typer.Typer) else found.__doc__
    assert text is not None and line == text.splitlines()[0]


def test_every_command_says_what_it_does(gatas):
    for name, (_, line) in COMMANDS.items():
        code, out, err = gatas(name, "--help")
        assert code == 0 and err == "" and f"gatas {name} [OPTIONS]" in out
        assert " ".join(line.split()[:6]) in " ".join(out.split())


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(option):
    assert loaded(option).isdisjoint({*HEAVY, "pydantic"})


def test_the_help_of_a_command_imports_no_library_it_works_with():
    code = (
        "import sys\nfrom gatas.cli.app import COMMANDS, imported_command\n"
        "for name in COMMANDS: imported_command(name)\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(modules).isdisjoint({*HEAVY} - {"rich"})
    assert loaded("transitions", "build", "--help").isdisjoint({*HEAVY} - {"rich"})


def test_a_mistyped_command_is_answered_by_the_one_that_was_meant(gatas):
    code, _, err = gatas("trian")
    assert code == 2 and "No such command 'trian'" in err and "'train'" in err


def test_the_choices_of_engines_are_those_there_are():
    assert get_args(EngineChoice) == get_args(EngineName)


@pytest.mark.parametrize("group", [[], ["transitions"], ["config"], ["jobs"]])
def test_no_line_of_the_list_of_commands_is_cut(gatas, group):
    code, out, _ = gatas(*group, "--help")
    listed = out.partition("Commands:")[2]
    assert code == 0 and listed and "..." not in listed and "…" not in listed
