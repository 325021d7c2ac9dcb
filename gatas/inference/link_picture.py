"""A picture of a link's explanation: what its log-odds are the sum of, and the likeliest walks from source to target."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from gatas.inference.link_explanation import LinkContribution, LinkExplanation, PathContribution
from gatas.inference.picture import COLOURS, OTHERS, SELF, named_file, readable, save_pictures

MOST_BARS, MOST_WALKS = 16, 3
"""Contributions that are shown, and walks of each path."""
LONGEST_LABEL, ROOM = 44, 40
"""Letters of a bar's label, and of all relations of a walk together."""
LONGEST_LINE, MOST_LINES = 76, 2
"""Letters of all nodes of a walk side by side, and lines that each may have; what is longer is cut."""
LINE, HIGH_LINE = 0.55, 0.85
"""Inches of a bar, or of a walk; and of a walk whose nodes have several lines."""


def link_heading(explanation: LinkExplanation) -> str:
    """Return `ana – likes → bo: 88.0 %, a known link`."""
    known = ", a known link" if explanation.known else ""
    ends = readable(explanation.source), readable(explanation.target)
    return f"{ends[0]} – {explanation.edge_type} → {ends[1]}: {100 * explanation.answer.probability:.1f} %{known}"


def save_link_pictures(explanation: LinkExplanation, folder: Path, top: int = 10) -> list[Path]:
    """Write the picture as PNG and as SVG, named after the link; and that of both neighbourhoods, where they are a part."""
    name = named_file(["link", explanation.source, explanation.edge_type, explanation.target])
    paths, figure = [folder / f"{name}.png", folder / f"{name}.svg"], draw_link(explanation, top)
    with matplotlib.rc_context({"svg.hashsalt": "gatas"}):
        figure.savefig(paths[0], dpi=120)
        figure.savefig(paths[1], metadata={"Date": None})
    if explanation.neighbourhood is None:
        return paths
    return [*paths, *save_pictures(explanation.neighbourhood, folder, 2 * top, suffix="-neighbourhoods")]


def draw_link(explanation: LinkExplanation, top: int = 10) -> Figure:
    """Draw a bar for each contribution, and the likeliest walks over the `top` strongest paths."""
    paths = explanation.paths[: min(top, len(COLOURS))]
    colours = {path.name: COLOURS[k] for k, path in enumerate(paths)}
    num_bars = 1 + min(len(explanation.contributions), MOST_BARS + 1)
    shown = [walk for path in paths for walk in path.walks[:MOST_WALKS]]
    high = any("\n" in label for walk in shown for label in node_labels(walk.nodes))
    num_walks = max(1, len(shown)) * (HIGH_LINE / LINE if high else 1)  # in lines
    if num_walks <= num_bars // 2:  # few walks leave half of a wide picture empty: they stand below
        figure = Figure(figsize=(10, 1.6 + LINE * (num_bars + num_walks)), layout="constrained")
        bars, walks = figure.subplots(2, 1, height_ratios=(num_bars + 1, num_walks + 0.6))
    else:
        figure = Figure(figsize=(15, 1.6 + LINE * max(num_bars, num_walks)), layout="constrained")
        bars, walks = figure.subplots(1, 2, width_ratios=(1, 1.25))
    _draw_bars(bars, explanation, colours)
    _draw_walks(walks, explanation, paths, colours)
    figure.suptitle(link_heading(explanation), fontsize=15, parse_math=False)
    return figure


