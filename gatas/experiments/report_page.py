"""A report's sections as Markdown, and as one HTML page that needs nothing beside it."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from gatas.experiments.report_charts import GRID, INK, Chart

CHARTS = "charts"


@dataclass(frozen=True)
class Block:
    """Some Markdown, the files it was made from, and charts that stand side by side."""

    text: str = ""
    sources: tuple[Path, ...] = ()
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class ReportSection:
    """A part of the report with a heading."""

    name: str
    title: str
    blocks: tuple[Block, ...]


def markdown_page(title: str, lead: str, sections: Sequence[ReportSection], folder: Path) -> str:
    """The report as Markdown; charts are files beside it."""
    lines = [f"# {title}", "", lead, ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        for block in section.blocks:
            lines += [block.text.strip(), ""] if block.text else []
            lines += [from_files(block.sources, folder), ""] if block.sources else []
            for chart in block.charts:
                lines += [
                    f"![{escaped(chart.description)}]({CHARTS}/{chart.name}.svg)",
                    "",
                    from_files(chart.sources, folder),
                    "",
                ]
    return "\n".join(lines).rstrip() + "\n"


def html_page(title: str, lead: str, sections: Sequence[ReportSection], folder: Path) -> str:
    """The report as a page that opens from disk."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"markdown": as_html, "inline": inline, "links": lambda paths: as_html(from_files(paths, folder))}
    return environment.get_template("report.html.jinja").render(title=title, lead=lead, sections=sections)


def from_files(paths: Sequence[Path], folder: Path) -> str:
    """Links from a folder to files."""
    names = [
        f"[{escaped(path.name.removesuffix('.json'))}]({quote(Path(os.path.relpath(path, folder)).as_posix())})"
        for path in paths
    ]
    return f"From {', '.join(names)}"


def escaped(text: str) -> str:
    """Brackets would end a link."""
    return text.replace("[", "\\[").replace("]", "\\]")


def as_html(text: str) -> Markup:
    """Markdown as HTML. What looks like HTML in it is shown, and tables can be scrolled where they are too wide."""
    html: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    html = re.sub(r"(±|\bto) (?=[-+\d])", "\\1\u00a0", html).replace(" = ", "\u00a0=\u00a0")  # lines end elsewhere
    return Markup(html.replace("<table>", '<div class="table" tabindex="0"><table>').replace("</table>", "</table></div>"))


def inline(chart: Chart) -> Markup:
    """A chart in the colours of the page."""
    svg = Markup(chart.svg.replace(INK, "currentColor").replace(GRID, "var(--grid)"))
    named = Markup('<svg role="img" aria-label="{}"').format(chart.description)
    return Markup(svg.replace("<svg", named, 1))


def alone(chart: Chart) -> str:
    """A chart as a file, which may be shown on any ground."""
    return chart.svg.replace("<svg", '<svg style="background: #ffffff"', 1)
