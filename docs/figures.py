"""Draws the figures of docs/concepts.md from what the library computes: `python docs/figures.py`.

The first two are of a graph of two authors and six papers that can be checked by hand; the third is of the model that
`gatas train examples/bibliography/topics.yaml` gives. Everything is a function of seeds, so the files are the same each time.
"""

import itertools
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib.colors
import matplotlib.lines
import matplotlib.ticker
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

import gatas
from gatas.datasets.loading import open_dataset
from gatas.inference.picture import COLOURS, OTHERS, SELF
from gatas.training.config import load_config
from gatas.transitions.paths import path_name

FOLDER = Path(__file__).parent
EDGES = [("Ana", "writes", "A"), ("Ana", "writes", "B"), ("Bo", "writes", "B"), ("Bo", "writes", "E"),
         ("A", "cites", "C"), ("B", "cites", "C"), ("B", "cites", "D"), ("C", "cites", "E"), ("F", "cites", "D")]  # fmt: skip
PLACES = {"Ana": (0, 1), "A": (1, 2), "B": (1, 0), "C": (2, 2), "D": (2, 0), "Bo": (2, 1), "E": (3, 1.5), "F": (3, 0)}
COLOUR_OF = {"writes": COLOURS[0], "cites": COLOURS[1]}
NUM_STEPS, SAMPLE_SIZE, NUM_DRAWS = 3, 3, 20_000
PAPER, NUM_PATHS = "jensen-2000-002", 8


def bibliography() -> gatas.Graph:
    """The graph of the first two figures, with an inverse type for each edge type."""
    names, types = list(PLACES), list(COLOUR_OF)
    source, kind, target = zip(*EDGES, strict=True)
    return gatas.Graph.from_edges(
        [names.index(one) for one in source],
        [names.index(one) for one in target],
        [types.index(one) for one in kind],
        edge_type_names=types,
        node_ids=names,
        inverse=True,
    )


def draw_transitions(graph: gatas.Graph) -> Figure:
    """Draw a panel for each step: which edges are walked, what is reached, over which typed path, how likely."""
    row = gatas.Transitions.build(graph, NUM_STEPS).row(graph.index_of("Ana"))
    figure = Figure(figsize=(5, 8.6), layout="constrained")
    for step, axes in enumerate(figure.subplots(NUM_STEPS, 1), start=1):
        here = row.step == step
        shares = {str(graph.id_of(node)): float(row.probability[here & (row.node == node)].sum()) for node in row.node[here]}
        before = {str(graph.id_of(node)) for node in row.node[row.step < step]}
        latest = {str(graph.id_of(node)) for node in row.node[row.step == step - 1]}
        draw_graph(axes, shares, before, latest)
        lines = [
            f"{graph.id_of(node)}  {path_name(int(path), graph.relation_names)}  {Fraction(float(share)).limit_denominator(99)}"
            for node, path, share in zip(row.node[here], row.path[here], row.probability[here], strict=True)
        ]
        axes.text(1.5, -0.62, "\n".join(lines), ha="center", va="top", fontsize=11, linespacing=1.5)
        axes.set_title("1 step" if step == 1 else f"{step} steps", fontsize=12, loc="left", fontweight="bold")
        axes.set(xlim=(-0.4, 3.4), ylim=(-0.7 - 0.52 * len(lines), 2.35))
        axes.axis("off")
    handles = [matplotlib.lines.Line2D([], [], color=colour, linewidth=2.5, label=name) for name, colour in COLOUR_OF.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=11)
    return figure


def draw_graph(axes: Any, shares: dict[str, float], before: set[str], latest: set[str]) -> None:
    """Draw all nodes and edges; edges that are walked in a step are in colour, nodes that it reaches are filled."""
    for source, kind, target in EDGES:
        walked = (source in latest and target in shares) or (target in latest and source in shares)
        start, end = PLACES[source], PLACES[target]
        arrow = {"arrowstyle": "-|>", "color": COLOUR_OF[kind] if walked else "#cccccc", "linewidth": 2.4 if walked else 1.2,
                 "shrinkA": 13, "shrinkB": 13, "mutation_scale": 13}  # fmt: skip
        axes.annotate("", end, start, arrowprops=arrow, zorder=1)
    for name, (x, y) in PLACES.items():
        share = shares.get(name, 0.0)
        face = blended(COLOURS[2], 0.25 + 0.75 * share) if share else "#e8e8e8" if name in before else "white"
        edge = SELF if name in before or share else "#cccccc"
        axes.scatter(x, y, s=600, facecolor=face, edgecolor=edge, linewidth=1.4, zorder=2)
        axes.text(x, y, name, ha="center", va="center", fontsize=11, fontweight="bold" if name == "Ana" else "normal", zorder=3)


