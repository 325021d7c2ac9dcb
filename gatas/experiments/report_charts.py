"""The charts of a report, as SVG with text as text: small enough to be read on a phone, one below the other."""

import io
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from gatas.experiments.baselines import PEERS
from gatas.experiments.baselines.links import LINK_PEERS
from gatas.experiments.compare_table import ComparisonTable, spoken
from gatas.experiments.contenders import OURS
from gatas.experiments.report_benchmarks import Scaling
from gatas.experiments.report_results import Result
from gatas.experiments.results import spread
from gatas.training.plots import COLOURS

INK, GRID = "#1f2328", "#d8dee4"
MARKERS = "osD^vPX*"
WIDTH = 4.3
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "gatas", "font.size": 10, "figure.titlesize": 10.5, "legend.fontsize": 9.5,
    "text.color": INK, "axes.labelcolor": INK, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.edgecolor": GRID,
    "xtick.color": GRID, "ytick.color": GRID, "grid.color": GRID, "axes.grid": True, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "grid.linewidth": 0.6,
}  # fmt: skip
BELOW = 10.0
"""How far below the best, in points, an axis goes; what is lower stands at its edge, and the legend says where it is."""


@dataclass(frozen=True)
class Chart:
    """A picture, what it shows in words, and the files it was made from."""

    name: str
    title: str
    description: str
    svg: str
    sources: tuple[Path, ...]


@rc_context(STYLE)
def chart(name: str, title: str, description: str, figure: Figure, sources: Sequence[Path]) -> Chart:
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    content = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(content, format="svg", metadata=nothing, transparent=True)
    svg = content.getvalue()
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg[svg.index("<svg") :])  # many charts stand on one page
    return Chart(name, title, description, svg, tuple(sources))


@rc_context(STYLE)
def accuracy_against_seconds(view: ComparisonTable, results: Sequence[Result]) -> Chart:
    """What each model reaches, and how soon."""
    results = sorted(results, key=lambda result: -statistics.fmean(result.percent))
    known = (OURS, *PEERS, *LINK_PEERS)
    places = [*known, *sorted({one.name for one in results} - set(known))]
    floor, times, words = statistics.fmean(results[0].percent) - BELOW, list[float](), []
    figure, axes = panel(3.1 + 0.17 * math.ceil(len(results) / 2))
    for result in results:
        mean, deviation = statistics.fmean(result.percent), spread(result.percent)
        seconds = max(1e-5, statistics.median(run.seconds_to_best or 0.0 for run in result.runs))
        times.append(seconds)
        place = places.index(result.name)
        low = mean < floor
        style = {"marker": MARKERS[place // len(COLOURS) % len(MARKERS)], "color": COLOURS[place % len(COLOURS)]}
        shared = f" ÷ {result.trained_together}" if result.trained_together > 1 else ""
        label = f"{short(result.name)} {mean:.1f}{' ↓' if low else ''}{shared}"
        size = 9 if result.name == OURS else 6
        axes.plot(seconds, max(mean, floor), linestyle="none", markersize=size, label=label, clip_on=False, **style)
        if not low:
            axes.errorbar(seconds, mean, yerr=deviation, fmt="none", capsize=2, elinewidth=1, ecolor=style["color"])
        words.append(f"{result.name} {mean:.1f} after {seconds:.3g} s{shared}")
    figure.suptitle(f"{view.title}: {metric_name(results[0])} in percent")
    axes.set(xscale="log", xlabel="seconds to the best epoch; ÷ n: a share, of one program for n seeds")
    axes.set_xlim(min(times) / 2, 2 * max(times))
    axes.set_ylim(bottom=floor if statistics.fmean(results[-1].percent) < floor else None)
    plain_ticks(axes.xaxis)
    figure.legend(loc="outside lower center", ncols=2)
    title = f"{view.title}: {metric_name(results[0])} against seconds"
    return chart(f"seconds-{view.name}", title, f"{title}: {'; '.join(words)}.", figure, [one.path for one in results])


@rc_context(STYLE)
def accuracy_against_size(data: str, results: Sequence[Result], paper: Mapping[int, float]) -> Chart:
    """What more neighbours bring; `paper` is what the paper has at each S, in percent."""
    results = sorted(results, key=sample_size)
    sizes, means = [sample_size(one) for one in results], [statistics.fmean(one.percent) for one in results]
    figure, axes = panel(3.1)
    axes.errorbar(sizes, means, yerr=[spread(one.percent) for one in results], marker="o", capsize=3, color=COLOURS[0],
                  label="ours, ± standard deviation")  # fmt: skip
    axes.plot(list(paper), list(paper.values()), marker="s", linestyle="--", color=COLOURS[2], label="the paper")
    figure.suptitle(f"{data}: {metric_name(results[0])} in percent")
    axes.set(xscale="log", xlabel="S: neighbours drawn")
    ticks = sorted({*sizes, *paper})
    axes.xaxis.set(major_locator=FixedLocator(ticks), minor_locator=NullLocator(), major_formatter="{x:g}")
    figure.legend(loc="outside lower center", ncols=2)
    title = f"{data}: {metric_name(results[0])} against S"
    ours = "; ".join(f"S = {size}: {mean:.1f}" for size, mean in zip(sizes, means, strict=True))
    theirs = "; ".join(f"S = {size}: {mean:.1f}" for size, mean in paper.items())
    return chart(f"size-{data}", title, f"{title}. Ours: {ours}. The paper: {theirs}.", figure, [one.path for one in results])


@rc_context(STYLE)
def depth_bars(depths: Mapping[str, list[float]], sources: Sequence[Path]) -> Chart:
    """How far each model came to look: q by step."""
    figure, axes = panel(1.4 + 0.32 * len(depths))
    names = list(depths)
    starts = [0.0] * len(names)
    for step in range(max(map(len, depths.values()))):
        shares = [depth[step] if step < len(depth) else 0.0 for depth in depths.values()]
        colour = COLOURS[step % len(COLOURS)]
        bars = axes.barh(names, shares, left=starts, color=colour, label=step_name(step), height=0.72)
        shown = [f"{share:.2f}" if share >= 0.1 else "" for share in shares]
        axes.bar_label(bars, shown, label_type="center", fontsize=8.5, color="#101418" if step != 0 else "#ffffff")
        starts = [start + share for start, share in zip(starts, shares, strict=True)]
    axes.set(xlim=(0, 1), xlabel="share of q")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=4, columnspacing=1, handlelength=1)
    said = "; ".join(f"{name}: {', '.join(f'{share:.2f}' for share in depth)}" for name, depth in depths.items())
    return chart("depth", "Learned depth q", f"Learned depth q, from the node itself on: {said}.", figure, sources)


@rc_context(STYLE)
def training_curves(result: Result) -> Chart:
    """Loss and metric of seed 0, epoch by epoch."""
    curve: dict[str, Any] = result.record.curves["0"]
    metric = next((name for name in curve if name.startswith("valid_") and name != "valid_loss"), None)
    figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
    losses, *scores = figure.subplots(1 if metric is None else 2, 1, sharex=True, squeeze=False)[:, 0]
    epochs = range(1, len(curve["loss"]) + 1)
    best = next((run.best_epoch for run in result.runs if run.seed == 0 and run.best_epoch < len(epochs)), -1)
    kept = f"best after epoch {best + 1}" if best >= 0 else "no best epoch"
    losses.plot(epochs, curve["loss"], color=COLOURS[0], linewidth=1.3, label="training loss")
    if "valid_loss" in curve:
        losses.plot(epochs, curve["valid_loss"], color=COLOURS[2], linewidth=1.3, label="validation loss")
    for axes in scores:
        axes.plot(epochs, [100 * value for value in curve[str(metric)]], color=COLOURS[2], linewidth=1.3)
        axes.set_ylabel(f"{spoken(str(metric).removeprefix('valid_'))}, %")
    figure.suptitle(f"{result.name}: {kept}")
    losses.set_ylabel("loss")
    losses.legend(loc="upper right")
    for axes in (losses, *scores):
        if best >= 0:
            axes.axvline(best + 1, color=COLOURS[7], linewidth=1, linestyle="--")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=6))
    (losses, *scores)[-1].set_xlabel("epoch")
    title = f"{result.name}: training curves of seed 0"
    reached = (
        f", validation {spoken(metric.removeprefix('valid_'))} {100 * curve[metric][best]:.1f} %"
        if metric and best >= 0
        else ""
    )
    said = f"{title} over {len(epochs)} epochs; {kept}{reached}."
    return chart(f"curves-{result.name}", title, said, figure, [result.path])


