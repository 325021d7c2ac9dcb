"""Plots of a run's report: ROC and PR curves, calibration of links, and where true links are ranked."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gatas.inference.picture import COLOURS, SELF

MOST_CURVES = 8
"""Classes or types with a curve of their own, the most frequent ones."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores and truths that a curve is made of."""

    name: str
    score: NDArray[Any]
    truth: NDArray[np.bool_]

    @property
    def usable(self) -> bool:
        """Whether there is something to tell apart."""
        return bool(self.truth.any() and not self.truth.all())


def curves_plot(curves: list[Scored], floor: Scored | None) -> Figure:
    """Plot ROC and PR curves: the first of all together, the others of single classes or types; a floor is dashed."""
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    roc, pr = figure.subplots(1, 2)
    styles = [(SELF, 2.4, "-"), *((colour, 1.1, "-") for colour in COLOURS)]
    drawn = list(zip([one for one in curves if one.usable], styles, strict=False))
    drawn += [(floor, ("#9a9a9a", 1.8, "--"))] if floor is not None and floor.usable else []
    for one, (colour, width, style) in drawn:
        look: Any = {"color": colour, "linewidth": width, "linestyle": style}
        false, true, _ = roc_curve(one.truth, one.score)
        precision, recall, _ = precision_recall_curve(one.truth, one.score)
        roc.plot(false, true, label=f"{_short(one.name)}  {roc_auc_score(one.truth, one.score):.3f}", **look)
        pr.plot(recall, precision, label=f"{_short(one.name)}  {average_precision_score(one.truth, one.score):.3f}", **look)
    roc.set(title="ROC, with the area below", xlabel="false positives", ylabel="true positives", xlim=(0, 1), ylim=(0, 1.02))
    pr.set(
        title="Precision and recall, with the mean precision", xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02)
    )
    for axes in (roc, pr):
        axes.spines[["top", "right"]].set_visible(False)
        legend = axes.legend(frameon=False, fontsize=8, loc="lower right" if axes is roc else "lower left")
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def calibration_plot(scored: Scored) -> Figure:
    """Plot how often pairs of each tenth of predicted probability are links; a calibrated model is on the diagonal."""
    figure = Figure(figsize=(5.6, 4.4), layout="constrained")
    axes = figure.subplots()
    tenth = np.minimum((10 * scored.score.astype(np.float64)).astype(np.int64), 9)
    counts = np.bincount(tenth, minlength=10)
    there = counts > 0
    means = [np.bincount(tenth, of, 10)[there] / counts[there] for of in (scored.score, scored.truth)]
    axes.plot([0, 1], [0, 1], color="#9a9a9a", linewidth=1.4, linestyle="--", label="perfectly calibrated")
    axes.plot(*means, color=COLOURS[0], marker="o", linewidth=1.6, label="model", clip_on=False)
    for probability, frequency, count in zip(*means, counts[there], strict=True):
        axes.annotate(f"{count:,}", (probability, frequency), (5, -10), textcoords="offset points", fontsize=8, color="#666666")
    axes.set(xlabel="predicted probability", ylabel="share of true links", xlim=(0, 1), ylim=(0, 1.02))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    return figure


def ranks_plot(ranks: NDArray[np.float64], floor: NDArray[np.float64], floor_name: str, num_nodes: int) -> Figure:
    """Plot how many true ends are ranked first, second or third, up to tenth and so on."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    edges = [1.0, 2, 4, 11, 31, 101, 301, 1001]
    edges = [edge for edge in edges if edge <= num_nodes] + [float(num_nodes + 1)]
    labels = ["1" if last - first <= 1 else f"{first:.0f}–{last - 1:,.0f}" for first, last in pairwise(edges)]
    places = np.arange(len(labels))
    for number, (found, name, colour) in enumerate(((ranks, "model", COLOURS[0]), (floor, floor_name, "#b5b5b5"))):
        share = np.histogram(found, edges)[0] / max(1, len(found))
        axes.bar(places + 0.38 * number - 0.19, share, 0.36, label=name, color=colour)
    axes.set_xticks(places, labels)
    axes.set(xlabel="rank of the true end among all nodes", ylabel="share of links", title="Where true links are ranked")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _short(name: str) -> str:
    text = " ".join(name.split())
    return text if len(text) <= 28 else f"{text[:27]}…"
