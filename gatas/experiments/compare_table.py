"""The tables of `compare`: what models reach, what they take, and how far they are from ours. Protocols are never mixed."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatas.experiments.contenders import LINKS, METRICS, OURS
from gatas.experiments.paired import BOLD, clear_best, difference
from gatas.experiments.results import ResultRecord, SeedRun, TrainingSession, spread
from gatas.tasks.link_task import GATNE_TYPES

COSTS = ("parameters", "s / epoch", "s to best", "peak memory", "s / 1,000 targets")
NOTE = (
    "Mean ± standard deviation over seeds, in percent; the difference is paired by seed. Seconds are the share of one seed "
    "where several are trained as one program; memory is that of the largest program, with how many seeds it trained."
)
OF_NUMBERS = ("r2", "mae", "rmse")
NUMBERS_NOTE = (
    "R² is the mean over numbers where there are several; negative where a model is worse than the mean of the truth. MAE and "
    "RMSE are in the units of the data, not in percent."
)
CUT = "Cut: ended by a limit (`--epochs`, `--max-seconds`) where training would have gone on. The best epoch until then counts."

LEFT = (
    "Not in the table, because a limit of time or epochs ended some seeds, which might have improved (unless the best "
    "epoch was in the first half):"
)


@dataclass(frozen=True)
class Protocol:
    """How links are measured."""

    title: str
    metrics: tuple[str, ...]  # the first is the one that counts
    note: str


PROTOCOLS = {
    "paper": Protocol(
        "the paper's protocol",
        ("roc_auc", "f1"),
        "ROC-AUC, and F1 at a probability of 0.5: the mean over the edge types that have positives and negatives. Models that "
        "have no logits (MVE, MNE, GATNE-T, PyKEEN's, those without training) have their F1 where as many validation pairs are "
        "accepted as are positive.",
    ),
    "gatne": Protocol(
        "GATNE's protocol",
        ("gatne.roc_auc", "gatne.pr_auc", "gatne.f1"),
        "ROC-AUC, PR-AUC, and F1 where as many pairs are accepted as there are positives.",
    ),
    "ranking": Protocol(
        "filtered ranking",
        ("ranking.mrr", "ranking.hits_at_1", "ranking.hits_at_3", "ranking.hits_at_10", "ranking.macro.mrr"),
        "Either end of each test link is ranked among all nodes, other known links left out; equal scores share their mean "
        "rank. The macro MRR is the mean over types.",
    ),
}
OF_PAIRS = ("paper", "gatne")
"""Protocols of pairs, positives and negatives; links are ranked where the data came without negatives."""
ONE_TRAINING = (
    "Every protocol measures the same runs. Peers are stopped by what is asked for, on validation data: by MRR where links are "
    "ranked, else by macro ROC-AUC; ours by its settings."
)


@dataclass(frozen=True)
class ComparisonTable:
    """One table: its title, where its metrics are in a run, and what a reader must know of them."""

    name: str
    title: str
    metrics: tuple[str, ...]
    notes: tuple[str, ...] = ()


def views(data: str, task: str, split: str, protocols: Sequence[str] = OF_PAIRS) -> list[ComparisonTable]:
    """The tables of a data set: one, or for links one for each protocol."""
    if task != LINKS:
        return [view_of_nodes(data, f"{split}.{METRICS[task]}")]
    found = []
    for name in protocols:
        protocol = PROTOCOLS[name]
        types = " and ".join(GATNE_TYPES.get(data, ())) if name == "gatne" else ""
        title = f"{data}{f', type {types}' if types else ''}: {protocol.title}"
        metrics = tuple(f"{split}.{metric}" for metric in protocol.metrics)
        found.append(ComparisonTable(f"{data}-{name}", title, metrics, (protocol.note, ONE_TRAINING)))
    return found


def view_of_nodes(data: str, metric: str) -> ComparisonTable:
    """The table of models of nodes that are compared by a metric."""
    split, _, name = metric.partition(".")
    if name != "r2":
        return ComparisonTable(data, data, (metric,))
    return ComparisonTable(data, data, tuple(f"{split}.{one}" for one in OF_NUMBERS), (NUMBERS_NOTE,))


def with_each_number(metrics: Sequence[str], found: Mapping[str, ResultRecord]) -> Sequence[str]:
    """Metrics with MAE and RMSE of each number where there are several, whose units differ."""
    split, _, first = metrics[0].partition(".")
    if first != "r2":
        return metrics
    splits = (getattr(run, split) for one in found.values() for run in one.runs)
    names: list[str] = next((list(measured.get("by_target", {})) for measured in splits), [])
    if len(names) < 2:
        return metrics
    return [metrics[0], *(f"{split}.by_target.{name}.{metric}" for name in names for metric in OF_NUMBERS[1:])]


def rendered(view: ComparisonTable, found: Mapping[str, ResultRecord], note: str) -> str:
    """A table in Markdown, from results by model."""
    metrics = with_each_number(view.metrics, found)
    ours = scores(found[OURS], metrics[0]) if OURS in found else {}
    names = [spoken(metric) for metric in metrics]
    against = f"{f'{names[0]} ' if len(names) > 1 else ''}against {OURS} (95 %)"
    columns = [*names, "seeds", against, *COSTS]
    rows = [row(model, result, metrics, ours) for model, result in found.items()]
    head = " | ".join(["| model", *columns]) + " |", "|---" * (len(columns) + 1) + "|"
    stopped = [f"{model} stopped: {one.error}" for model, one in found.items() if one.error and one.runs]
    cut = [CUT] if any(run.cut for one in found.values() for run in one.runs) else []
    said = [line for line in (*view.notes, *support(view, found), *of_validation(view, found), *cut, note, *stopped) if line]
    return "\n".join([f"### {view.title}", "", *head, *rows, "", NOTE, *said, ""])


def side_by_side(columns: Mapping[str, Mapping[str, ResultRecord]], metrics: Mapping[str, str]) -> str:
    """Models by data sets in Markdown, from results by column and model; what is clearly the best of a column is bold.

    What a limit has cut is no result of its model: one line below the table has it.
    """
    measured = {
        column: {own_name(model, one): scores(one, metrics[column]) for model, one in found.items() if one.runs}
        for column, found in columns.items()
    }
    cut = {
        (column, own_name(model, one)) for column, found in columns.items() for model, one in found.items()
        if any(run.interrupted for run in one.runs)
    }  # fmt: skip
    best = {column: clear_best(own, {model for of, model in cut if of == column}) for column, own in measured.items()}
    counts = sorted({len(values) for own in measured.values() for values in own.values()})

    def text(column: str, model: str) -> str:
        values = list(measured[column][model].values())
        return f"{statistics.fmean(values):.2f} ± {spread(values):.2f}"

    def cell(column: str, model: str) -> str:
        if model not in measured[column] or (column, model) in cut:
            return "–"
        return f"**{text(column, model)}**" if model == best[column] else text(column, model)

    def mean(own: Mapping[str, Mapping[int, float]], model: str) -> float:
        return statistics.fmean(own[model].values()) if model in own else -math.inf

    models = list(dict.fromkeys(model for own in measured.values() for model in own))
    models.sort(key=lambda model: [-mean(own, model) for own in measured.values()])
    cells = {model: [cell(column, model) for column in measured] for model in models}
    rows = [" | ".join([f"| {model}", *own]) + " |" for model, own in cells.items() if set(own) != {"–"}]
    head = " | ".join(["| model", *measured]) + " |", "|---" * (len(measured) + 1) + "|"
    left = {
        column: ", ".join(f"{model} {text(column, model)}" for model in models if (column, model) in cut)
        for column in measured if any(of == column for of, _ in cut)
    }  # fmt: skip
    said = f"Mean ± standard deviation over {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} seeds, in percent."
    below = [f"{LEFT} {'; '.join(f'{column}: {own}' for column, own in left.items())}."] if left else []
    return "\n".join([*head, *rows, "", said, BOLD, *below, ""])


def own_name(model: str, result: ResultRecord) -> str:
    """A recipe for one data set under a name for all of them."""
    return f"{OURS}, {model.removeprefix(data)}" if model.startswith(data := f"{result.data}-") else model


def support(view: ComparisonTable, found: Mapping[str, ResultRecord]) -> list[str]:
    """How many pairs of each type there are, where the mean over types is shown."""
    split, _, metric = view.metrics[0].partition(".")
    if metric != "roc_auc":
        return []
    splits = (getattr(run, split) for one in found.values() for run in one.runs)
    types: dict[str, Any] = next((measured.get("by_type", {}) for measured in splits), {})
    counts = [
        f"{name}: {of['positives']:,} and {of['negatives']:,}{'' if 'f1' in of else ', left out'}" for name, of in types.items()
    ]
    return [f"Positives and negatives by type: {'; '.join(counts)}."] if counts else []


def of_validation(view: ComparisonTable, found: Mapping[str, ResultRecord]) -> list[str]:
    """Which models had links of validation as edges in the test, and which had not."""
    if not view.metrics[0].startswith("test."):
        return []
    measured = {model: any(run.test.get("validation_edges") for run in one.runs) for model, one in found.items() if one.runs}
    with_them, without = ([model for model in measured if measured[model] == value] for value in (True, False))
    if not with_them:
        return []
    others = f" It is without them for {', '.join(without)}, so that the rows are not alike." if without else ""
    return [f"Links of validation are edges of the graph in the test of {', '.join(with_them)}.{others}"]


def spoken(metric: str) -> str:
    """A metric's name for readers."""
    if metric.endswith("macro.mrr"):
        return "macro MRR"
    name = metric.rpartition(".")[2]
    known = {
        "micro_f1": "micro-F1", "macro_f1": "macro-F1", "roc_auc": "ROC-AUC", "pr_auc": "PR-AUC", "f1": "F1", "mrr": "MRR",
        "r2": "R²", "mae": "MAE", "rmse": "RMSE",
    }  # fmt: skip
    text = known.get(name, name.replace("hits_at_", "Hits@"))
    _, of_each, number = metric.removesuffix(f".{name}").partition(".by_target.")
    return f"{text} of {number.replace('|', '¦')}" if of_each else text


