"""Settings as people give them: checked, or refused with the key, what came and what was expected."""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from gatas.errors import ConfigError

NO_SECTION = ("model_type", "model_attributes_type", "dict_type", "dataclass_type")
"""What pydantic says of a value where settings by name were expected."""
ON_ONE_LINE = 5
"""Settings that stand together as the value of one, such as ratios; more are a section."""
EXPECTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    "string_type": "text",
    "path_type": "the path of a file",
    "dict_type": "a value for each of some names, as {name: value}",
}
"""What was expected, by what pydantic calls the problem."""
SectionModel = TypeVar("SectionModel", bound=BaseModel)


def checked(model: type[SectionModel], given: Mapping[str, Any], where: str = "") -> SectionModel:
    """Make a section of a config, or raise an error that names the key, what came and what was expected."""
    try:
        return model(**given)
    except ValidationError as error:
        refuse_settings(error, [model], where)


def read_yaml(path: Path, expected: str) -> Any:
    """Return what a YAML file holds; `expected` says what it should be, and which command writes one."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}; expected {expected}. Check the path.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} could not be read as YAML ({' '.join(str(error).split())}).") from None


def refuse_settings(error: ValidationError, models: Iterable[type[BaseModel]], where: str) -> NoReturn:
    """Say in one line what is wrong with settings of one of these models."""
    models = list(models)
    raise ConfigError(" ".join(_explained(models, problem, where) for problem in error.errors())) from None


def _explained(models: list[type[BaseModel]], problem: Any, where: str) -> str:
    place = [part for part in problem["loc"] if not str(part).startswith("(")]  # without tags of unions
    key = ".".join([*([where] if where else []), *map(str, place)])
    if problem["type"] == "extra_forbidden":
        known = known_keys(models, place[:-1])
        near = get_close_matches(str(place[-1]), known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."
        return f"there is no setting {key!r}.{hint}"
    message = str(problem["msg"])
    if problem["type"] == "value_error":  # of settings together, in words of our own
        return f"{key}: {message.removeprefix('Value error, ')}".removeprefix(": ")
    if place[-1:] == ["[key]"]:
        return f"{key.removesuffix('.[key]').rpartition('.')[0]} has the name {shown(problem['input'])}; expected text."
    given = f"{key} is {shown(problem['input'])}"
    if problem["type"] in NO_SECTION and (known := known_keys(models, place)):
        return f"{given}; expected {_section(known)}."
    if problem["type"] in EXPECTED:
        return f"{given}; expected {EXPECTED[problem['type']]}."
    return f"{given}; {message[0].lower()}{message[1:]}."


def _section(known: Collection[str]) -> str:
    if len(known) <= ON_ONE_LINE:
        return f"a value by name, as {{{', '.join(f'{name}: …' for name in known)}}}"
    return "a section of settings, a line `key: value` for each"


def shown(value: Any) -> str:
    """Return a value as it stands in YAML, where that differs from Python."""
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)


def described(content: Any) -> str:
    """Say what a YAML file has, where it is not sections of settings."""
    return "is empty" if content is None else f"holds a {type(content).__name__}"


def known_keys(models: Iterable[type[BaseModel]], inside: Iterable[Any]) -> list[str]:
    """Return the keys of a section that is one of these models, or of a section inside it."""
    found = list(models)
    for part in inside:
        fields = [model.model_fields[str(part)] for model in found if str(part) in model.model_fields]
        found = [model for field in fields for model in _models_in(field.annotation)]
    return list(dict.fromkeys(key for model in found for key in model.model_fields))


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """Find the models that a field may hold."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in get_args(annotation) for model in _models_in(part)]


def parsed_setting(text: str) -> tuple[str, Any]:
    """Parse `key=value` as given on a command line; the value is YAML."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{text!r} sets nothing; expected section.key=value, such as training.epochs=200.")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"{key.strip()} is {value!r}, which is no YAML ({' '.join(str(error).split())}).") from None
