"""Settings as people give them: checked, or refused with the key, what came and what was expected."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from gatas.errors import ConfigError

Section = TypeVar("Section", bound=BaseModel)


def checked(section: type[Section], given: Mapping[str, Any], where: str = "") -> Section:
    """A section of a config, or an error that names the key, what came and what was expected."""
    try:
        return section(**given)
    except ValidationError as error:
        raise ConfigError(" ".join(_explained(section, problem, where) for problem in error.errors())) from None


def _explained(section: type[BaseModel], problem: Any, where: str) -> str:
    key = ".".join([*([where] if where else []), *(str(part) for part in problem["loc"])])
    if problem["type"] == "extra_forbidden":
        known = known_keys(section, problem["loc"][:-1])
        near = get_close_matches(str(problem["loc"][-1]), known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."
        return f"there is no setting {key!r}.{hint}"
    message = str(problem["msg"])
    if problem["type"] == "value_error":  # of settings together, in words of our own
        return f"{key}: {message.removeprefix('Value error, ')}".removeprefix(": ")
    return f"{key} is {problem['input']!r}; {message[0].lower()}{message[1:]}."


def known_keys(section: type[BaseModel], inside: tuple[Any, ...]) -> list[str]:
    """The keys of a section, or of one inside it."""
    for part in inside:
        field = section.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return []
        section = field.annotation
    return list(section.model_fields)


def parsed_setting(text: str) -> tuple[str, Any]:
    """`key=value` as on a command line; the value is YAML."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{text!r} sets nothing; expected section.key=value, such as training.epochs=200.")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"{key.strip()} is {value!r}, which is no YAML ({' '.join(str(error).split())}).") from None
