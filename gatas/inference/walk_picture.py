"""Walks from source to target, drawn in inches: boxes as wide as their names, and arrows with names beside them."""

from dataclasses import dataclass
from typing import Any

from matplotlib.patches import FancyArrowPatch

from gatas.inference.link_explanation import PathContribution
from gatas.inference.measured_text import POINTS, longest_word, text_height, widest_line, wrapped
from gatas.inference.picture import readable

MOST_WALKS = 3
"""Of each path."""
NAME, RELATION, SHARE = 9.0, 8.5, 0.55
"""Points of a node's name and of a relation's; inches of the share at the end of a line."""
NAME_LINES, RELATION_LINES = 6, 3
PAD, GAP, HEAD = 0.07, 0.05, 0.3
"""Inches between a name and its box, between a box and an arrow, and of an arrow without a name."""
BETWEEN = 0.2
"""Inches between the boxes of one walk and of the next."""


@dataclass(frozen=True)
class WalkRow:
    """A walk as it is drawn: names broken into lines, the middle of each box, and how much is above and below the arrows."""

    share: float
    colour: str
    names: list[str]
    relations: list[str]
    middles: list[float]
    above: float
    below: float


def walk_rows(paths: tuple[PathContribution, ...], colours: dict[str, str], room: float) -> list[WalkRow]:
    """Lay out the likeliest walks of each path in `room` inches; those of one path have their nodes in columns."""
    return [row for path in paths for row in _rows_of(path, colours[path.name], room - SHARE)]


def rows_height(rows: list[WalkRow]) -> float:
    """Return the inches that all walks take at least."""
    return sum(row.above + row.below + BETWEEN for row in rows)


def wanted_room(paths: tuple[PathContribution, ...]) -> float:
    """Return the inches in which every name has one line."""
    walks = [(path, _names(path)) for path in paths if path.walks]
    return SHARE + max((sum(_boxes(names)) + sum(_arrows(path)) for path, names in walks), default=0.0)


def draw_walks(axes: Any, rows: list[WalkRow]) -> None:
    """Draw walks below one another, evenly; the axes are in inches, from the top left."""
    top, between = 0.0, BETWEEN + (axes.get_ylim()[0] - rows_height(rows)) / len(rows)
    for row in rows:
        middle = top + between / 2 + row.above
        _draw_walk(axes, row, middle)
        axes.text(axes.get_xlim()[1], middle, f"{100 * row.share:.0f} %", ha="right", va="center", fontsize=9, color="#666666")
        top = middle + row.below + between / 2


def _names(path: PathContribution) -> list[list[str]]:
    """Return what is written into the boxes, a list for each walk."""
    return [[readable(node) for node in walk.nodes] for walk in path.walks[:MOST_WALKS]]


def _is_end(place: int, names: list[Any]) -> bool:
    """Say whether a node is the source or the target; their names are bold."""
    return place in (0, len(names) - 1)


def _boxes(walks: list[list[str]]) -> list[float]:
    """Return the inches of each column of boxes where every name has one line."""
    columns = list(zip(*walks, strict=True))
    return [
        2 * PAD + max(widest_line(name, NAME, _is_end(place, columns)) for name in column)
        for place, column in enumerate(columns)
    ]


def _arrows(path: PathContribution, *, least: bool = False) -> list[float]:
    """Return the inches between boxes where every relation has one line; or the least, where it has about two."""
    names = [readable(one) for one in path.relations]
    widths = [max(longest_word(name, RELATION), widest_line(name, RELATION) * (0.6 if least else 1)) for name in names]
    return [max(HEAD, width) + 4 * GAP for width in widths]


def _rows_of(path: PathContribution, colour: str, room: float) -> list[WalkRow]:
    walks = _names(path)
    if not walks:
        return []
    boxes, arrows = _boxes(walks), _arrows(path)
    if sum(boxes) + sum(arrows) > room:
        words = [max(longest_word(name, NAME, bold=True) for name in column) + 2 * PAD for column in zip(*walks, strict=True)]
        least = _arrows(path, least=True)
        arrows = shared(arrows, least, max(sum(least), room - sum(boxes)))
        boxes = shared(boxes, words, room - sum(arrows))
    more = max(0.0, room - sum(boxes) - sum(arrows)) / len(arrows)  # what is left makes arrows longer
    starts = [sum(boxes[:place]) + sum(arrows[:place]) + more * place for place in range(len(boxes))]
    relations = [
        wrapped(readable(one), width + more - 2 * GAP, RELATION, max_lines=RELATION_LINES)
        for one, width in zip(path.relations, arrows, strict=True)
    ]
    middles = [start + width / 2 for start, width in zip(starts, boxes, strict=True)]
    rows = []
    for walk, names in zip(path.walks, walks, strict=False):
        lines = [
            wrapped(name, boxes[place] - 2 * PAD + 1e-6, NAME, bold=_is_end(place, names), max_lines=NAME_LINES)
            for place, name in enumerate(names)
        ]
        half = max(text_height(name, NAME) for name in lines) / 2 + PAD
        above = max(half, max(text_height(one, RELATION) for one in relations) + GAP)
        rows.append(WalkRow(walk.share, colour, lines, relations, middles, above, half))
    return rows


def shared(wanted: list[float], least: list[float], room: float) -> list[float]:
    """Divide room: each gets what it wants up to a common limit, and not less than its least, as far as there is room."""
    least = [min(one, want) for one, want in zip(least, wanted, strict=True)]
    if sum(wanted) <= room:
        return wanted
    if sum(least) > room:
        least = [0.0] * len(wanted)
    low, high = 0.0, max(wanted)
    for _ in range(40):
        limit = (low + high) / 2
        fits = sum(max(one, min(want, limit)) for one, want in zip(least, wanted, strict=True)) <= room
        low, high = (limit, high) if fits else (low, limit)
    return [max(one, min(want, low)) for one, want in zip(least, wanted, strict=True)]


def _draw_walk(axes: Any, row: WalkRow, middle: float) -> None:
    halves = [widest_line(name, NAME, _is_end(place, row.names)) / 2 + PAD for place, name in enumerate(row.names)]
    for step, relation in enumerate(row.relations):
        start, end = row.middles[step] + halves[step] + GAP, row.middles[step + 1] - halves[step + 1] - GAP
        arrow = FancyArrowPatch((start, middle), (end, middle), arrowstyle="-|>", mutation_scale=12, color=row.colour,
                                linewidth=2, shrinkA=0, shrinkB=0)  # fmt: skip
        axes.add_patch(arrow)
        axes.text((start + end) / 2, middle - GAP, relation, ha="center", va="bottom", fontsize=RELATION, color=row.colour,
                  parse_math=False)  # fmt: skip
    box = {
        "facecolor": "white",
        "edgecolor": row.colour,
        "boxstyle": f"round,pad={PAD * POINTS / NAME},rounding_size=0.3",
        "linewidth": 1.2,
    }
    for place, name in enumerate(row.names):
        axes.text(row.middles[place], middle, name, ha="center", va="center", fontsize=NAME, parse_math=False, bbox=box,
                  fontweight="bold" if _is_end(place, row.names) else "normal", zorder=4)  # fmt: skip
