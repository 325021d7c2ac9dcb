"""A picture of an explanation: the target in the middle, rings by depth, lines coloured by typed path, as wide as attention."""

import re
import textwrap
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch

from gatas.errors import GatasError
from gatas.inference.explanation import Explanation, NumberAnswer
from gatas.inference.measured_text import text_height, widest_line, wrapped

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6a3d9a", "#882255", "#999933", "#7a4b2a")
SELF, OTHERS = "#333333", "#9a9a9a"
WIDEST = 9.0
"""Points of the line that has the most attention."""
GAP = np.pi / 3
"""Left free below the target, for the names of the rings."""
MOST = 40
"""Rows that a picture has room for."""
WHOLE = 200
"""Letters of a name that are looked at; no picture has room for more."""
TITLE, CAPTION, LABEL, MIDDLE = 15.0, 10.0, 8.5, (6.5, 11.0)
"""Points of the heading, of what is said of each end, of a neighbour's id, and of the target's, at least and at most."""
WIDTH, LABEL_ROOM, MIDDLE_ROOM, MARGIN = 8.4, (1.9, 2.4), 1.2, 0.2
"""Inches of one end's picture, of lines of a neighbour's id (three or more; two or one), of the target's, of a margin."""
BEYOND = 0.11
"""How far from its neighbour a label begins, where 1 is from ring to ring."""
LABEL_LINES, MIDDLE_LINES, TITLE_LINES = 4, 6, 3
"""Lines that an id or a heading may have; what is longer is cut."""
LEGEND = 0.24
"""Inches of a line of the legend."""


@dataclass(frozen=True)
class Spot:
    """Where a neighbour is shown, and the rows that lead there."""

    step: int
    angle: float
    rows: list[int]

    @property
    def position(self) -> tuple[float, float]:
        return self.step * np.cos(self.angle), self.step * np.sin(self.angle)


