"""A run as a YAML file: which data, which model, how it learns."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from gatas.datasets import Dataset
from gatas.datasets.config import DataConfig, DataSettings, NamedData, data_config
from gatas.datasets.settings import described, parsed_setting, read_yaml, shown
from gatas.errors import ConfigError
from gatas.tasks.config import ModelConfig, NumberOrAuto, checked, model_defaults, scores_pairs
from gatas.tasks.recommended import recommended

__all__ = ["Config", "DataConfig", "NamedData", "TrainingConfig", "load_config", "parsed_setting", "training_defaults"]

PAIR_DEFAULTS: dict[str, Any] = {"epochs": 30, "patience": 10, "batch_size": 250, "monitor": "metric"}
NODE_DEFAULTS: dict[str, Any] = {"batch_size": "auto"}
LINK_DEFAULTS: dict[str, Any] = {
    "loss": "list", "hidden_folds": 10, "n3": 0.02, "ema_decay": 0.999, "epochs": 100, "patience": 10, "batch_size": "auto",
    "monitor": "metric",
}  # fmt: skip


def _weights_by_name(given: Any) -> Any:
    if isinstance(given, Mapping):
        wrong = {
            name: weight for name, weight in given.items() if isinstance(weight, bool) or not isinstance(weight, int | float)
        }
        if not wrong and all(0 < weight < float("inf") for weight in given.values()):
            return {str(name): float(weight) for name, weight in given.items()}
    elif given in ("none", "balanced", None):
        return given or "none"
    raise ValueError(f"{given!r} came; expected none, balanced, or a weight above 0 for each class, such as {{spam: 3}}.")


WeightsByName = Annotated[Literal["none", "balanced"] | dict[str, float], BeforeValidator(_weights_by_name)]


NODE_STEPS, LINK_STEPS, SMALLEST_BATCH, LARGEST_BATCH = 50, 25, 100, 1000
"""Steps of an epoch, where their number is not given, as far as batches are neither smaller nor larger than these."""


def training_defaults(task: str, model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of training that are by default not those of `TrainingConfig`, but others for this task.

    Links that the settings of the `model` score as in the paper have defaults of their own.
    """
    if task != "link prediction":
        return NODE_DEFAULTS
    return PAIR_DEFAULTS if scores_pairs(model) else LINK_DEFAULTS


