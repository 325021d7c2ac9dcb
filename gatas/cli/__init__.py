"""The command line: each command reads its arguments, calls the library, and prints one result."""

import sys


def main() -> None:
    """Run the `gatas` command. Importing takes seconds, in which Ctrl-C must do what it does later."""
    try:
        from gatas.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


__all__ = ["main"]
