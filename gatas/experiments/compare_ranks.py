"""A table over several graphs and splits: the mean of each graph, ranks, and differences that are paired by split."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from scipy import stats

from gatas.datasets import Dataset
from gatas.experiments.compare_table import CUT, views
from gatas.experiments.contenders import OURS
from gatas.experiments.paired import BOLD, clear_best, difference
from gatas.experiments.results import ResultRecord, spread

NOTE = (
    "Of each graph: mean ± standard deviation over its splits, in percent; of each split the mean over seeds. The rank is the "
    "mean over the graphs that a model has results of, among the models that have; where these are fewer than all, their "
    "number is beside it. Behind the best: the most that a model is behind the best on any graph. Differences are paired by "
    "split, over all splits of all graphs."
)


@dataclass
class Measured:
    """Test metrics in percent, the mean over seeds: by (graph, split's name) and model."""

    splits: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    cut: set[tuple[str, str]] = field(default_factory=set)  # (graph, model) that a limit has ended

    def add(self, graph: str, dataset: Dataset, found: Mapping[str, ResultRecord]) -> None:
        """Take what was found on one split of a graph; models without any result are left out."""
        split = "test" if "test" in dataset.splits else "valid"
        (view,) = views(dataset.name, dataset.task, split)
        own = {model: one.values(view.metrics[0]) for model, one in found.items() if one.runs}
        self.splits[graph, dataset.name] = {model: 100 * statistics.fmean(values) for model, values in own.items()}
        self.cut |= {(graph, model) for model, one in found.items() if any(run.cut for run in one.runs)}

    @property
    def graphs(self) -> list[str]:
        return list(dict.fromkeys(graph for graph, _ in self.splits))

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(model for own in self.splits.values() for model in own))

    def of_graph(self, graph: str, model: str) -> list[float]:
        """A model's metric on each split of a graph; nothing unless it has all of them."""
        own = [found.get(model) for (one, _), found in self.splits.items() if one == graph]
        known = [value for value in own if value is not None]
        return known if len(known) == len(own) else []

    def by_split(self, model: str) -> dict[tuple[str, str], float]:
        """A model's metric by graph and split."""
        return {split: found[model] for split, found in self.splits.items() if model in found}


def ranks(measured: Measured) -> dict[str, list[float]]:
    """Ranks of each model by graph, 1 for the best mean; equal means share the mean of their ranks."""
    found: dict[str, list[float]] = {model: [] for model in measured.models}
    for graph in measured.graphs:
        means = {model: statistics.fmean(own) for model in measured.models if (own := measured.of_graph(graph, model))}
        ranked = stats.rankdata([-mean for mean in means.values()])
        for model, rank in zip(means, ranked, strict=True):
            found[model].append(float(rank))
    return found


def behind_best(measured: Measured, model: str) -> float:
    """By how much a model is behind the best of a graph, at most."""
    gaps = []
    for graph in measured.graphs:
        means = {one: statistics.fmean(own) for one in measured.models if (own := measured.of_graph(graph, one))}
        if model in means:
            gaps.append(max(means.values()) - means[model])
    return max(gaps, default=0.0)


def paired(measured: Measured, model: str) -> str:
    """The mean difference to ours over the splits that both have, with its 95 % interval."""
    return "–" if model == OURS else difference(measured.by_split(model), measured.by_split(OURS))


def over_graphs(measured: Measured) -> str:
    """The table in Markdown, models in the order of their mean rank; what is clearly the best of a graph is bold."""
    graphs, by_model = measured.graphs, ranks(measured)
    means = {
        (graph, model): statistics.fmean(own)
        for graph in graphs for model in measured.models if (own := measured.of_graph(graph, model))
    }  # fmt: skip
    best = {
        graph: clear_best(
            {model: dict(enumerate(measured.of_graph(graph, model))) for model in measured.models},
            {model for of, model in measured.cut if of == graph},
        )
        for graph in graphs
    }

    def cell(graph: str, model: str) -> str:
        own = measured.of_graph(graph, model)
        text = f"{means[graph, model]:.2f} ± {spread(own):.2f}" if own else "–"
        return f"**{text}**" if model == best[graph] else text

    def row(model: str) -> str:
        own = by_model[model]
        rank = "–" if not own else f"{statistics.fmean(own):.2f}" + (f" ({len(own)})" if len(own) < len(graphs) else "")
        numbers = [rank, f"{behind_best(measured, model):.2f}", paired(measured, model)]
        return " | ".join([f"| {model}", *numbers, *(cell(graph, model) for graph in graphs)]) + " |"

    ordered = sorted(measured.models, key=lambda model: statistics.fmean(by_model[model] or [math.inf]))
    columns = ["mean rank", "behind the best", f"against {OURS} (95 %)", *graphs]
    head = [" | ".join(["| model", *columns]) + " |", "|---" * (len(columns) + 1) + "|"]
    said = [NOTE, BOLD, *([CUT] if measured.cut else [])]
    return "\n".join(["### All graphs", "", *head, *map(row, ordered), "", *said, ""])
