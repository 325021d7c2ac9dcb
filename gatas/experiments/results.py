"""`ResultRecord`: what was run, on what, and what came of it for every seed. One JSON for each, here read and written."""

import json
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ValidationError

from gatas.errors import ConfigError
from gatas.files import checksum_of
from gatas.tasks.config import ModelConfig
from gatas.training.checkpoint import write_whole, writing
from gatas.training.config import TrainingConfig

MAY_CHANGE = {"checkpoint_seconds", "keep_checkpoints"}
"""Settings of training that change no number."""

Curve = dict[str, list[float] | list[list[float]]]


def _check_curve(curve: Curve) -> Curve:
    if len({len(values) for values in curve.values()}) > 1:
        raise ValueError("they are not all of as many epochs")
    return curve


class ResultPart(BaseModel, frozen=True, strict=True, extra="allow"):
    """A part of a result. What else is in a file is kept."""


class Support(ResultPart):
    """How many pairs of a type there are."""

    positives: int
    negatives: int


def _check_support(metrics: dict[str, Any]) -> dict[str, Any]:
    for support in metrics.get("by_type", {}).values():
        Support.model_validate(support)
    return metrics


SplitMetrics = Annotated[dict[str, Any], AfterValidator(_check_support)]


class SeedRun(ResultPart):
    """What came of one seed."""

    seed: int
    best_epoch: int
    epochs: int | None = None
    valid: SplitMetrics = {}
    test: SplitMetrics = {}
    depth: list[float] | None = None
    cut: str = ""  # the limit that ended it, such as `6 s`
    trained_together: int | None = None  # seeds of the program that trained it, which share its seconds; None: not known
    seconds_per_epoch: float | None = None
    seconds_to_best: float | None = None

    @property
    def interrupted(self) -> bool:
        """Whether a limit ended it while it may have improved: unless its best epoch is in the first half of what it had."""
        return bool(self.cut) and (self.epochs is None or 2 * self.best_epoch >= self.epochs)

    def metric(self, name: str) -> float:
        """A number by where it is, as `test.gatne.f1`."""
        split, *parts = name.split(".")
        if parts[0] == "by_target":  # the names of numbers are the user's, and may have dots
            parts = ["by_target", ".".join(parts[1:-1]), parts[-1]]
        value: Any = {"valid": self.valid, "test": self.test}[split]
        for part in parts:
            value = value[part]
        return float(value)


class TrainingSession(ResultPart):
    """Seeds that were trained as one program, what on, and what it took."""

    seeds: list[int]
    date: str
    hardware: str
    versions: dict[str, str] = {}
    commit: str = ""
    command: str = ""  # of gatas, as it was given, without the folders of files
    seconds: float | None = None
    settled: dict[str, Any] = {}  # settings of ours that are `auto`, as they were on this machine
    limit: dict[str, float | None] = {}
    parameters: int | None = None
    peak_bytes: int | None = None
    seconds_for_1000: float | None = None


def _check_depths(runs: list[SeedRun]) -> list[SeedRun]:
    if len({len(run.depth or ()) for run in runs}) > 1:
        raise ValueError("they are not all of one depth")
    return runs


class ResultRecord(BaseModel, frozen=True, strict=True, extra="forbid"):
    """A model on a data set. `model` names a recipe, a peer or a `module:Class`; `settings` say what both names stand for."""

    format: Literal[1] = 1
    model: str
    data: str
    task: str
    note: str = ""
    settings: dict[str, Any]
    error: str = ""  # what ended the last attempt, if it failed
    runs: Annotated[list[SeedRun], AfterValidator(_check_depths)] = []
    sessions: list[TrainingSession] = []
    curves: dict[str, Annotated[Curve, AfterValidator(_check_curve)]] = {}  # by seed

    def is_about(self, other: "ResultRecord") -> bool:
        """Whether both are of one model and one data set, with settings that give the same numbers."""
        alike = (self.model, self.data) == (other.model, other.data)
        return alike and completed(self.settings) == completed(other.settings)

    def missing(self, seeds: Sequence[int]) -> list[int]:
        """Those of some seeds that were not run yet."""
        done = {run.seed for run in self.runs}
        return [seed for seed in seeds if seed not in done]

    def values(self, metric: str) -> list[float]:
        """A metric of every seed."""
        return [run.metric(metric) for run in self.runs]

    def extended(self, runs: list[SeedRun], session: TrainingSession, curves: dict[str, Curve] | None = None) -> "ResultRecord":
        """With further seeds, in their order."""
        more = {
            "runs": sorted([*self.runs, *runs], key=lambda run: run.seed),
            "sessions": [*self.sessions, session],
            "curves": {**self.curves, **(curves or {})},
        }
        return self.model_copy(update={**more, "error": ""})