@rc_context(STYLE)
def scaling_curves(scaling: Scaling, place: int) -> Chart:
    """Time or memory as graphs grow."""
    figure, axes = panel(3.1 + 0.17 * len(scaling.series))
    for k, (name, points) in enumerate(scaling.series.items()):
        axes.plot(*zip(*points, strict=True), marker=MARKERS[k % len(MARKERS)], color=COLOURS[k % len(COLOURS)], label=name)
    values = [value for points in scaling.series.values() for _, value in points]
    decades = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(1.01 * max(values)))
    axes.set(xscale="log", yscale="log", ylim=decades, xlabel=f"{scaling.size} of the graph", ylabel=scaling.unit)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    figure.legend(loc="outside lower center", ncols=1)
    path, title = scaling.table.path, f"{scaling.table.heading}: {scaling.unit} by {scaling.size}"
    said = "; ".join(
        f"{name}: {', '.join(f'{value:.3g} at {size:,.0f}' for size, value in points)}"
        for name, points in scaling.series.items()
    )
    beside = path.with_suffix(".json")
    sources = [path, *([beside] if beside.exists() else [])]
    return chart(f"scaling-{path.stem}-{place}", title, f"{title}. {said}.", figure, sources)


def panel(height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def plain_ticks(axis: Any) -> None:
    """0.2, 0.5, 1 on a logarithmic axis: powers are drawn with markup, which is lost where text stays text."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 50 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_locator(NullLocator())


def step_name(step: int) -> str:
    return "itself" if step == 0 else f"{step} step{'s' if step > 1 else ''} away"


def sample_size(result: Result) -> int:
    return int(result.record.settings["model"]["sample_size"])


def metric_name(result: Result) -> str:
    return spoken(result.metric)


def short(name: str) -> str:
    """A user's class without its module."""
    return name.rpartition(":")[2]
