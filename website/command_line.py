"""The reference of the command line, from the commands themselves."""

import re
from collections.abc import Iterator
from typing import Any

from gatas.cli.app import COMMANDS, imported_command
from website.markdown import code, table

INTRODUCTION = """# Command line

Every command with its arguments and options, as `gatas COMMAND --help` prints them. Results go to standard output
(`--json`: for machines), progress and warnings to standard error. A mistake of the user's is one line and exit code 1; Ctrl-C
is exit code 130.
"""


NOTE = re.compile(r"\s*\[([^\[\]]*)\]$")
"""What help says of an argument or option at its end, such as `[default: 10; x>=1]`."""


def page() -> str:
    """Describe all commands, those of a group after one another."""
    commands = [found for name in COMMANDS for found in flat(f"gatas {name}", imported_command(name))]
    return "\n\n".join([INTRODUCTION, *(section(name, command) for name, command in commands)])


def flat(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command by its whole name, or each command of a group."""
    if not isinstance(getattr(command, "commands", None), dict):
        yield name, command
        return
    for part, inner in command.commands.items():
        yield from flat(f"{name} {part}", inner)


def section(name: str, command: Any) -> str:
    """What a command does, how it is called, its arguments and options."""
    context = command.context_class(command, info_name=name)
    usage = " ".join(command.get_usage(context).removeprefix("Usage:").split())
    rows: dict[str, list[tuple[str, str, str]]] = {"argument": [], "option": []}
    for parameter in command.params:
        if (record := parameter.get_help_record(context)) is not None:
            rows[parameter.param_type_name].append(row(*record))
    tables = [table([kind, "meaning", "default"], found) for kind, found in rows.items()]
    return "\n\n".join(part for part in [f"## {name}", command.help, f"```text\n{usage}\n```", *tables] if part)


def row(names: str, text: str) -> tuple[str, str, str]:
    """The names of a parameter, its meaning with its range, and its default or whether it is needed."""
    note = NOTE.search(text)
    notes = note[1].split("; ") if note else []
    default = next((one.removeprefix("default: ") for one in notes if one.startswith("default: ")), "")
    within = [f" ({code(one)})" for one in notes if "=" in one and not one.startswith("default: ")]
    meaning = NOTE.sub("", text).replace("[", "\\[") + "".join(within)
    return code(names), meaning, "must be given" if "required" in notes else code(default)
