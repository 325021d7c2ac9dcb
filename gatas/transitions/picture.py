"""A picture of one node's multi-step neighbourhood: rings by step, edges coloured by type, size by probability."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from numpy.typing import NDArray

from gatas.graph import Graph
from gatas.transitions.table import Row

PER_RING = (12, 18, 24)
"""How many nodes a ring shows: the likeliest, ring by ring; later rings show as many as the last."""

COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#7f7f7f",
    "#000000",
)  # told apart by all eyes


@dataclass(frozen=True)
class Placed:
    """A shown node: its ring, its angle, and how likely it is at its step."""

    node: int
    step: int
    angle: float
    probability: float

    @property
    def position(self) -> tuple[float, float]:
        return self.step * np.cos(self.angle), self.step * np.sin(self.angle)


def draw_neighbourhood(graph: Graph, target: int, row: Row, images: NDArray[Any] | None = None, title: str = "") -> Figure:
    """Draw the likeliest neighbours of `target`; with `images` (N, height, width) nodes are shown as pictures."""
    placed = _place(graph, target, row)
    figure = Figure(figsize=(9, 9.6), layout="constrained")
    axes = figure.add_subplot(aspect="equal")
    axes.axis("off")
    steps = int(max(node.step for node in placed.values()))
    for step in range(1, steps + 1):
        circle = np.linspace(0, 2 * np.pi, 200)
        axes.plot(step * np.cos(circle), step * np.sin(circle), color="#dddddd", linewidth=1, zorder=0)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.annotate(f"step {step}", (0, -step + 0.26), ha="center", color="#777777", fontsize=9, bbox=box, zorder=4)
    used = _draw_edges(axes, graph, placed)
    for node in placed.values():
        _draw_node(axes, graph, node, target, images)
    handles = [Line2D([], [], color=COLOURS[kind % len(COLOURS)], label=graph.edge_type_names[kind]) for kind in sorted(used)]
    if handles:
        axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, -0.04), ncols=4, frameon=False)
    axes.set_xlim(-steps - 0.5, steps + 0.5)
    axes.set_ylim(-steps - 0.5, steps + 0.5)
    axes.set_title(title or f"The typed neighbourhood of {graph.id_of(target)}", fontsize=14)
    return figure


def _place(graph: Graph, target: int, row: Row) -> dict[int, Placed]:
    """Choose the likeliest nodes of each ring that hang on a shown node, and put each near what it hangs on."""
    placed = {target: Placed(target, 0, 0.0, 1.0)}
    for step in range(1, int(row.step.max()) + 1):
        here = row.step == step
        nodes, inverse = np.unique(row.node[here], return_inverse=True)
        probability = np.bincount(inverse, row.probability[here])
        parents = {node: _parents(graph, placed, step - 1, node) for node in nodes.tolist()}
        order = [k for k in np.argsort(-probability, kind="stable") if parents[int(nodes[k])]]
        chosen = order[: PER_RING[min(step, len(PER_RING)) - 1]]
        if not chosen:
            break
        chosen.sort(key=lambda k: _mean_angle([placed[parent] for parent in parents[int(nodes[k])]]))
        for place, k in enumerate(chosen):
            angle = 2 * np.pi * place / len(chosen)
            placed[int(nodes[k])] = Placed(int(nodes[k]), step, angle, float(probability[k] / probability[chosen].max()))
    return placed


def _parents(graph: Graph, placed: dict[int, Placed], step: int, node: int) -> list[int]:
    return [parent for parent, place in placed.items() if place.step == step and node in _neighbours(graph, parent)]


def _neighbours(graph: Graph, node: int) -> NDArray[np.int32]:
    return graph.neighbour[graph.indptr[node] : graph.indptr[node + 1]]


def _mean_angle(nodes: list[Placed]) -> float:
    mean = np.mean([np.exp(1j * node.angle) for node in nodes])
    return float(np.angle(mean) % (2 * np.pi))


def _draw_edges(axes: Any, graph: Graph, placed: dict[int, Placed]) -> set[int]:
    """One curve for each edge that leads from a ring to the next; the types that occur."""
    used = set()
    for start in placed.values():
        span = slice(graph.indptr[start.node], graph.indptr[start.node + 1])
        for neighbour, kind in zip(graph.neighbour[span].tolist(), graph.edge_type[span].tolist(), strict=True):
            end = placed.get(neighbour)
            if end is None or end.step != start.step + 1:
                continue
            used.add(kind)
            bend = {"arrowstyle": "-|>", "color": COLOURS[kind % len(COLOURS)], "alpha": 0.45, "linewidth": 1.1,
                    "connectionstyle": f"arc3,rad={0.08 * (kind % 3 - 1)}", "shrinkA": 8, "shrinkB": 9}  # fmt: skip
            axes.annotate("", end.position, start.position, arrowprops=bend, zorder=1)
    return used


def _draw_node(axes: Any, graph: Graph, node: Placed, target: int, images: NDArray[Any] | None) -> None:
    size = 1.0 if node.node == target else 0.45 + 0.55 * node.probability
    if images is not None:
        picture = OffsetImage(images[node.node], zoom=3.2 * size, cmap="gray_r")
        box = AnnotationBbox(picture, node.position, pad=0.1, bboxprops={"edgecolor": "#999999", "linewidth": 0.8})
        axes.add_artist(box)
        return
    colour = "#d55e00" if node.node == target else "#4c72b0"
    axes.scatter(*node.position, s=260 * size, color=colour, edgecolor="white", zorder=2)
    axes.annotate(str(graph.id_of(node.node)), node.position, ha="center", va="center", fontsize=7, zorder=3)
