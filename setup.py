"""The description on PyPI, where README.md has no files beside it: its links lead to the repository, at this version's tag.

All else is in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
REPOSITORY = "gatas/gatas"
RELATIVE = re.compile(r"(!?)(\[[^]]*\])\((?!https?:|#)([^)\s]+)\)")


def for_pypi(text: str, tag: str) -> str:
    """Return Markdown whose links to files of the repository are links to GitHub."""

    def absolute(link: re.Match[str]) -> str:
        image, title, path = link.groups()
        place = (
            f"https://raw.githubusercontent.com/{REPOSITORY}/{tag}" if image else f"https://github.com/{REPOSITORY}/blob/{tag}"
        )
        return f"{image}{title}({place}/{path})"

    return RELATIVE.sub(absolute, text)


if __name__ == "__main__":
    (version,) = re.findall(r'^__version__ = "(.+?)"', (HERE / "gatas" / "__init__.py").read_text(), flags=re.MULTILINE)
    readme = for_pypi((HERE / "README.md").read_text(), f"v{version}")
    setup(long_description=readme, long_description_content_type="text/markdown")
