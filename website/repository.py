"""Files of the repository outside docs/ that pages link to: results, reports, examples, the changelog.

Links in Markdown lead from file to file of the repository, so that they work wherever that is read. The site has a copy of each
file that is linked to, Markdown as a page and a folder as a page that lists it, and links are made to lead there.
"""

import re
from os.path import relpath
from pathlib import Path, PurePosixPath

LINK = re.compile(r"\]\(([^)\s]+)\)")
RENAMED = {"README.md": "readme.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files at the top of the repository that are pages; by usage a site has small letters, and `README.md` is a folder's index."""
TOP = tuple(RENAMED)


def linked_files(root: Path) -> dict[Path, str]:
    """Find what pages link to outside docs/, and what that links to in turn, each with its name in the site."""
    found: dict[Path, str] = {}
    waiting = [*sorted((root / "docs").rglob("*.md")), *(root / name for name in TOP)]
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        if not path.is_relative_to(root / "docs"):
            found[path] = name_in_site(path, root)
        waiting += sorted(targets(path, root) - found.keys())
    return found


def targets(path: Path, root: Path) -> set[Path]:
    """The files and folders of the repository, outside docs/, that a page links to or a folder holds."""
    if path.is_dir():
        return set(entries(path))
    if path.suffix != ".md":
        return set()
    linked = {target(link, path, root) for link in LINK.findall(path.read_text(encoding="utf-8"))}
    return {one for one in linked if one is not None and not one.is_relative_to(root / "docs")}


def target(link: str, page: Path, root: Path) -> Path | None:
    """The file or folder of the repository that a link of a page leads to; None where it leads elsewhere or nowhere."""
    place = link.partition("#")[0]
    if not place or "://" in link or link.startswith(("mailto:", "data:")):
        return None
    path = (page.parent / place).resolve()
    return path if path.is_relative_to(root) and path.exists() else None


def entries(folder: Path) -> list[Path]:
    """What a folder holds, without hidden files and what Python leaves behind; folders last."""
    kept = [path for path in folder.iterdir() if not path.name.startswith((".", "__")) and path.name != "runs"]
    return sorted(kept, key=lambda path: (path.is_dir(), path.name))


def listing(folder: Path, root: Path) -> str:
    """A page that lists what a folder holds."""
    rows = [f"- [`{path.name}{'/' if path.is_dir() else ''}`]({path.name})" for path in entries(folder)]
    return "\n".join([f"# {folder.relative_to(root).as_posix()}", "", *rows, ""])


def name_in_site(path: Path, root: Path) -> str:
    """The name of a page or file in the site."""
    if path.is_relative_to(root / "docs"):
        return path.relative_to(root / "docs").as_posix()
    name = path.relative_to(root).as_posix()
    return f"{name}/index.md" if path.is_dir() else RENAMED.get(name, name)


def source_of(name: str, root: Path) -> Path:
    """The file of the repository that a page of the site is made from."""
    for original, renamed in RENAMED.items():
        if name == renamed:
            return root / original
    copied = "/" in name and (root / name).parent.is_dir()
    return root / name if copied else root / "docs" / name


def moved_links(markdown: str, name: str, root: Path) -> str:
    """Make the links of a page, named as in the site, lead from page to page of the site."""
    source, here = source_of(name, root), PurePosixPath(name).parent

    def moved(match: re.Match[str]) -> str:
        path = target(match[1], source, root)
        if path is None:
            return match[0]
        _, mark, anchor = match[1].partition("#")
        return f"]({relpath(name_in_site(path, root), here)}{mark}{anchor})"

    return LINK.sub(moved, markdown)
