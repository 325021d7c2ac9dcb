"""The report on costs beside peers: tables, where the lines cross, and a plot of them."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from benchmarks.report import Report
from gatas.experiments.measuring import NUM_TARGETS
from gatas.experiments.report_charts import MARKERS, STYLE, plain_ticks
from gatas.training.plots import COLOURS

Cell = dict[str, Any]
Points = dict[int, float]  # by edges
MODELS = {
    "on demand": "ours, rows on demand",
    "stored": "ours, rows stored",
    "wide": "ours, on demand, 8 heads of 50",
    "gat": "GAT, full graph",
    "sage": "GraphSAGE, sampled",
}
PACKAGES = ("torch", "triton", "numba", "torch-geometric")
WORK = {"train": "trained", "embed": "embedded"}
UNITS = {"seconds": "s", "bytes": "MiB"}
SCALES = {"seconds": 1.0, "bytes": 2.0**-20}


def crossing(ours: Points, theirs: Points) -> float:
    """The edges from which on ours costs less, interpolated on logarithmic axes; 0: everywhere, infinite: nowhere."""
    sizes = sorted(ours.keys() & theirs.keys())
    gains = [math.log(theirs[size] / ours[size]) for size in sizes]
    if not sizes or gains[-1] <= 0:
        return math.inf
    between = [(place, gain) for place, gain in enumerate(pairwise(gains)) if gain[0] <= 0 < gain[1]]
    if not between:
        return 0.0
    place, (before, after) = between[-1]
    low, high = math.log(sizes[place]), math.log(sizes[place + 1])
    return math.exp(low + (high - low) * before / (before - after))


def predicted_crossing(settings: Mapping[str, Any], what: str) -> float:
    """The edges at which |V| + |Z| = B·S. To embed, a full graph is looked at once for all targets: the B of its time."""
    num_targets = NUM_TARGETS if what == "embed_seconds" else settings["batch_size"]
    return float(num_targets * settings["sample_size"] / (1 + 1 / settings["edges_per_node"]))


def points(cells: Sequence[Cell], model: str, what: str) -> Points:
    scale = SCALES[what.rpartition("_")[2]]
    return {cell["edges"]: scale * cell[what] for cell in cells if cell["model"] == model and cell.get(what, 0) > 0}


def write_report(path: Path, content: dict[str, Any]) -> None:
    """FILE.md and FILE.svg beside FILE.json."""
    cells, settings = (
        sorted(content["cells"], key=lambda cell: (cell["asked"], [*MODELS].index(cell["model"]))),
        content["settings"],
    )
    where = "on a GPU" if content["device"] == "cuda" else "on a CPU"
    question = f"What 1,000 targets cost {where} as graphs grow: ours, full-graph GAT, sampled GraphSAGE"
    report = Report(path.stem, question, PACKAGES, content.get("made"))
    report.add(f"- numbers: [{path.name}]({path.name}), measured on {', '.join(sorted({cell['date'] for cell in cells}))}")
    for line in explained(content):
        report.add(f"\n{line}")
    report.add(f"\n![Seconds and memory against edges]({path.stem}.svg)")
    report.add("\nCircles: where a line crosses that of the full graph. Dotted: where |V| + |Z| = B·S says so.")
    for work, name in WORK.items():
        report.add(f"\n## 1,000 targets {name}")
        rows = [[*shape(cell), MODELS[cell["model"]], *costs(cell, work)] for cell in cells]
        report.table(["edges", "nodes", "largest degree", "model", f"{name}, s", f"{name}, peak MiB"], rows)
    report.add("\n## All nodes")
    add_all_nodes(report, cells, settings)
    report.add("\n## Held all the time")
    kept = [cell for cell in cells if "failed" not in cell]
    rows = [
        [f"{cell['edges']:,}", MODELS[cell["model"]], mib(cell["held_bytes"]), f"{cell['making_seconds']:.3g}"] for cell in kept
    ]
    report.table(["edges", "model", "graph, features, weights, MiB", "made once, s"], rows)
    report.add("Stored rows are made when the model is, on the CPU.")
    report.add("\n## From how many edges on it costs less than the full graph")
    add_crossings(report, cells, settings)
    with rc_context(STYLE):
        plot(cells, settings).savefig(path.with_suffix(".svg"), metadata={"Date": None})
    report.write(path.with_suffix(".md"))


def explained(content: dict[str, Any]) -> list[str]:
    """What was measured."""
    of = content["settings"]
    width = of["num_heads"] * of["head_size"]
    first, second = of["fan_outs"]
    gpu = content["device"] == "cuda"
    memory = "of tensors on the GPU" if gpu else "of the process's resident pages"
    processes = "one process measures all cells, where none fails" if gpu else "each cell has a process of its own"
    return [
        f"Graphs: {of['edges_per_node']} edges a node, one end of each drawn so that there are hubs; both directions count "
        f"as edges. Features of width {of['feature_size']}, {of['num_classes']} classes, all noise.",
        f"Batches of B = {of['batch_size']}: 1,000 targets are {NUM_TARGETS // of['batch_size']} steps. All models look "
        f"{of['num_steps']} steps far, are {width} wide ({of['num_heads']} heads of {of['head_size']}) unless a row says "
        f"otherwise, drop out {of['dropout']:g}, and are trained by our loop. Ours draws S = {of['sample_size']} neighbours "
        f"from the {of['max_candidates']} likeliest of each step (`max_candidates`); GraphSAGE {first} neighbours of a target "
        f"and {second} of each of these, for training and for answers.",
        "Trained is all from the targets' numbers to the optimiser's step: rows of transitions where these are made on demand, "
        "draws, copies to the device, forward, backward, clipping, NAdam. Embedded is the same up to the classes. Left out: "
        "making graph and model and, for stored rows, the table, which the last column under “Held all the time” has.",
        "**A full-graph GAT looks at all edges in every step, whatever the batch.** Trained with batches of B it does so "
        f"{NUM_TARGETS // of['batch_size']} times for 1,000 targets. One look also answers for all nodes at once: “All nodes” "
        "has what it takes to go through all of them, where that is to its advantage.",
        f"Medians of up to five passes after one to warm up. Memory is the peak {memory} above what is held before the first "
        f"pass, – where it was not measured; {processes}.",
    ]


def shape(cell: Cell) -> list[str]:
    if "failed" in cell:
        return [f"{cell['asked']:,}", "–", "–"]
    return [f"{cell[name]:,}" for name in ("edges", "nodes", "largest_degree")]


def costs(cell: Cell, work: str) -> list[str]:
    if "failed" in cell:
        return [cell["failed"], "–"]
    return [f"{cell[f'{work}_seconds']:.3g}", mib(cell.get(f"{work}_bytes"))]


def mib(num_bytes: int | None) -> str:
    if num_bytes is None:
        return "–"
    return f"{num_bytes / 2**20:,.3g}" if num_bytes < 1000 * 2**20 else f"{num_bytes / 2**20:,.0f}"


def add_all_nodes(report: Report, cells: Sequence[Cell], settings: Mapping[str, Any]) -> None:
    """An epoch over all nodes, and all of them embedded."""
    rows = []
    for cell in (cell for cell in cells if "failed" not in cell):
        thousands = cell["nodes"] / NUM_TARGETS
        epoch, embedded = thousands * cell["train_seconds"], thousands * cell["embed_seconds"]
        full = cell["model"] == "gat"
        at_once = cell["train_seconds"] * settings["batch_size"] / NUM_TARGETS if full else None
        rows.append(
            [
                f"{cell['edges']:,}",
                MODELS[cell["model"]],
                f"{epoch:.3g}",
                f"{at_once:.3g}" if at_once is not None else "–",
                f"{cell['embed_seconds'] if full else embedded:.3g}",
            ]
        )
    header = ["edges", "model", "an epoch in batches of B, s", "an epoch in one step, s", "all embedded, s"]
    report.table(header, rows)
    report.add("Computed from the tables above: steps that it takes times seconds a step.")


def add_crossings(report: Report, cells: Sequence[Cell], settings: Mapping[str, Any]) -> None:
    header = ["model", *(f"{name}, {what}" for name in WORK.values() for what in ("time", "memory"))]
    predicted = [f"{predicted_crossing(settings, what):,.0f}" for what in measured()]
    rows = [[MODELS[model], *(edges_in_words(cells, model, what) for what in measured())] for model in MODELS if model != "gat"]
    report.table(header, [["predicted (§3.6): nodes + edges = B·S", *predicted], *rows])
    report.add(
        f"Crossings are interpolated between measurements on logarithmic axes. B is {settings['batch_size']}, but "
        f"{NUM_TARGETS:,} for the time to embed, as one look at the whole graph answers for all of these. "
        "That choice was made after a first trial run had been seen, so that its agreement proves nothing."
    )


def measured() -> list[str]:
    return [f"{work}_{unit}" for work in WORK for unit in UNITS]


def edges_in_words(cells: Sequence[Cell], model: str, what: str) -> str:
    ours, theirs = points(cells, model, what), points(cells, "gat", what)
    sizes = ours.keys() & theirs.keys()
    if not sizes:
        return "–"
    found = crossing(ours, theirs)
    return {0.0: f"below {min(sizes):,}", math.inf: f"above {max(sizes):,}"}.get(found, f"{found:,.0f}")


def plot(cells: Sequence[Cell], settings: Mapping[str, Any]) -> Figure:
    """Seconds and memory against edges; the crossings and where they were predicted."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, what in zip(figure.subplots(2, 2, sharex=True).flat, measured(), strict=True):
        work, unit = what.split("_")
        theirs = points(cells, "gat", what)
        for place, (model, name) in enumerate(MODELS.items()):
            ours = points(cells, model, what)
            style = {"color": COLOURS[place], "marker": MARKERS[place]}
            axes.plot([*ours], [*ours.values()], label=name, markersize=5, **style)
            edges = crossing(ours, theirs)
            if model != "gat" and 0 < edges < math.inf:
                height = np.exp(np.interp(np.log(edges), np.log([*theirs]), np.log([*theirs.values()])))
                axes.plot(edges, height, marker="o", markersize=13, fillstyle="none", color=COLOURS[place])
        axes.axvline(predicted_crossing(settings, what), color=COLOURS[7], linestyle=":", label="|V| + |Z| = B·S")
        axes.set(xscale="log", yscale="log", title=f"1,000 targets {WORK[work]}", ylabel=UNITS[unit], xlabel="edges")
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
