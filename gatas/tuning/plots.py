"""Pictures of a search: how good the trials were, and which settings made the difference."""

import math
from collections.abc import Sequence
from io import BytesIO
from statistics import median
from typing import TYPE_CHECKING, Any

from gatas.training.plots import COLOURS
from gatas.tuning.trial import Trial, best_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 6
"""Settings whose values are plotted against the metric: those that mattered most."""


def history_plot(trials: Sequence[Trial], metric: str) -> "Figure":
    """Plot the metric of each trial, and the best so far. Trials that were far worse than most lie on the lower edge."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    _look_closely(axes, [trial.metric for trial in trials if trial.outcome == "finished" and trial.metric is not None])
    low = axes.get_ylim()[0] if axes.get_autoscaley_on() is False else -math.inf
    kinds = {"finished": ("o", COLOURS[0]), "pruned": ("x", COLOURS[7]), "diverged": ("v", COLOURS[2])}
    for kind, (marker, colour) in kinds.items():
        some = [trial for trial in trials if trial.outcome == kind and trial.metric is not None]
        if some:
            numbers, values = [trial.number for trial in some], [max(trial.metric or 0.0, low) for trial in some]
            axes.scatter(numbers, values, marker=marker, s=28, color=colour, label=kind, zorder=2, clip_on=False)
    so_far = [best_of(trials[: trial.number]) for trial in trials]
    known = [(number, best.metric) for number, best in enumerate(so_far, start=1) if best is not None]
    axes.step(*zip(*known, strict=True), where="post", color=COLOURS[1], linewidth=1.8, label="best so far", zorder=1)
    best = so_far[-1]
    title = "" if best is None else f"best: {best.metric:.4f} in trial {best.number}"
    axes.set(xlabel="trial", ylabel=f"validation {metric.replace('_', ' ')}", title=title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside lower center", ncols=4)  # trials may lie anywhere within
    return figure


def importance_plot(importance: dict[str, float], trials: Sequence[Trial], metric: str) -> "Figure":
    """Plot the share of each setting in what made trials good, and the metric over the values of those that had most."""
    from matplotlib.figure import Figure

    names = sorted(importance, key=lambda name: importance[name])
    figure = Figure(figsize=(12, max(5.0, 0.32 * len(names) + 1.2)), layout="constrained")
    bars, values = figure.subfigures(1, 2, width_ratios=(1, 1.5), squeeze=False)[0]
    axes = bars.subplots()
    axes.barh([_short(name) for name in names], [importance[name] for name in names], color=COLOURS[0])
    axes.set(title="What mattered", xlabel="importance (all settings: 1)")
    axes.spines[["top", "right"]].set_visible(False)
    shown = names[::-1][:SHOWN]
    grid = values.subplots(math.ceil(len(shown) / 3), min(3, len(shown)), squeeze=False, sharey=True).ravel()
    finished = [trial for trial in trials if trial.outcome == "finished"]
    for place, name in zip(grid, shown, strict=False):
        _scatter(place, name, finished)
    for place in grid[len(shown) :]:
        place.set_visible(False)
    _look_closely(grid[0], [trial.metric for trial in finished if trial.metric is not None])
    values.supylabel(f"validation {metric.replace('_', ' ')}")
    return figure


def _scatter(axes: Any, name: str, trials: Sequence[Trial]) -> None:
    values = [trial.settings[name] for trial in trials]
    metrics = [trial.metric for trial in trials]
    distinct = len({repr(value) for value in values})
    few = distinct <= min(8, len(values) - 1) or not all(isinstance(value, int | float) for value in values)
    if few:  # at even distances, by size where they have one
        order = sorted({repr(value): value for value in values}.values(), key=_by_size)
        places = {repr(value): place for place, value in enumerate(order)}
        axes.scatter([places[repr(value)] for value in values], metrics, s=18, color=COLOURS[0], alpha=0.8)
        axes.set_xticks(range(len(order)), [_written(value) for value in order], fontsize=8)
        axes.set_xlim(-0.5, len(order) - 0.5)
    else:
        axes.scatter(values, metrics, s=18, color=COLOURS[0], alpha=0.8)
        if min(values) > 0 and max(values) > 20 * min(values):
            axes.set_xscale("log")
        axes.tick_params(axis="x", labelsize=8)
    axes.set_title(_short(name), fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def _look_closely(axes: Any, metrics: Sequence[float]) -> None:
    """Leave out trials that were far worse than most, which would press all others together."""
    if len(metrics) > 4:
        high, middle = max(metrics), median(metrics)
        low = max(min(metrics), middle - 3 * max(high - middle, 1e-3))
        margin = 0.06 * max(high - low, 1e-3)
        axes.set_ylim(low - margin, high + margin)


def _by_size(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return not number, float(value) if number else 0.0, repr(value)


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def _short(name: str) -> str:
    return name.partition(".")[2]


def png(figure: "Figure") -> bytes:
    """Return a figure as a PNG file."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=120, format="png")
    return buffer.getvalue()