def scores(result: ResultRecord, metric: str) -> dict[int, float]:
    """A metric by seed, in percent; distances in the units of the data."""
    factor = 1 if has_units(metric) else 100
    return {run.seed: factor * run.metric(metric) for run in result.runs}


def has_units(metric: str) -> bool:
    """Whether a metric is a distance between numbers rather than a share."""
    return metric.rpartition(".")[2] in OF_NUMBERS[1:]


def mean_and_spread(values: Sequence[float], metric: str) -> str:
    """The mean ± the standard deviation of a metric; one seed has none."""
    of_mean, of_deviation = (".4g", ".2g") if has_units(metric) else (".2f", ".2f")
    mean = f"{statistics.fmean(values):{of_mean}}"
    return f"{mean} ± {spread(list(values)):{of_deviation}}" if len(values) > 1 else mean


def row(model: str, result: ResultRecord, metrics: Sequence[str], ours: dict[int, float]) -> str:
    """A model's line: what it reaches and what it takes, or why it has nothing to show."""
    if not result.runs:
        reason = (result.error or "not run yet").replace("|", "¦")
        return f"| {model} | {reason} |" + " – |" * (len(metrics) + 1 + len(COSTS))
    measured = [scores(result, metric) for metric in metrics]
    cells = [
        *(mean_and_spread(list(own.values()), metric) for own, metric in zip(measured, metrics, strict=True)),
        seeds_of(result.runs),
        "–" if model == OURS else difference(measured[0], ours),
        *costs(result.runs, result.sessions),
    ]
    return " | ".join([f"| {model}", *cells]) + " |"