def completed(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with those that were added since, at their defaults, and without those that change no number."""
    found = dict(settings)
    kinds: tuple[tuple[str, type[BaseModel]], ...] = (("model", ModelConfig), ("training", TrainingConfig))
    for section, kind in kinds:
        try:
            found[section] = kind.model_validate(found.get(section, {})).model_dump(mode="json")
        except ValidationError:  # those of a peer, which has its own
            continue
    return kept(found)


def kept(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as JSON gives them back, without those that change no number."""
    training = {name: value for name, value in settings.get("training", {}).items() if name not in MAY_CHANGE}
    plain: dict[str, Any] = json.loads(json.dumps({**settings, "training": training}))
    return plain


def fingerprint(settings: dict[str, Any]) -> str:
    """Eight characters that tell settings apart."""
    return checksum_of(json.dumps(completed(settings), sort_keys=True).encode())[:8]


def file_name(data: str, model: str) -> str:
    """`cora-gcn`; recipes are named after their data already."""
    name = model if model == data or model.startswith(f"{data}-") else f"{data}-{model}"
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def result_path(folder: Path, record: ResultRecord) -> Path:
    """Where a result is kept: DATA-MODEL.json, with a suffix where another result has that name already.

    Another result is one of the same names but of other data or settings, as two YAML files may have; neither is lost.
    """
    name = file_name(record.data, record.model)
    first, suffix = folder / f"{name}.json", re.compile(re.escape(name) + r"-[0-9a-f]{8}\.json")
    others = sorted(path for path in folder.glob(f"{name}-*.json") if suffix.fullmatch(path.name))
    for path in (first, *others):
        if not path.exists():
            return path
        found = read_result(path)
        failed = not found.runs and found.settings.get("data") == record.settings.get("data")
        if found.is_about(record) or (failed and (found.model, found.data) == (record.model, record.data)):
            return path
    return folder / f"{name}-{fingerprint(record.settings)}.json"


def resumed(folder: Path, fresh: ResultRecord) -> tuple[Path, ResultRecord]:
    """Where a result is kept, and what is there of it already."""
    path = result_path(folder, fresh)
    found = read_result(path) if path.exists() else fresh
    return path, found if found.runs else fresh


def read_result(path: Path) -> ResultRecord:
    """The result that a file holds."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} could not be read as JSON ({error}).") from None
    if isinstance(content, dict) and "format" not in content and "runs" in content:
        raise ConfigError(f"{path} is a result of gatas 0.1, which is no longer read. Move it away and run it again.")
    try:
        record = ResultRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "all of it"
        raise ConfigError(
            f"{path} is not what `gatas reproduce` and `gatas compare` write ({place}: {first['msg'].lower()})."
        ) from None
    if record.runs and not record.sessions:
        raise ConfigError(f"{path} has runs, but no session says what they were run on.")
    return record


def write_result(path: Path, record: ResultRecord) -> None:
    """Write a result so that after any end there is all of it or what was there before."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": record.format, **record.model_dump(mode="json", exclude_defaults=True)}
    write_whole(path, (laid_out(content) + "\n").encode())


def laid_out(content: Any, indent: str = "") -> str:
    """JSON in which what holds nothing but plain values, as the metrics of a type or a curve, is on one line."""
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    if not any(isinstance(value, dict | list) for value in inner):
        return json.dumps(content, ensure_ascii=False)
    deeper = f"{indent} "
    if isinstance(content, dict):
        lines = [f"{json.dumps(name, ensure_ascii=False)}: {laid_out(value, deeper)}" for name, value in content.items()]
    else:
        lines = [laid_out(value, deeper) for value in content]
    opened, closed = "{}" if isinstance(content, dict) else "[]"
    return f"{opened}\n{deeper}{f',{chr(10)}{deeper}'.join(lines)}\n{indent}{closed}"


def spread(numbers: list[float]) -> float:
    """Standard deviation; 0 of a single number."""
    return statistics.stdev(numbers) if len(numbers) > 1 else 0.0
