"""Pictures of what a classifier gets wrong, and of how far its probabilities can be believed."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gatas.tasks.calibration import Reliability
from gatas.tasks.class_details import ClassDetails
from gatas.training.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = 40
"""Classes that a picture has room for: the most frequent ones."""
NUMBERED = 15
"""Up to so many classes, every cell has its number."""
LONGEST = 22
"""Letters of a class's name; longer ones are cut."""


def confusion_plot(details: ClassDetails, title: str) -> "Figure":
    """Draw the matrix of confusions: a row for each true class, coloured by the share of it that is taken for another."""
    from matplotlib.figure import Figure

    assert details.confusion is not None
    shown = np.sort(np.argsort(-details.support, kind="stable")[:DRAWN])
    counts = details.confusion[np.ix_(shown, shown)]
    share = counts / np.maximum(details.support[shown], 1)[:, None]
    names = [_short(details.names[k]) for k in shown]
    size = float(np.clip(0.42 * len(shown) + 2.6, 4.5, 14))
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(range(len(names)), names, fontsize=9 if len(names) <= NUMBERED else 7, parse_math=False)
    axes.tick_params(axis="x", rotation=45 if max(map(len, names)) > 3 else 0)
    if max(map(len, names)) > 3:
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    if len(names) <= NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                colour = "white" if share[row, column] > 0.55 else "#222222"
                axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize=8)
    axes.set(xlabel="predicted", ylabel="truth")
    right = int(details.correct.sum())
    some = f", the {DRAWN} most frequent of {len(details.names)} classes" if len(details.names) > DRAWN else ""
    figure.suptitle(f"{title}: {right:,} of {details.num_nodes:,} nodes are right{some}", fontsize=11, parse_math=False)
    figure.colorbar(image, ax=axes, label="share of the true class", shrink=0.8)
    return figure


def reliability_plot(details: ClassDetails, title: str) -> "Figure":
    """Draw a reliability diagram: how often answers are right by how probable they are, before and after calibration."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 5.2), layout="constrained")
    upper, lower = figure.subplots(2, 2, sharex=True, height_ratios=(3, 1))
    parts = ((details.before, "before calibration", COLOURS[1]), (details.after, _after(details), COLOURS[0]))
    most = max(int(bins.count.max()) for bins, _, _ in parts)
    for axes, counts, (bins, name, colour) in zip(upper, lower, parts, strict=True):
        _bars(axes, bins, colour)
        axes.set_title(f"{name}\nexpected calibration error {bins.error:.3f}, log loss {bins.loss:.3f}", fontsize=10)
        _counts(counts, bins, colour, most)
    upper[0].set_ylabel("observed frequency")
    lower[0].set_ylabel("count")
    figure.suptitle(f"{title}: reliability of probabilities", fontsize=12, parse_math=False)
    return figure


def _after(details: ClassDetails) -> str:
    return "without calibration" if details.temperature == 1 else f"after, at temperature {details.temperature:.2f}"


def _edges(bins: Reliability) -> Any:
    return (np.arange(len(bins.count)) + 0.5) / len(bins.count)


def _bars(axes: Any, bins: Reliability, colour: str) -> None:
    there = bins.count > 0
    axes.bar(_edges(bins)[there], bins.frequency[there], width=0.9 / len(bins.count), color=colour, alpha=0.85)
    axes.plot([0, 1], [0, 1], color="#555555", linewidth=1, linestyle="--", label="perfectly calibrated")
    axes.plot(
        bins.probability[there],
        bins.frequency[there],
        "o",
        color="#222222",
        markersize=3.5,
        clip_on=False,
        label="mean of a bin",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left", frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _counts(axes: Any, bins: Reliability, colour: str, most: int) -> None:
    axes.bar(_edges(bins), bins.count, width=0.9 / len(bins.count), color=colour, alpha=0.45)
    axes.set(xlabel="predicted probability", ylim=(0, 1.1 * max(1, most)))
    axes.spines[["top", "right"]].set_visible(False)


def _short(name: str) -> str:
    text = " ".join(name.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