def costs(runs: Sequence[SeedRun], sessions: Sequence[TrainingSession]) -> list[str]:
    """The largest memory and the median time of all programs; what `reproduce` has made has neither."""
    largest = max(sessions, key=lambda session: session.peak_bytes or 0)
    times = [(run.seconds_per_epoch, run.seconds_to_best) for run in runs]
    answers = [session.seconds_for_1000 for session in sessions if session.seconds_for_1000 is not None]
    per_epoch, to_best = ([time for time in column if time is not None] for column in zip(*times, strict=True))
    if largest.parameters is None or not (per_epoch and to_best and answers):
        return ["–"] * len(COSTS)
    return [
        f"{largest.parameters:,}",
        f"{statistics.median(per_epoch):.3g}",
        f"{statistics.median(to_best):.3g}",
        f"{readable(largest.peak_bytes or 0)} ({len(largest.seeds)})",
        f"{statistics.median(answers):.3g}",
    ]


def seeds_of(runs: Sequence[SeedRun]) -> str:
    """How many seeds there are, and how many of them were cut, where."""
    cut = [run.cut for run in runs if run.cut]
    if not cut:
        return str(len(runs))
    return f"{len(runs)}, {'all' if len(cut) == len(runs) else len(cut)} cut at {' or '.join(dict.fromkeys(cut))}"


def readable(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
