"""The hooks of mkdocs.yml: add generated pages and linked files, make links lead to where these are, keep numbers whole."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from website import command_line, http_api, notebook, python_api, settings, tables
from website.repository import linked_files, listing, moved_links
from website.unbroken import without_breaks

ROOT = Path(__file__).parents[1]
GENERATED = {
    "reference/command-line.md": command_line.page,
    "reference/settings.md": settings.page,
    "reference/python.md": python_api.page,
    "reference/http.md": http_api.page,
    "tables.md": tables.page,
    "quick-start-notebook.md": notebook.page,
}
"""Pages that are written from the code and from results/, never committed."""


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, and all files of the repository that pages link to."""
    for name, page in GENERATED.items():
        files.append(File.generated(config, name, content=page()))
    for path, name in linked_files(ROOT).items():
        if path.is_dir():
            files.append(File.generated(config, name, content=listing(path, ROOT)))
        else:
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make links to files of the repository lead to their copies in the site."""
    return moved_links(markdown, page.file.src_uri, ROOT)


def on_page_content(html: str, **_: Any) -> str:
    """Keep numbers in tables on one line with their deviations and units."""
    return without_breaks(html)
