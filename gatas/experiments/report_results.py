"""What a report is made of: the results in a folder, each checked, and a line for each that cannot be used."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gatas.errors import ConfigError
from gatas.experiments import recipes
from gatas.experiments.compare import FOLDER
from gatas.experiments.compare_table import OF_PAIRS, ComparisonTable, view_of_nodes, views
from gatas.experiments.contenders import LINKS
from gatas.experiments.paper import settings_of_config
from gatas.experiments.results import ResultRecord, SeedRun, completed, fingerprint, read_result
from gatas.experiments.tables import TABLES


@dataclass(frozen=True)
class Result:
    """A file that can be used. `name` is that of its recipe or model; `metric` is what it is measured by."""

    path: Path
    name: str
    data: str
    metric: str
    record: ResultRecord

    @property
    def runs(self) -> list[SeedRun]:
        return self.record.runs

    @property
    def trained_together(self) -> int:
        """The most seeds of one program, among which its seconds are shared out; where runs do not say, those of a session."""
        known = [run.trained_together for run in self.runs if run.trained_together is not None]
        return max(known) if len(known) == len(self.runs) else max(len(session.seeds) for session in self.record.sessions)

    @property
    def percent(self) -> list[float]:
        """What it is measured by, of every seed."""
        return [100 * value for value in self.record.values(self.metric)]


@dataclass(frozen=True)
class Results:
    """All that a folder holds."""

    recipes: dict[str, Result]
    peers: list[Result]
    problems: list[str]


def read_results(folder: Path) -> Results:
    """Results of recipes and, in peers/, of comparisons."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder. Give the one that `gatas reproduce` or `gatas compare` wrote to: --results.")
    problems: list[str] = []
    recipes = by_recipe(read_all(folder, problems), problems)
    peers = agreeing(with_distinct_names(read_all(folder / FOLDER, problems)), problems)
    return Results(recipes, peers, problems)


def read_all(folder: Path, problems: list[str]) -> list[Result]:
    """The results of one folder, by the names of their files; `problems` gets a line for each that cannot be used."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            record = read_result(path)
            wanted = {cell.metric for table in TABLES.values() for cell in table.cells if cell.recipe == record.model}
            found.append(Result(path, record.model, record.data, measured_by(record, wanted), record))
        except ConfigError as error:
            problems.append(left_out(path, str(error)))
    return found


def left_out(path: Path, reason: str) -> str:
    """One line for a file that is not used."""
    return f"{path} is left out: {reason.replace(str(path), 'it', 1) if reason.startswith(str(path)) else reason}"


def by_recipe(results: list[Result], problems: list[str]) -> dict[str, Result]:
    """One result for each recipe: where there are two, that with the settings which the recipe has now."""
    found: dict[str, Result] = {}
    for result in sorted(results, key=lambda result: not is_current(result)):
        if not {"sample_size", "ablation"} <= set(result.record.settings.get("model", {})):
            problems.append(left_out(result.path, "it is not of a recipe: its settings have no sample_size or no ablation."))
        elif result.name in found:
            problems.append(left_out(result.path, f"{found[result.name].path} is of the same recipe too."))
        else:
            found[result.name] = result
    return dict(sorted(found.items(), key=lambda item: item[1].path))


def is_current(result: Result) -> bool:
    """Whether a result has the settings of its recipe."""
    known = result.name in recipes.names()
    return known and completed(result.record.settings) == completed(settings_of_config(recipes.recipe(result.name)))


def with_distinct_names(results: list[Result]) -> list[Result]:
    """Data and models of one name but of other settings get a name of their own; the first keeps it."""
    data: dict[str, str] = {}
    models: dict[tuple[str, str], str] = {}
    found = []
    for result in results:
        of_data, own = (fingerprint(given) for given in (result.record.settings.get("data", {}), result.record.settings))
        label = result.data if data.setdefault(result.data, of_data) == of_data else f"{result.data} ({of_data})"
        name = result.name if models.setdefault((label, result.name), own) == own else f"{result.name} ({own})"
        found.append(replace(result, data=label, name=name))
    return found


def agreeing(peers: list[Result], problems: list[str]) -> list[Result]:
    """One of each model, those of one data set measured by one metric; by micro-F1 where any is."""
    found = []
    for results in by_data(peers).values():
        metrics = [result.metric for result in results if result.metric]
        usual = metrics[0] if metrics else "test.roc_auc" if results[0].record.task == LINKS else "test.accuracy"
        metric = next((name for name in metrics if name.endswith(".micro_f1")), usual)
        needed = [name for view in views_of(results[0].data, metric) for name in view.metrics]
        first = {result.name: result.path for result in reversed(results)}
        for result in results:
            try:
                if result.path != first[result.name]:
                    raise ConfigError(f"{first[result.name]} is of the same model and data too.")
                check_metrics(result.record, needed)
                found.append(replace(result, metric=metric))
            except ConfigError as error:
                problems.append(left_out(result.path, str(error)))
    return found


def views_of(data: str, metric: str) -> list[ComparisonTable]:
    """The tables of a data set that is measured by a metric: for links one for each protocol."""
    split, _, name = metric.partition(".")
    if name == "ranking.mrr":
        return views(data, LINKS, split, ("ranking", *OF_PAIRS))
    return views(data, LINKS, split) if name == "roc_auc" else [view_of_nodes(data, metric)]


def by_data(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Results by the name of their data."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.data, []).append(result)
    return found


def measured_by(record: ResultRecord, wanted: set[str]) -> str:
    """Where the metric of all runs is; `wanted` are further ones that must be there. Of multi-label data it is micro-F1."""
    runs = record.runs
    if not runs:
        return ""
    split = "test" if all(run.test for run in runs) else "valid"
    measured = [run.test if split == "test" else run.valid for run in runs]
    if "ranking" in measured[0]:
        metric = "ranking.mrr"
    elif found := [name for name in ("roc_auc", "r2") if name in measured[0]]:
        metric = found[0]
    else:  # with one label a node they are equal
        metric = "accuracy" if all(one.get("accuracy") == one.get("micro_f1") for one in measured) else "micro_f1"
    check_metrics(record, [f"{split}.{metric}", *sorted(wanted)])
    return f"{split}.{metric}"


def check_metrics(record: ResultRecord, metrics: Sequence[str]) -> None:
    """Refuse a result that lacks a metric."""
    for name in metrics:
        try:
            finite = all(math.isfinite(value) for value in record.values(name))
        except (KeyError, TypeError, ValueError):
            raise ConfigError(f"a run has no {name}.") from None
        if not finite:
            raise ConfigError(f"{name} of a run is no finite number.")
