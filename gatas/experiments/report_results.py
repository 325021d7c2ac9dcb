"""What a report is made of: the JSONs under results/, each checked, and a line for each that cannot be used."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ValidationError

from gatas.errors import ConfigError
from gatas.experiments.compare import FOLDER
from gatas.experiments.compare_table import View, views
from gatas.experiments.contenders import LINKS
from gatas.experiments.results import values
from gatas.experiments.tables import TABLES


class Record(BaseModel, frozen=True, strict=True):
    """A part of a file; what else it holds is of no matter here."""


class OneRun(Record):
    """A seed."""

    seed: int
    best_epoch: int
    valid: dict[str, Any] = {}
    test: dict[str, Any] = {}
    depth: list[float] | None = None


class Support(Record):
    """How many pairs of a type there are."""

    links: int
    others: int


class Measured(Record):
    """What a seed reaches on a split."""

    by_type: dict[str, Support] = {}


class PeerRun(OneRun):
    """A seed of `gatas compare`."""

    valid: Measured = Measured()  # type: ignore[assignment]
    test: Measured = Measured()  # type: ignore[assignment]
    seconds_per_epoch: float
    seconds_to_best: float
    cut: str = ""


class Session(Record):
    """What a program was run on."""

    seeds: list[int]
    date: str
    hardware: str


class PeerSession(Session):
    """And what it took."""

    parameters: int
    peak_bytes: int
    seconds_for_1000: float


class DataSection(Record):
    name: str


class ModelSection(Record):
    sample_size: int
    ablation: str


class ConfigSections(Record):
    data: DataSection
    model: ModelSection


Curve = dict[str, list[float] | list[list[float]]]


def same_epochs(curve: Curve) -> Curve:
    if len({len(values) for values in curve.values()}) > 1:
        raise ValueError("they are not all of as many epochs")
    return curve


def same_depth(runs: list[OneRun]) -> list[OneRun]:
    if len({len(run.depth or ()) for run in runs}) > 1:
        raise ValueError("they are not all of one depth")
    return runs


class RecipeFile(Record):
    """What `run_recipe` writes, as far as a report looks at it."""

    config: ConfigSections
    note: str
    runs: Annotated[list[OneRun], AfterValidator(same_depth)]
    sessions: list[Session]
    curves: dict[str, Annotated[Curve, AfterValidator(same_epochs)]]


class PeerFile(Record):
    """What `compare` writes, as far as a report looks at it."""

    model: str
    data: str
    task: str = ""
    note: str
    runs: Annotated[list[PeerRun], AfterValidator(same_depth)]
    sessions: list[PeerSession]
    error: str = ""


@dataclass(frozen=True)
class Result:
    """A JSON that can be used. `name` is that of its recipe or model; `metric` is what it is measured by."""

    path: Path
    name: str
    data: str
    metric: str
    content: Mapping[str, Any]

    @property
    def runs(self) -> list[dict[str, Any]]:
        return list(self.content["runs"])

    @property
    def percent(self) -> list[float]:
        """What it is measured by, of every seed."""
        return [100 * value for value in values({"runs": self.runs}, self.metric)]


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
    recipes, peers, problems = {}, [], []
    for path in sorted(folder.glob("*.json")):
        try:
            recipes[path.stem] = read_recipe(path)
        except ConfigError as error:
            problems.append(str(error))
    for path in sorted((folder / FOLDER).glob("*.json")):
        try:
            peers.append(read_peer(path))
        except ConfigError as error:
            problems.append(str(error))
    agreed, disagreeing = alike(peers)
    return Results(recipes, agreed, [*problems, *disagreeing])


def alike(peers: list[Result]) -> tuple[list[Result], list[str]]:
    """One of each model, those of one data set measured by one metric; by micro-F1 where any is."""
    agreed, problems = [], []
    for results in by_data(peers).values():
        metrics = [result.metric for result in results if result.metric]
        links = any(result.content.get("task") == LINKS for result in results)
        usual = metrics[0] if metrics else "test.roc_auc" if links else "test.accuracy"
        metric = next((name for name in metrics if name.endswith(".micro_f1")), usual)
        needed = [name for view in views_of(results[0].data, metric) for name in view.metrics]
        first = {result.name: result.path for result in reversed(results)}
        for result in results:
            try:
                if result.path != first[result.name]:
                    raise ConfigError(f"{result.path} is left out: {first[result.name]} is of the same model and data too.")
                measured_at(result.path, result.content, needed)
                agreed.append(replace(result, metric=metric))
            except ConfigError as error:
                problems.append(str(error))
    return agreed, problems


def views_of(data: str, metric: str) -> list[View]:
    """The tables of a data set that is measured by a metric: for links one for each protocol."""
    split, _, name = metric.partition(".")
    return views(data, LINKS, split) if name == "roc_auc" else [View(data, data, (metric,))]


def by_data(results: Iterable[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.data, []).append(result)
    return found


def read_recipe(path: Path) -> Result:
    content = read_checked(path, RecipeFile, "gatas reproduce")
    wanted = {cell.metric for table in TABLES.values() for cell in table.cells if cell.recipe == path.stem}
    return Result(path, path.stem, content["config"]["data"]["name"], measured_by(path, content, wanted), content)


def read_peer(path: Path) -> Result:
    content = read_checked(path, PeerFile, "gatas compare")
    return Result(path, content["model"], content["data"], measured_by(path, content, set()), content)


def read_checked(path: Path, kind: type[Record], command: str) -> dict[str, Any]:
    """The content of a file that is of a kind."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "all of it"
        raise ConfigError(f"{path} is left out: it is not what `{command}` writes ({place}: {first['msg'].lower()}).") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is left out: it could not be read as JSON ({error}).") from None
    if content["runs"] and not content["sessions"]:
        raise ConfigError(f"{path} is left out: it has runs, but no session says what they were run on.")
    return content


def measured_by(path: Path, content: Mapping[str, Any], wanted: set[str]) -> str:
    """Where the metric of all runs is; `wanted` are others that must be there. With several labels a node it is micro-F1."""
    runs = content["runs"]
    if not runs:
        return ""
    split = "test" if all(run.get("test") for run in runs) else "valid"
    measured = [run.get(split, {}) for run in runs]
    if "roc_auc" in measured[0]:
        metric = "roc_auc"
    else:  # with one label a node they are the same
        metric = "accuracy" if all(one.get("accuracy") == one.get("micro_f1") for one in measured) else "micro_f1"
    measured_at(path, content, [f"{split}.{metric}", *sorted(wanted)])
    return f"{split}.{metric}"


def measured_at(path: Path, content: Mapping[str, Any], metrics: Sequence[str]) -> None:
    """Refuse a result that lacks a metric."""
    for name in metrics:
        try:
            finite = all(math.isfinite(value) for value in values(dict(content), name))
        except (KeyError, TypeError, ValueError):
            raise ConfigError(f"{path} is left out: a run has no {name}.") from None
        if not finite:
            raise ConfigError(f"{path} is left out: {name} of a run is no finite number.")
