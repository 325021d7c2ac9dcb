"""The documentation site: it builds strictly, needs no network, and its reference has everything that there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

import gatas
from gatas.cli.app import COMMANDS
from gatas.tasks.config import ModelConfig
from gatas.training.config import TrainingConfig
from tests.browser import CHROMIUM
from website import command_line, http_api, python_api, settings
from website.examples_in_docstrings import EXAMPLE
from website.repository import linked_files, listing, moved_links
from website.unbroken import without_breaks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it: a warning, such as of a link that leads nowhere, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_built_pages_fetch_nothing_from_other_sites(site):
    fetched = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*\bhref=\"?(?:https?:)?//")
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        assert not fetched.search(page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )['\"]?(?:https?:)?//", sheet.read_text()), sheet


@pytest.mark.slow
def test_lists_and_tables_are_shown_as_such(site):
    text, mark = re.compile(r"<p>(.*?)</p>", re.DOTALL), re.compile(r"^ *(?:- |\d+\. |\| |```)", re.MULTILINE)
    marked = [
        (page.name, found[1])
        for page in site.rglob("*.html")
        for found in text.finditer(page.read_text())
        if mark.search(found[1])
    ]
    assert not marked


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path to open the pages with")
@pytest.mark.parametrize("width", [1400, 390])
def test_pages_open_from_disk_without_errors_and_are_as_wide_as_the_window(site, browser, width):
    page, faults = browser.new_page(viewport={"width": width, "height": 900}), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    for name in ("index", "quick-start", "showcase-genes", "coming-from"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
    code = page.locator(".side-by-side").first.locator("pre")
    first, second = (code.nth(place).bounding_box() for place in (0, 1))
    assert (first["y"] == second["y"]) == (width == 1400)
    page.close()
    assert not faults


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path to open the pages with")
def test_pages_that_are_opened_from_disk_are_searched(site, browser):
    page = browser.new_page()
    page.goto((site / "tutorials/links.html").as_uri())
    page.locator(".md-search__input").click()
    page.keyboard.type("attention")
    expect(page.locator(".md-search-result__meta")).to_contain_text("matching documents", timeout=30_000)
    page.close()


def test_numbers_in_cells_stay_with_their_deviations_and_units():
    assert without_breaks("<td>79.49 ± 1.18</td>") == "<td>79.49\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}1.18</td>"
    kept = "GATAS, S\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}10: 17.46\N{NO-BREAK SPACE}%, 34\N{NO-BREAK SPACE}s"
    assert without_breaks("<th>GATAS, S = 10: 17.46 %, 34 s</th>") == f"<th>{kept}</th>"
    code = '<td><code>a = 1 % 2</code></td><td class="a 1 %">x</td><p>1 %</p>'
    assert without_breaks(code) == code


@pytest.mark.slow
def test_diagrams_that_the_theme_would_fetch_a_script_for_are_absent(site):
    assert not [page for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text()]


def test_the_python_reference_names_all_public_names():
    named = [name for names in python_api.GROUPS.values() for name in names]
    assert sorted(named) == gatas.__all__


def test_the_reference_of_the_command_line_has_every_command_and_option():
    page = command_line.page()
    assert all(f"## gatas {name}" in page for name in COMMANDS)
    assert "## gatas transitions build" in page and "| `--max-waiting " in page


def test_the_reference_of_settings_has_each_with_its_default():
    page = settings.page()
    assert all(f"| `{name}` |" in page for model in (ModelConfig, TrainingConfig) for name in model.model_fields)
    assert "| `learning_rate` | number | `0.005` | of the optimiser |" in page
    assert "links: `100`" not in page and "| `batch_size` | whole number, `auto` | `100`; nodes: `auto`; links: `auto`" in page


def test_the_reference_of_http_has_every_path_and_no_link_without_its_object():
    page = http_api.page()
    assert all(f" {path}\n" in page for path in http_api.openapi()["paths"])
    assert set(re.findall(r"\]\(#(\w+)\)", page)) <= {title.lower() for title in re.findall(r"^### (\w+)$", page, re.MULTILINE)}


def test_links_lead_to_the_copies_of_files_outside_of_docs(tmp_path):
    for name in ("docs", "results"):
        (tmp_path / name).mkdir()
    (tmp_path / "docs/a.md").write_text("[r](../results/r.md) [all](../results) [b](b.md) [web](https://x.org/results)")
    (tmp_path / "docs/b.md").write_text("# b")
    (tmp_path / "results/r.md").write_text("[log](r.json) [a](../docs/a.md#top)")
    (tmp_path / "results/r.json").write_text("{}")
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text("[b](docs/b.md)")
    names = set(linked_files(tmp_path).values())
    assert names == {"results/r.md", "results/index.md", "results/r.json", "readme.md", "changelog.md", "contributing.md"}
    moved = moved_links((tmp_path / "docs/a.md").read_text(), "a.md", tmp_path)
    assert moved == "[r](results/r.md) [all](results/index.md) [b](b.md) [web](https://x.org/results)"
    assert moved_links("[log](r.json) [a](../docs/a.md#top)", "results/r.md", tmp_path) == "[log](r.json) [a](../a.md#top)"
    assert moved_links("[b](docs/b.md)", "readme.md", tmp_path) == "[b](b.md)"
    assert moved_links(listing(tmp_path / "results", tmp_path), "results/index.md", tmp_path).endswith(
        "(r.json)\n- [`r.md`](r.md)\n"
    )


def test_examples_of_docstrings_end_where_a_blank_line_is():
    text = "Fit.\n\n>>> run = fit(\n...     model)\n>>> run.metrics\n\nMore."
    assert EXAMPLE.sub(r"<\g<0>>", text) == "Fit.\n\n<>>> run = fit(\n...     model)\n>>> run.metrics>\n\nMore."
