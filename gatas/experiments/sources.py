"""What a page's figures are compared with: the numbers of a result, of a log or of a report, each with what it is of."""

import json
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatas.errors import ConfigError
from gatas.experiments import recipes
from gatas.experiments.compare_table import spoken
from gatas.experiments.contenders import OURS
from gatas.experiments.figures import Figure, cells_of, numbers_in, passages
from gatas.experiments.results import ResultRecord, read_result, spread

UNITS: tuple[dict[str, float], ...] = (
    {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0},
    {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    {"%": 1.0, "points": 1.0, "": 100.0},
)
"""Units that numbers are converted between, by what they measure; a share without a unit is of 1."""

NO_METRICS = ("loss", "count", "positives", "negatives")

COMMAND = re.compile(r"(?:python -m |gatas |make |torchrun )[a-z]")


@dataclass(frozen=True)
class SourceNumber:
    """A number of a source: where it stands there, from the file to the place in a cell, and of a result what it is of.

    `about` has the names, any of which a page may use, of a result's data, model and metric, and of its seed if it is of one.
    """

    value: float
    unit: str
    place: tuple[str, ...]
    spread: float | None = None
    about: tuple[tuple[str, ...], ...] = ()


def holds(number: SourceNumber, wanted: Figure) -> bool:
    """Whether a figure is a number in its unit, rounded as it is shown; with a deviation only if the number has that, too."""
    if wanted.spread is not None and number.spread is None:
        return False
    return any(
        _rounds(f * number.value, wanted) and (wanted.spread is None or _rounds(f * (number.spread or 0.0), wanted.spread))
        for f in factors(number.unit, wanted.unit)
    )


def factors(unit: str, wanted: str) -> list[float]:
    """By what a number of one unit may be multiplied to be of another; where either has none it may also be left as it is."""
    converted = [own[unit] / own[wanted] for own in UNITS if unit in own and wanted in own and unit != wanted]
    return converted + [1.0] * (unit == wanted or not unit or not wanted)


def _rounds(number: float, wanted: Figure) -> bool:
    return abs(number - wanted.value) <= 0.5001 * 10.0**-wanted.digits


def read_source(path: Path) -> list[SourceNumber]:
    """The numbers of a file, or of all results in a folder."""
    if not path.exists():
        raise ConfigError(f"{path} is not there.")
    if path.is_dir():
        return [number for one in sorted(path.glob("*.json")) for number in read_source(one)]
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        if not COMMAND.search(text):
            raise ConfigError(f"{path} names no command that made it.")
        return of_text(text, path.name)
    if path.suffix == ".jsonl":
        return of_json([json.loads(line) for line in text.splitlines() if line.strip()], path.name)
    if path.suffix != ".json":
        return []
    try:
        return of_result(read_result(path), path.name)
    except ConfigError:  # a benchmark's log
        return of_json(json.loads(text), path.name)


def of_text(text: str, name: str) -> list[SourceNumber]:
    """Numbers as they are written, by heading, row and column; deviations count alone, too."""
    found = []
    for passage in passages(text):
        lines = passage.text.split("\n")
        for one in numbers_in(passage):
            line = lines[one.line - passage.line].replace("`", "")
            cells, head = (cells_of(line), one.near[1]) if one.column >= 0 else ([line], "")
            words = [cell for cell in cells[1:] if re.match(r"[^\W\d]", cell)]
            place = (name, passage.section, cells[0], " ".join(words), head, str(one.order))
            found.append(SourceNumber(one.value, one.unit, place, one.spread.value if one.spread else None))
            if one.spread:
                found.append(SourceNumber(one.spread.value, one.unit, (*place, "deviation")))
    return found


def of_result(record: ResultRecord, name: str) -> list[SourceNumber]:
    """Of every metric and of seconds mean and deviation; by their names the median, the lowest, the best and single seeds."""
    about = ((record.data,), model_names(record))
    found = []
    for session in record.sessions:
        of_session = of_json(session.model_dump(), name)
        found += [
            SourceNumber(one.value, one.unit, one.place, about=(*about, ())) for one in of_session if one.unit in ("s", "bytes")
        ]
    by_name: dict[tuple[str, ...], dict[int, float]] = {}
    for run in record.runs:
        for place, value in named(run.model_dump(exclude={"seed", "epochs", "best_epoch"})):
            if place[-1] not in NO_METRICS:
                by_name.setdefault(place, {})[run.seed] = value
    for place, by_seed in by_name.items():
        unit, own = unit_of(place[0]), (*about, *metric_names(place))
        values = [(100 if unit == "%" else 1) * value for value in by_seed.values()]
        found.append(SourceNumber(statistics.fmean(values), unit, (name, *place, "mean"), spread(values), own))
        if {"by_type", "by_direction"} & set(place):
            continue
        for said, statistic in (("median", statistics.median), ("lowest", min), ("best", max)):
            found.append(SourceNumber(statistic(values), unit, (name, *place, said), about=(*own, (said,))))
        for seed, value in zip(by_seed, values, strict=True):
            found.append(SourceNumber(value, unit, (name, *place, f"seed {seed}"), about=(*own, (f"seed {seed}",))))
    return found


def model_names(record: ResultRecord) -> tuple[str, ...]:
    """What pages call a result's model: ours with the paper's settings is called so."""
    if record.data in recipes.names() and record.model in (OURS, record.data):
        return ("the paper's settings", "paper's settings of ours")
    if record.model == OURS or record.model.endswith("-default"):
        return (OURS, "ours", "our", record.model)
    return (record.model,)


def metric_names(place: Sequence[str]) -> list[tuple[str, ...]]:
    """What pages call a metric; then what they have to say, too, where it is not the usual one: validation data, a type."""
    metric = spoken(".".join(place[1:])) if place[0] in ("valid", "test") else place[0].replace("_", " ")
    more: list[tuple[str, ...]] = [
        (place[place.index(one) + 1], f"type {place[place.index(one) + 1]}")
        for one in ("by_type", "by_direction")
        if one in place
    ]
    more += [("validation",)] * (place[0] == "valid") + [("macro",)] * ("macro" in place)
    return [(metric,), *more]


def of_json(content: Any, name: str) -> list[SourceNumber]:
    """All numbers of a log."""
    found = []
    for place, value in named(content):
        unit = unit_of(".".join(place))
        found.append(SourceNumber(100 * value if unit == "%" else value, unit, (name, *place)))
    return found


def unit_of(name: str) -> str:
    """The unit that a name in a log tells, or none; metrics are shares, which count in percent."""
    known = {"seconds": "s", "bytes": "bytes", "valid": "%", "test": "%"}
    return next((unit for word, unit in known.items() if word in name), "")


def named(value: Any, place: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """The numbers in nested dicts and lists, each with where it is."""
    if isinstance(value, dict | list):
        items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, own in items:
            yield from named(own, (*place, str(key)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield tuple(place), float(value)