class TrainingConfig(BaseModel, frozen=True, extra="forbid"):
    """How a model learns: steps, stopping, evaluation, checkpoints."""

    epochs: int = Field(100, ge=1, description="at most so many times through the training split")
    batch_size: NumberOrAuto = Field(
        100,
        description="B: nodes (or links) per step; auto: a 50th of the nodes (a 25th of the links) to learn from, 100 to 1,000",
    )
    by_graph: bool = Field(False, description="batches of one graph each, where there are several: quicker on a GPU")
    optimiser: Literal["nadam", "adam"] = Field("nadam", description="Adam with or without Nesterov's momentum")
    learning_rate: float = Field(0.005, gt=0, description="of the optimiser")
    schedule: Literal["constant", "cosine"] = Field("constant", description="cosine: to zero over all epochs")
    momentum_decay: float = Field(0.004, ge=0, description="of NAdam's momentum; a large one holds it at 0.9")
    ema_decay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="of a running average of weights, which is what is validated and kept; 0: none; there is "
        "none where only embeddings that were seen are updated",
    )
    max_norm: float | None = Field(5.0, gt=0, description="gradients are clipped at this norm; null: not at all")
    l2: float = Field(0.0, ge=0, description="λ: weight of half the squared norm of all weights but q and relations")
    loss: Literal["binary", "list"] = Field(
        "binary", description="of links: each pair is a link or none; or its ends among many nodes, by softmax"
    )
    regression_loss: Literal["squared", "huber"] = Field(
        "squared", description="of numbers, in standard deviations; huber: less moved by those that are far off"
    )
    negatives: Literal["once", "each epoch"] = Field("each epoch", description="binary: when negatives are re-sampled")
    negative_types: Literal["as links", "all alike"] = Field(
        "as links", description="binary: types of negatives are as frequent as those of links, or all are"
    )
    num_negatives: int = Field(
        1000, ge=1, description="list: nodes drawn for each batch, beside the ends of its own links; all, where there are few"
    )
    negatives_by: Literal["uniform", "degree"] = Field("uniform", description="list: how these nodes are drawn")
    hidden_folds: int = Field(
        0,
        ge=0,
        description="parts that training links are dealt into; each is absent from the graph while it is asked for; 0: only "
        "the neighbours that links lead to in one step are hidden",
    )
    n3: float = Field(0.0, ge=0, description="list: weight of the cubed vectors that links are scored by")
    consistency: float = Field(0.0, ge=0, description="weight of agreement between draws, on nodes without labels too; 0: none")
    consistency_draws: int = Field(2, ge=2, description="how often each node of a step is then looked at")
    consistency_nodes: int = Field(500, ge=0, description="how many nodes without labels a step then holds")
    temperature: float = Field(0.5, gt=0, le=1, description="how much the mean of the draws is then sharpened; 1: not at all")
    class_weights: WeightsByName = Field(
        "none", description="of classes in the loss: balanced gives rare ones as much as frequent ones; or a weight by name"
    )
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="share of each label that is spread over all classes in training; 0: none"
    )
    calibrate: bool = Field(
        True, description="fit a temperature of probabilities to validation data after training; classes stay as they are"
    )
    monitor: Literal["loss", "metric", "either", "both"] = Field(
        "loss",
        description="what early stopping looks at, on validation data; either: keeps the best metric, waits for both; "
        "both: keeps what is best by both, waits for both",
    )
    patience: int = Field(20, ge=1, description="stop after so many epochs without improvement")
    evaluation_mode: Literal["sample", "top", "all"] = Field(
        "sample", description="neighbours in evaluation: drawn, likeliest, all"
    )
    evaluation_draws: int = Field(1, ge=1, description="neighbourhoods whose probabilities are averaged in evaluation")
    embedding_updates: Literal["auto", "all", "seen"] = Field(
        "auto", description="which nodes' embeddings a step changes: all, or those it saw; auto: all of up to a million"
    )
    precision: Literal["float32", "tf32", "bfloat16"] = Field("tf32", description="of products on a GPU")
    storage: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="of keys and values on a GPU; auto: float16 where precision is tf32, else as precision; what float16 "
        "cannot hold is an error",
    )
    checkpoint_seconds: float = Field(60.0, ge=0, description="how often a run with a folder saves where it is")
    keep_checkpoints: int = Field(2, ge=1, description="how many of these are kept")

    def batch_of(self, count: int, *, links: bool = False) -> int:
        """Return how many of `count` nodes or links a step has."""
        if self.batch_size != "auto":
            return self.batch_size
        return min(max(count // (LINK_STEPS if links else NODE_STEPS), SMALLEST_BATCH), LARGEST_BATCH)


class Config(BaseModel, frozen=True, extra="forbid"):
    """A whole run: data, model and training."""

    data: DataConfig = Field(NamedData(), description="what is learned from")
    model: ModelConfig = Field(ModelConfig(), description="what learns")
    training: TrainingConfig = Field(TrainingConfig(), description="how")

    _given: frozenset[str] = PrivateAttr(frozenset())
    _choices: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _fill_in_defaults(cls, given: Any, check: ModelWrapValidatorHandler["Config"]) -> "Config":
        """Complete sections that are given in part by the defaults of the task that the data is for."""
        if not isinstance(given, Mapping):
            return check(given)
        task = _task_of(given.get("data", NamedData()))
        model = given.get("model", {})
        model = model.model_dump() if isinstance(model, ModelConfig) else model if isinstance(model, Mapping) else {}
        defaults = {"model": model_defaults(task, model), "training": training_defaults(task, model)}
        sections = {name: given.get(name, {}) for name in defaults}
        filled = {name: {**defaults[name], **own} for name, own in sections.items() if isinstance(own, Mapping)}
        config = check({**given, **filled})
        config._given = frozenset(f"{name}.{key}" for name, own in sections.items() for key in dict(own))
        return config

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._sections == other._sections

    def __hash__(self) -> int:
        return hash(self._sections)

    @property
    def _sections(self) -> tuple[BaseModel, ...]:
        return self.data, self.model, self.training

    @property
    def _all_settings(self) -> frozenset[str]:
        return frozenset(f"{name}.{key}" for name in ("model", "training") for key in dict(getattr(self, name)))

    @property
    def choices(self) -> tuple[str, ...]:
        """Return which settings were chosen for the data, and why."""
        return self._choices

    def complete(self, choices: Iterable[str] = ()) -> "Config":
        """Return the config as one whose settings are all given: none of them follows from data any more."""
        config = self.model_copy()
        config._given = self._all_settings
        config._choices = tuple(choices)
        return config

    def for_data(self, dataset: Dataset) -> "Config":
        """Return the complete config for a data set: what was not given is what suits the data."""
        if self._given >= self._all_settings:
            return self
        steps = self.model.num_steps if "model.num_steps" in self._given else "auto"
        found = recommended(dataset, steps).without(self._given)
        return self.with_settings(found.settings).complete([*self._choices, *found.reasons])

    def to_yaml(self) -> str:
        """Return YAML with a comment for every setting; it reads back as it was written."""
        return "\n".join(self.section(name) for name in type(self).model_fields)

    def section(self, name: str, keys: Sequence[str] | None = None) -> str:
        """Return one section as YAML: some of its settings, or all that matter."""
        values = getattr(self, name)
        fields, plain = type(values).model_fields, values.model_dump(mode="json")
        lines = [f"{name}:  # {type(self).model_fields[name].description}"]
        for key in keys or (values.written if isinstance(values, DataSettings) else fields):
            value = yaml.safe_dump(plain[key], default_flow_style=True, width=float("inf"), sort_keys=False)
            value = value.removesuffix("\n...\n").strip()
            lines.append(f"  {key}: {value}".ljust(36) + f"  # {fields[key].description}")
        return "\n".join(lines) + "\n"

    def below(self, folder: Path) -> "Config":
        """Return the config with its relative paths taken from a folder."""
        return self.model_copy(update={"data": self.data.below(folder)})

    def with_settings(self, settings: Mapping[str, Any]) -> "Config":
        """Return the config with some settings changed, named `section.key`."""
        content = self.model_dump()
        for section in ("model", "training"):
            content[section] = {key: value for key, value in content[section].items() if f"{section}.{key}" in self._given}
        for name, value in settings.items():
            section, _, key = name.partition(".")
            if not key or section not in content:
                raise ConfigError(f"{name!r} names no setting; expected {', '.join(f'{s}.…' for s in content)}.")
            content[section] = {**content[section], key: value}
        return checked(Config, content)


def _task_of(data: Any) -> str:
    """Return what data is for; nothing where it cannot be told, which is said when the data is checked."""
    try:
        task: str = data.task if isinstance(data, DataSettings) else data_config(data).task  # type: ignore[attr-defined]
        return task
    except (ConfigError, TypeError, ValueError, AttributeError):
        return ""


def check_config(given: Any) -> None:
    """Refuse what is no config, such as the path of one."""
    if not isinstance(given, Config):
        raise ConfigError(f"config is {shown(given)}; expected a Config: gatas.load_config(path) reads one from a YAML file.")


def load_config(path: str | Path) -> Config:
    """Read a config from a YAML file; paths in it are relative to it."""
    path = Path(path)
    content = read_yaml(path, "a YAML file of settings, as `gatas init` writes")
    if not isinstance(content, dict):
        raise ConfigError(f"{path} {described(content)}; expected sections {', '.join(Config.model_fields)}.")
    try:
        config = checked(Config, {str(key): value for key, value in content.items()})
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return config.below(path.absolute().parent)
