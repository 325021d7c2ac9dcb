"""A picture of a link's explanation: what its log-odds are the sum of, and the likeliest walks from source to target."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from gatas.inference.link_explanation import LinkContribution, LinkExplanation
from gatas.inference.measured_text import text_height, widest_line, wrapped
from gatas.inference.picture import COLOURS, OTHERS, SELF, named_file, readable, save_pictures
from gatas.inference.walk_picture import WalkRow, draw_walks, rows_height, walk_rows, wanted_room

MOST_BARS = 16
"""Contributions that are shown."""
LABEL, TITLE = 9.0, 15.0
"""Points of a bar's label and of the title."""
LABEL_ROOM, LABEL_LINES, TITLE_LINES = 3.0, 3, 3
"""Inches of a bar's label, and lines that it and the title may have; what is longer is cut."""
LINE, HIGHEST_LINE = 0.55, 0.9
"""Inches of a bar and its label: at least, and where there are many walks beside it."""
BARS, LEAST_WALKS, MOST_WALKS, BELOW_ONE_ANOTHER = 4.6, 5.6, 9.6, 10.0
"""Inches from left to right of all bars, of walks beside them, and of a picture that has walks below."""
MARGIN, AXIS, CAPTION = 0.2, 0.55, 0.4
"""Inches around and between, of the numbers below bars, and of the line above walks."""


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


@dataclass(frozen=True)
class _Bar:
    """What is written beside a bar, where it begins and how long it is; `path` is the path that it stands for, if one."""

    label: str
    path: str
    start: float
    value: float

    @property
    def end(self) -> float:
        return self.start + self.value


class _Box(NamedTuple):
    """Where axes are, in inches from the left and from below the title."""

    left: float
    top: float
    width: float
    height: float


def draw_link(explanation: LinkExplanation, top: int = 10) -> Figure:
    """Draw a bar for each contribution, and the likeliest walks over the `top` strongest paths."""
    paths = explanation.paths[: min(top, len(COLOURS))]
    colours = {path.name: COLOURS[k] for k, path in enumerate(paths)}
    bars = _bars(explanation)
    room = min(MOST_WALKS, max(LEAST_WALKS, wanted_room(paths)))
    rows = walk_rows(paths, colours, room)
    if max(LINE, rows_height(rows)) <= _line(bars) * len(bars) / 2:  # few walks would leave half of a wide picture empty
        rows = walk_rows(paths, colours, BELOW_ONE_ANOTHER - 2 * MARGIN)
        of_bars, of_walks = _below_one_another(bars, rows)
    else:
        of_bars, of_walks = _side_by_side(bars, rows, room)
    width = of_walks.left + of_walks.width + MARGIN
    height = max(of_bars.top + of_bars.height + AXIS, of_walks.top + of_walks.height)
    title = wrapped(link_heading(explanation), width - 2 * MARGIN, TITLE, max_lines=TITLE_LINES)
    head = text_height(title, TITLE) + 2 * MARGIN
    figure = Figure(figsize=(width, head + height + MARGIN))
    figure.text(0.5, 1 - MARGIN / figure.get_figheight(), title, fontsize=TITLE, parse_math=False, ha="center", va="top")
    _draw_bars(_axes(figure, of_bars, head), bars, colours)
    _draw_walks(_axes(figure, of_walks, head), explanation, rows, of_walks)
    return figure


def _line(bars: list[_Bar]) -> float:
    """Return the inches that each bar and its label need."""
    return max(LINE, *(text_height(bar.label, LABEL) + 0.1 for bar in bars))


def _labels_end(bars: list[_Bar]) -> float:
    """Return the inches from the left to where labels end."""
    return MARGIN + max(widest_line(bar.label, LABEL) for bar in bars) + 0.1


def _below_one_another(bars: list[_Bar], rows: list[WalkRow]) -> tuple[_Box, _Box]:
    left, height = _labels_end(bars), _line(bars) * len(bars)
    of_bars = _Box(left, 0, BELOW_ONE_ANOTHER - MARGIN - left, height)
    top = height + AXIS + CAPTION
    return of_bars, _Box(MARGIN, top, BELOW_ONE_ANOTHER - 2 * MARGIN, max(LINE, rows_height(rows)))


