"""What a page's figures are compared with: the numbers of a result, of a log or of a report."""

import json
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatas.errors import ConfigError
from gatas.experiments.figures import Figure, numbers_in, passages
from gatas.experiments.results import ResultRecord, read_result, spread

UNITS: tuple[dict[str, float], ...] = (
    {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0},
    {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    {"%": 1.0, "points": 1.0, "": 100.0},
)
"""Units that numbers are converted between, by what they measure; a share without a unit is of 1."""

COMMAND = re.compile(r"(?:python -m |gatas |make |torchrun )[a-z]")


@dataclass
class Numbers:
    """Numbers of a source with their units, and those that have a deviation beside them."""

    single: list[tuple[float, str]] = field(default_factory=list)
    paired: list[tuple[float, float, str]] = field(default_factory=list)

    def add(self, other: "Numbers") -> None:
        self.single += other.single
        self.paired += other.paired


def holds(numbers: Numbers, wanted: Figure) -> bool:
    """Whether a figure is one of some numbers, in its unit and rounded as it is shown."""
    if wanted.spread is None:
        return any(_rounds(f * number, wanted) for number, unit in numbers.single for f in factors(unit, wanted.unit))
    return any(
        _rounds(f * mean, wanted) and _rounds(f * spread, wanted.spread)
        for mean, spread, unit in numbers.paired
        for f in factors(unit, wanted.unit)
    )


def factors(unit: str, wanted: str) -> list[float]:
    """By what a number of one unit may be multiplied to be of another; where either has none it may also be left as it is."""
    converted = [own[unit] / own[wanted] for own in UNITS if unit in own and wanted in own and unit != wanted]
    return converted + [1.0] * (unit == wanted or not unit or not wanted)


def _rounds(number: float, wanted: Figure) -> bool:
    return abs(number - wanted.value) <= 0.5001 * 10.0**-wanted.digits


def read_source(path: Path) -> Numbers:
    """The numbers of a file, or of all results in a folder."""
    if not path.exists():
        raise ConfigError(f"{path} is not there.")
    if path.is_dir():
        found = Numbers()
        for one in sorted(path.glob("*.json")):
            found.add(read_source(one))
        return found
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        if not COMMAND.search(text):
            raise ConfigError(f"{path} names no command that made it.")
        return of_text(text)
    if path.suffix == ".jsonl":
        return of_json([json.loads(line) for line in text.splitlines() if line.strip()])
    if path.suffix != ".json":
        return Numbers()
    try:
        return of_result(read_result(path))
    except ConfigError:  # a benchmark's log
        return of_json(json.loads(text))


def of_text(text: str) -> Numbers:
    """Numbers as they are written; those with a deviation count alone too."""
    found = [one for passage in passages(text) for one in numbers_in(passage)]
    single = [(one.value, one.unit) for one in found] + [(one.spread.value, one.unit) for one in found if one.spread]
    return Numbers(single, [(one.value, one.spread.value, one.unit) for one in found if one.spread])


def of_result(record: ResultRecord) -> Numbers:
    """Of every metric each seed's, and the mean with its deviation; the same of depth and seconds; sessions and curves."""
    found = of_json({"sessions": [session.model_dump() for session in record.sessions], "curves": record.curves})
    by_name: dict[str, list[float]] = {}
    for run in record.runs:
        for name, value in named(run.model_dump(exclude={"seed"})):
            by_name.setdefault(name, []).append(100 * value if unit_of(name) == "%" else value)
    for name, values in by_name.items():
        mean, unit = statistics.fmean(values), unit_of(name)
        found.single += [(number, unit) for number in (*values, mean, statistics.median(values))]
        found.paired.append((mean, spread(values), unit))
    return found


def of_json(content: Any) -> Numbers:
    """All numbers of a log."""
    found = [(value, unit_of(name)) for name, value in named(content)]
    return Numbers([(100 * value if unit == "%" else value, unit) for value, unit in found])


def unit_of(name: str) -> str:
    """The unit that a name in a log tells, or none; metrics are shares, which count in percent."""
    known = {"seconds": "s", "bytes": "bytes", "valid": "%", "test": "%"}
    return next((unit for word, unit in known.items() if word in name), "")


def named(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in nested dicts and lists, each with where it is."""
    if isinstance(value, dict | list):
        items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, own in items:
            yield from named(own, f"{name}.{key}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)
