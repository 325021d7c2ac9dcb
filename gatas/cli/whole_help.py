"""`WholeHelp`: a group of commands whose help has whole sentences, broken into lines instead of cut."""

from typing import Any

from typer.core import TyperGroup

LONGEST = 500
"""Letters of a command's first sentence; the library's own limit is what fits on its line."""


class WholeHelp(TyperGroup):
    """Lists each command with the first sentence of its help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands; called when help is asked for."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, found.get_short_help_str(LONGEST)) for name, found in commands if found is not None and not found.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
