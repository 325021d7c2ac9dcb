"""What can be compared: our recipes, peers, and a user's own `module:Class`."""

import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.experiments import recipes
from gatas.experiments.baselines import PEERS, Peer, recipe_of, seeded
from gatas.experiments.baselines.peer import trained
from gatas.tasks.config import checked
from gatas.tasks.learnable import Learnable
from gatas.training.config import Config, DataConfig, TrainingConfig
from gatas.training.loop import make_model

OURS = "gatas"
"""The paper's recipe for whatever the data set is; for one's own data, the settings of its YAML file."""


class Contender:
    """A model to compare on a data set: how it is trained, what to keep of its settings, and one of it for each seed."""

    vmaps: bool = True
    """Whether its seeds can be trained as one program."""

    def __init__(self, dataset: Dataset, config: Config, settings: dict[str, Any]) -> None:
        self.dataset, self.config, self.settings = dataset, config, settings

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        raise NotImplementedError


class Ours(Contender):
    """A recipe, or the settings that came with the data."""

    def __init__(self, name: str, dataset: Dataset, config: Config | None) -> None:
        if config is None or name != OURS:
            config = recipes.recipe(dataset.name if name == OURS else name)
        super().__init__(dataset, config, config.model_dump(mode="json"))

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        first = make_model(self.dataset, self.config, seeds[0])
        return [first, *(make_model(self.dataset, self.config, seed, first) for seed in seeds[1:])]


class Other(Contender):
    """A peer."""

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.kind, self.recipe = PEERS[name], recipe_of(name, dataset)
        config = Config(data=DataConfig(name=dataset.name), training=self.recipe.training)
        settings = {"model": dict(self.recipe.model), "training": config.training.model_dump(mode="json")}
        super().__init__(dataset, config, settings)

    @cached_property
    def first(self) -> Peer:
        return self.kind(self.dataset, **self.recipe.model)

    @property
    def vmaps(self) -> bool:  # type: ignore[override]
        return self.first.vmaps

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        return seeded(self.first, seeds)


class Own(Contender):
    """A user's class. It may say how it is trained in `training_settings`; by default as most peers are."""

    vmaps = False  # nobody knows

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.kind = own_class(name)
        given: dict[str, Any] = getattr(self.kind, "training_settings", {})
        base = trained(learning_rate=0.01, l2=5e-4, epochs=1000, patience=100).model_dump()
        training = checked(TrainingConfig, {**base, **given}, f"training_settings of {name}")
        config = Config(data=DataConfig(name=dataset.name), training=training)
        super().__init__(dataset, config, {"class": name, "training": training.model_dump(mode="json")})

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        return [OwnModel(self.kind, self.dataset, seed) for seed in seeds]


class OwnModel(Learnable):
    """A user's module, made of the data set; asked for the logits of targets and for nothing else."""

    captures = False
    randomness = "different"

    def __init__(self, kind: type[nn.Module], dataset: Dataset, seed: int) -> None:
        super().__init__()
        self.kind, self.dataset = kind, dataset
        self.reset(seed)

    def reset(self, seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = self.kind(self.dataset)

    def forward(self, target: Tensor, **given: Any) -> Tensor:
        logits: Tensor = self.module(target)
        return logits


def own_class(name: str) -> type[nn.Module]:
    """`module:Class`, found from the working directory too."""
    module, _, attribute = name.partition(":")
    here, places = str(Path.cwd()), list(sys.path)
    try:
        sys.path.insert(0, here)
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{name} could not be imported ({error}). Expected module:Class of an importable module.") from None
    finally:
        sys.path[:] = places
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise ConfigError(f"{name} is no class of torch.nn.Module; expected one that is made of a Dataset.")
    return found


def data_of(name: str) -> str | None:
    """The data set that a recipe is for; none for models of any data set."""
    return None if name == OURS or name in PEERS or ":" in name else recipes.recipe(name).data.name


def check_models(names: Sequence[str], data: Sequence[str]) -> None:
    """Refuse what nobody knows, before anything runs."""
    for name in names:
        known = [OURS, *PEERS, *recipes.names()]
        if ":" in name:
            own_class(name)
        elif name not in known:
            near = get_close_matches(name, known, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {OURS}, {', '.join(PEERS)}, and recipes."
            raise ConfigError(f"there is no model {name!r}. {hint} Or give your own as module:Class.")
        elif data_of(name) not in (None, *data):
            raise ConfigError(f"{name} is a recipe for {data_of(name)}, which is not among the data: {', '.join(data)}.")


def contender(name: str, dataset: Dataset, config: Config | None = None) -> Contender:
    """The model of that name for a data set. `config` has the settings of ours, instead of the data set's recipe."""
    if ":" in name:
        return Own(name, dataset)
    return Other(name, dataset) if name in PEERS else Ours(name, dataset, config)
