"""`Choices` and `Range`: what a setting may be, and how a file of the user's says so."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gatas.datasets.settings import described, read_yaml
from gatas.errors import ConfigError
from gatas.training.config import Config

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SECTIONS = ("model", "training")
ALIKE = 0.25
"""Sizes that differ by less are not worth a trial each."""
DIGITS = 3
"""Significant digits of numbers that are drawn from a range: settings that people can read."""


@dataclass(frozen=True)
class Choices:
    """One of several values, in no order that matters."""

    values: tuple[Any, ...]

    def including(self, own: Any) -> "Choices":
        """Return the choices with one more, if it is new; it takes the place of numbers that are much the same."""
        if own in self.values:
            return self
        if not all(isinstance(value, int | float) for value in (*self.values, own)):
            return Choices((own, *self.values))
        others = [value for value in self.values if not abs(value - own) <= ALIKE * max(abs(value), abs(own))]
        return Choices(tuple(sorted([*others, own])))

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution([_label(value) for value in self.values])

    def value(self, drawn: Any) -> Any:
        """Return what a drawn label stands for."""
        return next(value for value in self.values if _label(value) == drawn and isinstance(drawn, type(_label(value))))

    def nearest(self, own: Any) -> Any:
        """Return the label of a value, or of the nearest where it is not among the choices."""
        if own in self.values or not isinstance(own, int | float):
            return _label(own if own in self.values else self.values[0])
        numbers = [value for value in self.values if isinstance(value, int | float)]
        return _label(min(numbers, key=lambda value: abs(value - own)) if numbers else self.values[0])

    def written(self) -> Any:
        """Return what a YAML file has for it."""
        return list(self.values)


@dataclass(frozen=True)
class Range:
    """Any number between two, which may both be whole; `log`: each order of magnitude alike."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def including(self, own: Any) -> "Range":
        """Return a range that reaches as far as a number."""
        return Range(min(self.low, own), max(self.high, own), self.log)

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def value(self, drawn: Any) -> Any:
        """Return a drawn number with few digits."""
        if self.whole or not drawn:
            return drawn
        return float(min(max(round(drawn, DIGITS - 1 - math.floor(math.log10(abs(drawn)))), self.low), self.high))

    def nearest(self, own: Any) -> Any:
        """Return a number, or the end of the range where it lies outside."""
        if not isinstance(own, int | float):
            return self.low
        return min(max(own, self.low), self.high)

    def written(self) -> Any:
        """Return what a YAML file has for it."""
        return {"low": self.low, "high": self.high, **({"log": True} if self.log else {})}


Values = Choices | Range


def _label(value: Any) -> Any:
    """Return what the journal holds for a value: lists as text."""
    return json.dumps(value) if isinstance(value, list | tuple) else value


def read_space(path: str | Path) -> dict[str, Any]:
    """Read a YAML file of values to be tried, by section and setting."""
    content = read_yaml(Path(path), "a YAML file of values to try, as `gatas tune CONFIG --show-space` prints")
    if not isinstance(content, dict):
        raise ConfigError(f"{path} {described(content)}; expected sections {' and '.join(SECTIONS)}.")
    return content


def written_space(space: Mapping[str, Values]) -> str:
    """Return a YAML file that `read_space` reads: a line for each setting."""
    lines = ["# choices as a list, or a range {low, high, log}; settings that are not here stay as they are in the config"]
    for section in SECTIONS:
        own = {name.partition(".")[2]: values for name, values in space.items() if name.startswith(f"{section}.")}
        lines += [f"{section}:"] if own else []
        for key, values in own.items():
            text = yaml.safe_dump(_plain(values.written()), default_flow_style=True, width=float("inf"), sort_keys=False)
            lines.append(f"  {key}: {text.strip()}")
    return "\n".join(lines) + "\n"


def _plain(content: Any) -> Any:
    return [_plain(value) for value in content] if isinstance(content, list | tuple) else content


def parsed_space(content: Mapping[str, Any], config: Config) -> tuple[dict[str, Values], bool]:
    """Return values by `section.key`, and whether the settings that are not named keep their default ranges."""
    known = (*SECTIONS, "defaults")
    for name in content:
        if name not in known:
            raise ConfigError(f"the search space has {name!r}; expected {', '.join(known[:-1])} or {known[-1]}.")
    defaults = content.get("defaults", False)
    if not isinstance(defaults, bool):
        raise ConfigError(f"defaults is {defaults!r}; expected true (what is not named is searched as ever) or false.")
    found: dict[str, Values] = {}
    for section in SECTIONS:
        settings = content.get(section) or {}
        if not isinstance(settings, Mapping):
            raise ConfigError(f"{section} of the search space is {settings!r}; expected settings with what each may be.")
        for key, given in settings.items():
            found[f"{section}.{key}"] = _checked(f"{section}.{key}", given, config)
    if not found and not defaults:
        raise ConfigError("the search space names no setting; expected one at least, such as model: {dropout: [0.2, 0.5]}.")
    return found, defaults


def _checked(setting: str, given: Any, config: Config) -> Values:
    """Parse the values of a setting; each of them, or both ends, must be what a config takes."""
    values = _parsed(setting, given)
    for value in values.values if isinstance(values, Choices) else (values.low, values.high):
        config.with_settings({setting: value})  # says what is wrong
    return values


def _parsed(setting: str, given: Any) -> Values:
    if isinstance(given, Mapping):
        return _parsed_range(setting, given)
    if not isinstance(given, list):
        return Choices((given,))
    labels = [json.dumps(value) for value in given]
    if not given or len(set(labels)) < len(labels):
        raise ConfigError(f"{setting} has the choices {given!r}; expected one or more, all different.")
    return Choices(tuple(tuple(value) if isinstance(value, list) else value for value in given))


def _parsed_range(setting: str, given: Mapping[str, Any]) -> Range:
    numbers = [given.get(name) for name in ("low", "high")]
    if set(given) - {"low", "high", "log"} or not all(_is_number(number) for number in numbers):
        raise ConfigError(
            f"{setting} has {dict(given)!r}; expected a list of choices, or a range such as "
            "{low: 0.001, high: 0.01, log: true}."
        )
    (low, high), log = numbers, given.get("log", False)
    assert isinstance(low, int | float) and isinstance(high, int | float)
    if not isinstance(log, bool):
        raise ConfigError(f"{setting} has log: {log!r}; expected true or false.")
    if not low < high or (log and low <= 0):
        expected = "0 < low < high, since log is true" if log else "low < high"
        raise ConfigError(f"{setting} has the range {low:g} to {high:g}; expected {expected}.")
    return Range(low, high, log)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
