"""What a page's figures are compared with: the numbers of a result, of a log or of a report."""

import json
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatas.errors import ConfigError
from gatas.experiments.figures import NUMBER, PAIR, Figure, figure
from gatas.experiments.results import ResultRecord, read_result, spread

FACTORS = {
    "%": (1.0, 100.0),
    "points": (1.0, 100.0),
    "s": (1.0, 1e-3, 1e-6),
    "seconds": (1.0, 1e-3),
    "minutes": (1.0, 1 / 60),
    "hours": (1.0, 1 / 3600),
    "ms": (1.0, 1e3, 1e-3),
    "µs": (1.0, 1e3, 1e6),
    "KiB": (1.0, 2.0**-10),
    "MiB": (1.0, 2.0**10, 2.0**-20),
    "GiB": (1.0, 2.0**-10, 2.0**-30),
    "GB": (1.0, 1e-3, 1e-9),
    "": (1.0, 100.0),
}
"""By what a number of a source may have been multiplied for a unit: shares for percent, milliseconds for seconds and so on."""

COMMAND = re.compile(r"(?:python -m |gatas |make |torchrun )[a-z]")


@dataclass
class Numbers:
    """Numbers of a source, and those that have a deviation beside them."""

    single: list[float] = field(default_factory=list)
    paired: list[tuple[float, float]] = field(default_factory=list)

    def add(self, other: "Numbers") -> None:
        self.single += other.single
        self.paired += other.paired


def holds(numbers: Numbers, wanted: Figure) -> bool:
    """Whether a figure is one of some numbers, rounded as it is shown."""
    for factor in FACTORS.get(wanted.unit, (1.0,)):
        if wanted.spread is None:
            if any(_rounds(factor * number, wanted) for number in numbers.single):
                return True
        elif any(_rounds(factor * a, wanted) and _rounds(factor * b, wanted.spread) for a, b in numbers.paired):
            return True
    return False


def _rounds(number: float, wanted: Figure) -> bool:
    return abs(number - wanted.value) <= 0.5001 * 10.0**-wanted.digits


def read_source(path: Path) -> Numbers:
    """The numbers of a file, or of all results in a folder."""
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
        return Numbers(list(leaves([json.loads(line) for line in text.splitlines() if line.strip()])))
    if path.suffix != ".json":
        return Numbers()
    try:
        return of_result(read_result(path))
    except ConfigError:  # a benchmark's log
        return Numbers(list(leaves(json.loads(text))))


def of_text(text: str) -> Numbers:
    """Numbers as they are written; those with a deviation count alone too."""
    paired = [(figure(mean).value, figure(deviation).value) for mean, deviation, _ in PAIR.findall(text)]
    single = [figure(number).value for number in re.findall(NUMBER, text.replace("**", ""))]
    return Numbers([*single, *(number for pair in paired for number in pair)], paired)


def of_result(record: ResultRecord) -> Numbers:
    """Of every metric each seed's, and the mean with its deviation; the same of depth and seconds; sessions and curves."""
    found = Numbers([*leaves([session.model_dump() for session in record.sessions]), *leaves(record.curves)])
    by_name: dict[str, list[float]] = {}
    for run in record.runs:
        for name, value in named(run.model_dump(exclude={"seed"})):
            by_name.setdefault(name, []).append(value)
    for values in by_name.values():
        mean = statistics.fmean(values)
        found.single += [*values, mean, statistics.median(values)]
        found.paired.append((mean, spread(values)))
    return found


def named(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in nested dicts and lists, each with where it is."""
    if isinstance(value, dict | list):
        items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, own in items:
            yield from named(own, f"{name}.{key}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


def leaves(value: Any) -> Iterator[float]:
    """The numbers in nested dicts and lists."""
    return (number for _, number in named(value))
