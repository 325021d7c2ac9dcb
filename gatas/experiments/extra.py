"""Whether the extra `gatas[experiments]` is installed."""

from importlib.util import find_spec

from gatas.errors import MissingExtraError

PACKAGES = {"jinja2": "Jinja2", "markdown_it": "markdown-it-py", "torch_geometric": "torch-geometric"}
"""What the extra has, by the name it is imported by. The core does without, though torch and Rich bring the first two."""


def check_extra(command: str) -> None:
    """Refuse a command that needs the extra where it is not installed."""
    missing = [name for module, name in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise MissingExtraError(f"gatas {command} needs {' and '.join(missing)}", "experiments")
