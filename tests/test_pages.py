"""Links of README and of the pages lead somewhere. Their code is run by tests/website/test_pages.py."""

import re
from pathlib import Path

import pytest

from website.hooks import GENERATED

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_of_a_page_lead_to_files_and_headings_that_are_there(page):
    path = ROOT / page
    for link in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    ):
        place, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = path.parent / place if place else path
        if path.parent == ROOT / "docs" and place in GENERATED:  # pages of the site alone
            continue
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """What GitHub and the site call the headings of a page, where both agree."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-") for heading in headings}