def draw_explanation(explanation: Explanation, top: int = 24) -> Figure:
    """Draw the `top` rows most attended to, as far as there is room; of a link both ends, side by side."""
    if explanation.note is not None:
        raise GatasError(f"there is no picture of {explanation.target!r}. {explanation.note} Explain and draw a link instead.")
    ends, top = explanation.ends, min(top, MOST)
    colours = _colours(ends, top)
    handles, columns = _handles(explanation, colours), 2 * len(ends)
    labelled = [_labelled(end, _placed(end, top, colours)) for end in ends]
    title = wrapped(heading(explanation), WIDTH * len(ends) - 2 * MARGIN, TITLE, max_lines=TITLE_LINES)
    captions = [_caption(end, top) for end in ends]
    head = 0.65 + text_height(title, TITLE) + max(text_height(caption, CAPTION) for caption in captions)
    height = max(WIDTH * (box.top - box.bottom) / (box.right - box.left) for _, box in labelled)
    figure = Figure(figsize=(WIDTH * len(ends), head + height + LEGEND * -(-len(handles) // columns)), layout="constrained")
    widest = max(float(end.attention.max(initial=0.0)) for end in ends) or 1.0
    every = zip(np.atleast_1d(figure.subplots(1, len(ends))), ends, labelled, captions, strict=True)
    for axes, end, (labels, box), caption in every:
        axes.set(xlim=(box.left, box.right), ylim=(box.bottom, box.top))
        axes.set_title(caption, fontsize=CAPTION, color="#444444", parse_math=False)
        _draw_end(axes, end, colours, labels, widest, {other.target for other in ends})
    figure.suptitle(title, fontsize=TITLE, parse_math=False)
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def save_pictures(explanation: Explanation, folder: Path, top: int = 24, *, suffix: str = "") -> list[Path]:
    """Write the picture as PNG and as SVG, named after what is explained, with a suffix; the same bytes each time."""
    figure, name = draw_explanation(explanation, top), f"{file_name(explanation)}{suffix}"
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with matplotlib.rc_context({"svg.hashsalt": "gatas"}):
        figure.savefig(paths[0], dpi=120)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def file_name(explanation: Explanation) -> str:
    """Return `node-ana` or `link-ana-likes-bo`; letters that files may not have are replaced, and a number tells ids apart."""
    ends, answer = explanation.ends, explanation.answer
    parts = (
        ["node", ends[0].target] if len(ends) == 1 or answer is None else ["link", ends[0].target, answer.name, ends[1].target]
    )
    return named_file(parts)


def named_file(parts: list[int | str]) -> str:
    """Join the parts of a name; letters that files may not have are replaced, and a number tells such names apart."""
    name = "-".join(map(str, parts))
    safe = re.sub(r"[^\w.-]", "_", name)[:60]  # of up to four bytes; names of files have at most 255
    return safe if safe == name else f"{safe}-{zlib.crc32(name.encode()):08x}"


def heading(explanation: Explanation) -> str:
    """Return `42: “1”, 93.1 %`, or `ana – likes → bo: 88.0 %`."""
    ends, answer = explanation.ends, explanation.answer
    names = [readable(end.target) for end in ends]
    if answer is None:
        return names[0]
    if isinstance(answer, NumberAnswer):
        return f"{names[0]}: {answer.name} {answer.value:.4g}"
    chance = f"{100 * answer.probability:.1f} %"
    return f"{names[0]} – {answer.name} → {names[1]}: {chance}" if len(ends) > 1 else f"{names[0]}: “{answer.name}”, {chance}"


def readable(name: int | str) -> str:
    """Return an id on one line, not too long."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in str(name)).split())
    return text if len(text) <= WHOLE else f"{text[: WHOLE - 1]}…"


def _shown(explanation: Explanation, top: int) -> list[int]:
    """Return the rows that are drawn as lines; that of the target itself is drawn around it."""
    return [row for row in range(min(top, len(explanation))) if explanation.step[row] > 0]


def _colours(ends: tuple[Explanation, ...], top: int) -> dict[str, str]:
    """Choose a colour for each path that is shown, the most attended to first; the rest have one in common."""
    most: dict[str, float] = {}
    for end in ends:
        attention = {part.name: part.attention for part in end.paths}
        for path in {end.path[row] for row in _shown(end, top)}:
            most[path] = max(most.get(path, 0.0), attention[path])
    paths = sorted(most, key=lambda path: (-most[path], path))
    return {path: COLOURS[k] if k < len(COLOURS) else OTHERS for k, path in enumerate(paths)}


def _placed(explanation: Explanation, top: int, colours: dict[str, str]) -> list[Spot]:
    """Give every neighbour an angle of its own, so that neither lines nor labels meet; those of a path stand together."""
    rows: dict[int | str, list[int]] = {}
    for row in _shown(explanation, top):
        rows.setdefault(explanation.neighbour[row], []).append(row)
    order = list(colours)
    spots = sorted(rows.values(), key=lambda own: (order.index(explanation.path[own[0]]), own[0]))
    angles = 1.5 * np.pi - GAP / 2 - (2 * np.pi - GAP) * (np.arange(len(spots)) + 0.5) / max(1, len(spots))
    return [Spot(int(explanation.step[own[0]]), float(angle), own) for own, angle in zip(spots, angles, strict=True)]


@dataclass(frozen=True)
class Bounds:
    """What a picture must have room for: rings, and labels as far as they reach."""

    left: float
    right: float
    bottom: float
    top: float


def _labelled(end: Explanation, spots: list[Spot]) -> tuple[list[tuple[Spot, str]], Bounds]:
    """Break the ids of neighbours into lines; of many close together each has fewer, and these are longer."""
    names = [readable(end.neighbour[spot.rows[0]]) for spot in spots]
    lines = [LABEL_LINES] * len(spots)
    for _ in range(4):  # labels take room from rings, and the smaller these are the less room there is between labels
        labels = [
            wrapped(name, LABEL_ROOM[0 if count > 2 else 1], LABEL, max_lines=count)
            for name, count in zip(names, lines, strict=True)
        ]
        found = _bounds(spots, labels)
        between = 0.9 * WIDTH / (found.right - found.left) * (2 * np.pi - GAP) / max(1, len(spots))
        fitting = [int(between * (spot.step + BEYOND) / text_height("", LABEL)) for spot in spots]
        lines = [min(count, max(1, own)) for count, own in zip(lines, fitting, strict=True)]
    return list(zip(spots, labels, strict=True)), found


def _bounds(spots: list[Spot], labels: list[str]) -> Bounds:
    """Fit rings and labels. What a label takes of the picture's width depends on that width, so it is found step by step."""
    steps = max([1, *(spot.step for spot in spots)]) + 0.12
    angles = np.array([spot.angle for spot in spots])
    inches = np.array([widest_line(label, LABEL) for label in labels])
    distance = np.array([spot.step + 0.2 for spot in spots])
    found = Bounds(-steps, steps, -steps, steps)
    for _ in range(8):
        tips = distance + inches / WIDTH * (found.right - found.left)
        x, y = tips * np.cos(angles), tips * np.sin(angles)
        found = Bounds(min([-steps, *x]), max([steps, *x]), min([-steps, *y]), max([steps, *y]))
    return found


def _caption(end: Explanation, top: int) -> str:
    """Say how much of an end's neighbourhood is drawn."""
    drawn = min(top, len(end))
    shown = f"{drawn:,} of {len(end):,} rows shown, {100 * end.attention[:drawn].sum():.0f} % of the attention"
    lines = (
        f"{readable(end.target)}: {shown}",
        f"{len(end):,} of {end.num_candidates:,} candidates, {100 * end.coverage:.0f} % of P",
    )
    return "\n".join(wrapped(line, WIDTH - 2 * MARGIN, CAPTION, max_lines=TITLE_LINES) for line in lines)


def _draw_end(
    axes: Any,
    end: Explanation,
    colours: dict[str, str],
    labels: list[tuple[Spot, str]],
    widest: float,
    targets: set[int | str],
) -> None:
    axes.set_aspect("equal")
    axes.axis("off")
    steps = max([1, *(spot.step for spot, _ in labels)])
    for step in range(1, steps + 1):
        axes.add_patch(Circle((0, 0), step, fill=False, edgecolor="#e3e3e3", linewidth=1, zorder=0))
        caption = f"{end.depths[step].name}: {100 * end.depths[step].attention:.0f} %"
        axes.text(0, -step, caption, ha="center", va="center", color="#666666", fontsize=9, zorder=5,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
    for spot, label in labels:
        _draw_spot(axes, end, spot, colours, widest)
        _label(axes, spot, label, bold=end.neighbour[spot.rows[0]] in targets)
    own = WIDEST * end.depths[0].attention / widest
    if own > 0:
        axes.add_patch(Circle((0, 0), 0.3, fill=False, edgecolor=SELF, linewidth=own, zorder=3))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
    name, size = _in_the_middle(readable(end.target))
    axes.text(0, 0, name, ha="center", va="center", fontsize=size, fontweight="bold", zorder=6, parse_math=False, bbox=box)


def _in_the_middle(name: str) -> tuple[str, float]:
    """Break the target's name into lines of whole words, smaller where words are long; return it with its size."""
    least, most = MIDDLE
    lines = textwrap.fill(name, max(9, round((2 * len(name)) ** 0.5)), break_long_words=False, break_on_hyphens=False)
    size = min(most, 110 / max(map(len, lines.split("\n"))))
    return (lines, size) if size >= least else (wrapped(name, MIDDLE_ROOM, least, bold=True, max_lines=MIDDLE_LINES), least)


def _draw_spot(axes: Any, end: Explanation, spot: Spot, colours: dict[str, str], widest: float) -> None:
    x, y = spot.position
    for place, row in enumerate(spot.rows):
        bend = 0.12 * ((place + 1) // 2) * (-1) ** place
        axes.add_patch(
            FancyArrowPatch((0, 0), (x, y), arrowstyle="-", connectionstyle=f"arc3,rad={bend}", color=colours[end.path[row]],
                            linewidth=max(0.5, WIDEST * end.attention[row] / widest), alpha=0.8, shrinkA=0, shrinkB=0,
                            capstyle="round", zorder=1)
        )  # fmt: skip
    colour = colours[end.path[spot.rows[0]]]
    against = end.effect is not None and sum(end.effect[row] for row in spot.rows) < 0
    axes.scatter(x, y, s=70, facecolor="white" if against else colour, edgecolor=colour, linewidth=1.8, zorder=4)


def _label(axes: Any, spot: Spot, label: str, *, bold: bool) -> None:
    """Write a label along the line, beyond its end; the other end of a link in bold."""
    x, y = spot.position
    turned, out = np.degrees(spot.angle) % 360, (spot.step + BEYOND) / spot.step
    left = 90 < turned < 270
    axes.text(x * out, y * out, label, fontsize=LABEL, fontweight="bold" if bold else "normal", zorder=5, parse_math=False,
              rotation=turned - 180 if left else turned, rotation_mode="anchor", va="center", ha="right" if left else "left",
              multialignment="right" if left else "left")  # fmt: skip


def _handles(explanation: Explanation, colours: dict[str, str]) -> list[Line2D]:
    """Make a legend of what colours, widths and dots mean."""
    handles = [Line2D([], [], color=SELF, linewidth=3, label=_share_label("itself", explanation, "itself"))]
    handles += [
        Line2D([], [], color=colour, linewidth=3, label=_share_label(path, explanation, path))
        for path, colour in colours.items()
        if colour != OTHERS
    ]
    if OTHERS in colours.values():
        handles.append(Line2D([], [], color=OTHERS, linewidth=3, label="other paths"))
    if explanation.answer is not None:
        dot: dict[str, Any] = {
            "color": "none",
            "marker": "o",
            "markersize": 8,
            "markeredgecolor": OTHERS,
            "markeredgewidth": 1.8,
        }
        name = explanation.answer.name
        number = isinstance(explanation.answer, NumberAnswer)
        more, less = ("raises", "lowers") if number else ("speaks for", "speaks against")
        handles.append(Line2D([], [], **dot, markerfacecolor=OTHERS, label=f"{more} “{name}”"))
        handles.append(Line2D([], [], **dot, markerfacecolor="white", label=f"{less} “{name}”"))
    return handles


def _share_label(name: str, explanation: Explanation, part: str) -> str:
    """Return the label of a path with the attention of each end."""
    found = [sum(own.attention for own in (*end.paths, *end.depths[:1]) if own.name == part) for end in explanation.ends]
    return f"{name}  {' / '.join(f'{100 * share:.0f} %' for share in found)}"
