"""Whether the extra `gatas[experiments]` is installed."""

from importlib.util import find_spec

from gatas.errors import GatasError

PACKAGES = {"jinja2": "Jinja2", "markdown_it": "markdown-it-py"}
"""What the extra has and the core does without, by the name it is imported by."""


def check_extra(command: str) -> None:
    """Refuse a command that needs the extra where it is not installed."""
    missing = [name for module, name in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise GatasError(f"gatas {command} needs {' and '.join(missing)}: pip install 'gatas[experiments]'")
