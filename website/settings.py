"""The reference of YAML settings, from the pydantic models that check them."""

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gatas.datasets.config import LinkTableData, NamedData, NodeTableData, PairFiles, Ratios, StoreData
from gatas.tasks.config import ModelConfig, model_defaults
from gatas.training.config import TrainingConfig, training_defaults
from website.markdown import code, table

INTRODUCTION = """# Settings

A YAML file has three sections: `data`, `model` and `training`. [`gatas init`](../own-data.md) writes one for your tables,
`gatas config show digits` prints a whole one, and `--set training.epochs=200` changes a setting of a command. Only `data` must
be there: what a file does not say is the default, or [follows from the
data](../nodes.md#settings-that-follow-from-the-data). A setting that does not exist is
refused, and the nearest name is suggested. Letters are [the paper's](../glossary.md).

```yaml
data:
  edges: edges.csv
  nodes: nodes.csv
  label: topic
model:
  sample_size: 50
training:
  epochs: 200
```

In Python the settings of `model` are arguments of `gatas.NodeClassifier`, `gatas.NodeRegressor` and
`gatas.LinkPredictor`, those of
`training` are arguments of `gatas.fit`, and those of `data` are arguments of `gatas.read_dataset`.
"""
SECTIONS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    (
        "data: tables, classes or numbers of nodes",
        "Where `data` has `edges`, and `task` is not `link prediction`.",
        NodeTableData,
    ),
    ("data: tables, links", "Where `data` has `edges` and `task: link prediction`.", LinkTableData),
    ("data: ratios", "The section `ratios` of `data`.", Ratios),
    ("data: pairs", "The section `pairs` of `data`.", PairFiles),
    ("data: a store", "Where `data` has `store`: the folder that [`gatas ingest`](../scale.md#ingest) writes.", StoreData),
    ("data: a known data set", "Where `data` has a `name` alone.", NamedData),
    ("model", "", ModelConfig),
    ("training", "", TrainingConfig),
)
WORDS = {int: "whole number", float: "number", bool: "true or false", str: "text", NoneType: "null"}
OWN_WORDS = {"Path": "path"}


def page() -> str:
    """Describe every section, a table for each."""
    return "\n\n".join([INTRODUCTION, *(section(*one) for one in SECTIONS)])


def section(title: str, where: str, model: type[BaseModel]) -> str:
    """The settings of one section: what each may be, its default and its meaning."""
    rows = [row(name, field, model) for name, field in model.model_fields.items()]
    return "\n\n".join([f"## {title}", *([where] if where else []), table(["setting", "value", "default", "meaning"], rows)])


def row(name: str, field: FieldInfo, model: type[BaseModel]) -> tuple[str, str, str, str]:
    """One setting as a row of its table."""
    return code(name), values(field.annotation), default_of(name, field, model), field.description or ""


def values(kind: Any) -> str:
    """Say what a setting may be."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return values(inner[0])
    if origin is Literal:
        return ", ".join(code(one) for one in inner)
    if origin in (Union, UnionType):
        return ", ".join(dict.fromkeys(values(one) for one in inner))
    if origin in (tuple, list):
        return f"list ({values(inner[0])})"
    if origin is dict:
        return f"{values(inner[0])}: {values(inner[1])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "a section"
    return WORDS.get(kind) or OWN_WORDS.get(kind.__name__, kind.__name__)


def default_of(name: str, field: FieldInfo, model: type[BaseModel]) -> str:
    """The default; with those of single tasks where they differ."""
    if field.is_required():
        return "must be given"
    if isinstance(field.default, BaseModel):
        return "its defaults"
    others = task_defaults(name, model)
    own = code(as_yaml(field.default))
    return "; ".join([own, *(f"{task}: {code(as_yaml(value))}" for task, value in others.items() if value != field.default)])


def task_defaults(name: str, model: type[BaseModel]) -> dict[str, Any]:
    """The defaults of one setting that differ by task."""
    by_section: dict[type[BaseModel], Any] = {ModelConfig: model_defaults, TrainingConfig: training_defaults}
    if model not in by_section:
        return {}
    defaults = by_section[model]
    found = {
        "nodes": defaults("node classification", {}),
        "links": defaults("link prediction", {}),
        "`link_score: [pair]`": defaults("link prediction", {"link_score": ("pair",)}),
    }
    return {task: values[name] for task, values in found.items() if name in values}


def as_yaml(value: Any) -> str:
    """A value as it is written in a YAML file, on one line."""
    value = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(value, default_flow_style=True).strip().removesuffix("...").strip()