def _draw_bars(axes: Any, explanation: LinkExplanation, colours: dict[str, str]) -> None:
    """Draw contributions one below the other, each from where the one above ended: the last ends at the log-odds."""
    shown = [*explanation.terms, *explanation.paths[: max(0, MOST_BARS - len(explanation.terms))]]
    rest = sum(path.value for path in explanation.paths) - sum(one.value for one in shown if one.kind == "path")
    hidden = len(explanation.contributions) - len(shown)
    labels, values = [_bar_label(one) for one in shown], [one.value for one in shown]
    if hidden:
        labels, values = [*labels, f"{hidden} more paths"], [*values, rest]
    ends = np.cumsum(values)
    starts = ends - values
    for row, (value, start) in enumerate(zip(values, starts, strict=True)):
        colour = colours.get(shown[row].name, OTHERS) if row < len(shown) else OTHERS
        axes.barh(row, value, left=start, color=colour, height=0.62, zorder=2)
        axes.text(max(start, start + value), row, f" {value:+.2f}", va="center", ha="left", fontsize=9, zorder=3)
        axes.plot([start + value] * 2, [row, row + 1], color="#bbbbbb", linewidth=0.8, zorder=1)
    axes.barh(len(values), ends[-1], color=SELF, height=0.62, zorder=2)
    axes.text(max(0.0, ends[-1]), len(values), f" {ends[-1]:+.2f}", va="center", fontsize=9, fontweight="bold")
    axes.axvline(0, color="#666666", linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(values) + 1), [*labels, "log-odds"], fontsize=9, parse_math=False)
    axes.invert_yaxis()
    least, most = min(0.0, *starts, *ends), max(0.0, *starts, *ends)
    axes.set_xlim(least - 0.04 * (most - least), most + 0.14 * (most - least))  # room for the numbers beside bars
    axes.set_xlabel("log-odds; right speaks for the link, left against it", fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _bar_label(one: LinkContribution) -> str:
    """Return a contribution's name with what the probability would be without it."""
    name = textwrap.shorten(" ".join(one.name.split()), LONGEST_LABEL, placeholder=" …")
    return f"{name}\n{100 * one.probability_without:.1f} % without"


def _draw_walks(axes: Any, explanation: LinkExplanation, paths: tuple[PathContribution, ...], colours: dict[str, str]) -> None:
    """Draw each walk on a line of its own, from the source on the left to the target on the right."""
    axes.axis("off")
    rows = [(path, walk) for path in paths for walk in path.walks[:MOST_WALKS]]
    if not rows:
        text = next((term.name for term in explanation.terms if term.kind == "no path"), "no paths")
        axes.text(0.5, 0.5, text, ha="center", va="center", color="#666666", transform=axes.transAxes)
        return
    axes.set_xlim(-0.12, 1.28)
    axes.set_ylim(len(rows) - 0.4, -0.7)
    for row, (path, walk) in enumerate(rows):
        _draw_walk(axes, row, path, node_labels(walk.nodes), colours[path.name])
        axes.text(1.27, row, f"{100 * walk.share:.0f} %", ha="right", va="center", fontsize=9, color="#666666")
    axes.set_title("the likeliest walks of each path, and their share of its probability", fontsize=10, color="#444444")


def node_labels(nodes: Sequence[int | str]) -> list[str]:
    """Return what the nodes of a walk are called: long ids in two lines, and cut after these, so that all have room."""
    longest = LONGEST_LINE // len(nodes)
    return ["\n".join(textwrap.wrap(str(node), longest, max_lines=MOST_LINES, placeholder=" …")) for node in nodes]


def _draw_walk(axes: Any, row: int, path: PathContribution, names: list[str], colour: str) -> None:
    places, longest = np.linspace(0, 1, len(names)), ROOM // len(names)
    above = 16 if any("\n" in name for name in names) else 4  # points: over boxes of two lines
    for step, relation in enumerate(path.relations):
        ends = (places[step], row), (places[step + 1], row)
        axes.add_patch(
            FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=12, color=colour, linewidth=2, shrinkA=30, shrinkB=30)
        )
        middle = (places[step] + places[step + 1]) / 2, row
        axes.annotate(readable(relation, 2 * longest), middle, (0, above), textcoords="offset points", ha="center", va="bottom",
                      fontsize=8.5, color=colour, parse_math=False)  # fmt: skip
    for place, name in zip(places, names, strict=True):
        weight = "bold" if place in (0.0, 1.0) else "normal"
        box = {"facecolor": "white", "edgecolor": colour, "boxstyle": "round,pad=0.3", "linewidth": 1.2}
        axes.text(
            place, row, name, ha="center", va="center", fontsize=9, fontweight=weight, parse_math=False, bbox=box, zorder=4
        )