def _side_by_side(bars: list[_Bar], rows: list[WalkRow], room: float) -> tuple[_Box, _Box]:
    """Stretch bars to the height of many walks, and many bars' walks to theirs."""
    line = min(HIGHEST_LINE, max(_line(bars), (rows_height(rows) + CAPTION) / len(bars)))
    of_bars = _Box(_labels_end(bars), 0, BARS, line * len(bars))
    left = of_bars.left + BARS + 2 * MARGIN
    return of_bars, _Box(left, CAPTION, room, max(rows_height(rows), of_bars.height - CAPTION))


def _axes(figure: Figure, box: _Box, head: float) -> Any:
    """Add axes below a title that is `head` inches high."""
    width, height = figure.get_size_inches()
    bottom = 1 - (head + box.top + box.height) / height
    return figure.add_axes((box.left / width, bottom, box.width / width, box.height / height))


def _bars(explanation: LinkExplanation) -> list[_Bar]:
    """Return a bar for each contribution, each from where the one above ended, and the last for their sum."""
    shown = [*explanation.terms, *explanation.paths[: max(0, MOST_BARS - len(explanation.terms))]]
    found = [(_label(one), one.name if one.kind == "path" else "", one.value) for one in shown]
    if hidden := explanation.contributions[len(shown) :]:
        found.append((f"{len(hidden)} more paths", "", sum(one.value for one in hidden)))
    ends = np.cumsum([value for *_, value in found]).tolist()
    bars = [_Bar(label, path, end - value, value) for (label, path, value), end in zip(found, ends, strict=True)]
    return [*bars, _Bar("log-odds", "", 0.0, ends[-1])]


def _label(one: LinkContribution) -> str:
    """Return a contribution's name with what the probability would be without it."""
    name = wrapped(readable(one.name), LABEL_ROOM, LABEL, max_lines=LABEL_LINES)
    return f"{name}\n{100 * one.probability_without:.1f} % without"


def _draw_bars(axes: Any, bars: list[_Bar], colours: dict[str, str]) -> None:
    """Draw contributions one below the other; the last bar ends at the log-odds."""
    for row, bar in enumerate(bars):
        total = row == len(bars) - 1
        colour = SELF if total else colours.get(bar.path, OTHERS)
        axes.barh(row, bar.value, left=bar.start, color=colour, height=0.62, zorder=2)
        axes.text(max(bar.start, bar.end), row, f" {bar.value:+.2f}", va="center", ha="left", fontsize=9, zorder=3,
                  fontweight="bold" if total else "normal")  # fmt: skip
        if not total:
            axes.plot([bar.end] * 2, [row, row + 1], color="#bbbbbb", linewidth=0.8, zorder=1)
    axes.axvline(0, color="#666666", linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=LABEL, parse_math=False)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    least, most = (extreme(0.0, *(edge for bar in bars for edge in (bar.start, bar.end))) for extreme in (min, max))
    axes.set_xlim(least - 0.04 * (most - least), most + 0.14 * (most - least))  # room for the numbers beside bars
    axes.set_xlabel("log-odds; right speaks for the link, left against it", fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _draw_walks(axes: Any, explanation: LinkExplanation, rows: list[WalkRow], box: _Box) -> None:
    """Draw each walk on a line of its own, from the source on the left to the target on the right."""
    axes.axis("off")
    if not rows:
        text = next((term.name for term in explanation.terms if term.kind == "no path"), "no paths")
        axes.text(0.5, 0.5, text, ha="center", va="center", color="#666666", transform=axes.transAxes)
        return
    axes.set_xlim(0, box.width)
    axes.set_ylim(box.height, 0)
    draw_walks(axes, rows)
    axes.set_title("the likeliest walks of each path, and their share of its probability", fontsize=10, color="#444444")