def blended(colour: str, share: float) -> tuple[float, ...]:
    """Mix a colour with white."""
    return tuple(1 - share * (1 - part) for part in matplotlib.colors.to_rgb(colour))


def draw_sample(graph: gatas.Graph) -> Figure:
    """Draw P of each row beside how often it is among S draws without replacement, counted and exact."""
    target = graph.index_of("Ana")
    transitions = gatas.Transitions.build(graph, NUM_STEPS)
    row, sampler = transitions.row(target), gatas.NeighbourSampler(transitions, SAMPLE_SIZE)
    probability = sampler.depth_coefficients.detach().numpy()[row.step] * row.probability
    names = [
        f"{graph.id_of(node)}: {path_name(int(path), graph.relation_names)}"
        for node, path in zip(row.node, row.path, strict=True)
    ]
    places = {(int(node), int(path)): place for place, (node, path) in enumerate(zip(row.node, row.path, strict=True))}
    counts = np.zeros(len(row.node))
    for draw in range(NUM_DRAWS):
        drawn = sampler(torch.tensor([target]), draw=draw)
        for node, path in zip(drawn.node[0].tolist(), drawn.path[0].tolist(), strict=True):
            counts[places[node, path]] += 1
    figure = paired_bars(names, {"P": probability, "share of samples with it": counts / NUM_DRAWS})
    axes = figure.axes[0]
    axes.scatter(
        included(probability), np.arange(len(names)) + 0.2, marker="|", s=130, color=SELF, linewidth=2, label="exact", zorder=3
    )
    handles, labels = axes.get_legend_handles_labels()
    order = [1, 2, 0]  # P, counted, exact
    figure.legend([handles[k] for k in order], [labels[k] for k in order], loc="outside lower center", ncols=3, frameon=False)
    axes.set_title(f"{SAMPLE_SIZE} of {len(names)} rows, drawn {NUM_DRAWS:,} times", fontsize=12)
    return figure


def included(probability: NDArray[Any]) -> NDArray[Any]:
    """How likely each row is among S draws without replacement: the sum over all ordered draws."""
    total = np.zeros(len(probability))
    for drawn in itertools.permutations(range(len(probability)), SAMPLE_SIZE):
        left, chance = float(probability.sum()), 1.0
        for one in drawn:
            chance, left = chance * float(probability[one]) / left, left - float(probability[one])
        total[list(drawn)] += chance
    return total


def draw_attention() -> Figure:
    """Draw the typed paths that a trained model attends to most, with how many rows each has, beside P."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = open_dataset(load_config(FOLDER.parent / "examples" / "bibliography" / "topics.yaml").data)
        found = gatas.fit(gatas.NodeClassifier(dataset), dataset, seed=0, folder=folder).predictor.explain(PAPER, mode="all")
    shown = sorted(found.paths, key=lambda path: -path.attention)[:NUM_PATHS]
    prior, attention = (np.array([getattr(path, name) for path in shown]) for name in ("probability", "attention"))
    names = ["itself" if path.name == "self" else f"{path.name} ({path.num_rows})" for path in shown]
    figure = paired_bars(names, {"prior P": prior, "attention α": attention})
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return figure


def paired_bars(names: list[str], values: dict[str, NDArray[Any]]) -> Figure:
    """Draw two bars for each name, one below the other."""
    figure = Figure(figsize=(5, 0.9 + 0.5 * len(names)), layout="constrained")
    axes = figure.subplots()
    for place, (label, numbers) in enumerate(values.items()):
        axes.barh(
            np.arange(len(names)) + 0.4 * place - 0.2, numbers, height=0.36, color=(OTHERS, COLOURS[0])[place], label=label
        )
    axes.set_yticks(range(len(names)), names, fontsize=10)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def save(figure: Figure, name: str) -> None:
    """Write a figure as SVG, the same bytes each time."""
    with matplotlib.rc_context({"svg.hashsalt": "gatas"}):
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    save(draw_transitions(bibliography()), "concepts-transitions")
    save(draw_sample(bibliography()), "concepts-sample")
    save(draw_attention(), "concepts-attention")
