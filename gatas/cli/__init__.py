"""The command line: each command reads its arguments, calls the library, and prints one result."""

from gatas.cli.app import main

__all__ = ["main"]
