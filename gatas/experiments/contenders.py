"""What can be compared: our recipes, peers, and a user's own `module:Class`."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.experiments import recipes
from gatas.experiments.baselines import PEERS, Peer, changed_recipe, recipe_of, seeded, space_of
from gatas.experiments.baselines import label_propagation as propagation
from gatas.experiments.baselines.links import LINK_PEERS, fit_link_peer, settings_of
from gatas.experiments.baselines.links.embeddings import EMBEDDINGS, check_pykeen
from gatas.experiments.baselines.links.encoders import TRAINING
from gatas.experiments.baselines.peer import PeerSpace, trained
from gatas.tasks.config import ModelConfig, checked
from gatas.tasks.learnable import Learnable
from gatas.training.config import Config, NamedData, TrainingConfig
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device, fit_models, make_model
from gatas.training.run import TrainedRun

LINKS = "link prediction"
METRICS = {"node classification": "accuracy", "multi-label node classification": "micro_f1", "node regression": "r2"}
"""What models of nodes are compared by."""
OURS = "gatas"
"""The paper's recipe for whatever the data set is; for one's own data, the settings of its YAML file."""
ANY_DATA: dict[str, str] = {
    "gatas-paper": "the paper's settings for the task",
    "path-evidence": "links by typed paths alone",
}
"""Further settings of ours that are for any data, or for any links."""
NODE_PEERS = (*PEERS, propagation.NAME)
OWN_SPACE: PeerSpace = {
    "learning_rate": (0.001, 0.003, 0.005, 0.01), "l2": (0.0, 1e-4, 1e-3, 1e-2, 5e-2), "dropout": (0.1, 0.3, 0.5, 0.7),
    "input_noise": (0.0, 0.3, 0.6, 0.9), "num_steps": (1, 2, 3), "sample_size": (25, 50, 100), "head_size": (25, 50, 100),
    "num_heads": (4, 8), "monitor": ("loss", "metric"),
}  # fmt: skip
"""What a search of ours tries, for classes of nodes."""


class Contender:
    """A model to compare on a data set: what to keep of its settings, and how it is trained."""

    vmaps: bool = True
    """Whether its seeds can be trained as one program."""

    def __init__(self, dataset: Dataset, settings: dict[str, Any]) -> None:
        self.dataset, self.settings = dataset, settings

    @property
    def space(self) -> PeerSpace:
        """What a search of its settings tries; nothing where there is nothing to choose."""
        return {}

    def fit(self, seeds: Sequence[int], device: str, limit: Limit) -> list[TrainedRun]:
        raise NotImplementedError


class Looped(Contender):
    """Trained by our loop: a model for each seed."""

    def __init__(self, dataset: Dataset, config: Config, settings: dict[str, Any]) -> None:
        super().__init__(dataset, settings)
        self.config = config

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        raise NotImplementedError

    def fit(self, seeds: Sequence[int], device: str, limit: Limit) -> list[TrainedRun]:
        return fit_models(self.models(seeds), self.dataset, self.config, seeds, device=device, limit=limit)


class Ours(Looped):
    """A recipe, or the settings that came with the data."""

    def __init__(self, name: str, dataset: Dataset, config: Config | None, changed: Mapping[str, Any]) -> None:
        if name in ANY_DATA:
            config = any_data(name, dataset, config)
        elif config is None or name != OURS:
            config = recipes.recipe(dataset.name if name == OURS else name)
        sections = {name: "model" if name in ModelConfig.model_fields else "training" for name in changed}
        config = config.with_settings({f"{sections[name]}.{name}": value for name, value in changed.items()})
        config = config.for_data(dataset)
        super().__init__(dataset, config, config.model_dump(mode="json", include={"model", "training"}))

    @property
    def space(self) -> PeerSpace:
        return {} if self.dataset.task == LINKS else OWN_SPACE

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        first = make_model(self.dataset, self.config, seeds[0])
        return [first, *(make_model(self.dataset, self.config, seed, first) for seed in seeds[1:])]


def any_data(name: str, dataset: Dataset, config: Config | None) -> Config:
    """The config of ours by that name for a data set, whatever else the data's own `config` says."""
    sections = {"model": {"link_score": ("paths",)}} if name == "path-evidence" else recipes.paper_settings(dataset.task)
    return checked(Config, {"data": NamedData(name=dataset.name) if config is None else config.data, **sections})


class NodePeer(Looped):
    """A peer for node classification."""

    def __init__(self, name: str, dataset: Dataset, changed: Mapping[str, Any]) -> None:
        self.name, self.kind, self.recipe = name, PEERS[name], changed_recipe(recipe_of(name, dataset), changed)
        config = Config(data=NamedData(name=dataset.name), training=self.recipe.training)
        settings = {"model": dict(self.recipe.model), "training": config.training.model_dump(mode="json")}
        super().__init__(dataset, config, settings)

    @property
    def space(self) -> PeerSpace:
        return space_of(self.name, self.dataset)

    @cached_property
    def first(self) -> Peer:
        return self.kind(self.dataset, **self.recipe.model)

    @property
    def vmaps(self) -> bool:  # type: ignore[override]
        return self.first.vmaps

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        return seeded(self.first, seeds)


class PropagatedFloor(Contender):
    """Label propagation, which seeds do not change."""

    vmaps = False

    def __init__(self, dataset: Dataset, changed: Mapping[str, Any]) -> None:
        super().__init__(dataset, {"model": {**propagation.SETTINGS, **changed}})

    @property
    def space(self) -> PeerSpace:
        return propagation.SPACE

    def fit(self, seeds: Sequence[int], device: str, limit: Limit) -> list[TrainedRun]:
        where, settings = chosen_device(device), self.settings["model"]
        return [propagation.fit_label_propagation(self.dataset, seed, where, **settings) for seed in seeds]


class LinkBaseline(Contender):
    """A peer for link prediction, one seed after another."""

    vmaps = False

    def __init__(self, name: str, dataset: Dataset) -> None:
        super().__init__(dataset, settings_of(name, dataset))
        self.name = name

    def fit(self, seeds: Sequence[int], device: str, limit: Limit) -> list[TrainedRun]:
        return [fit_link_peer(self.name, self.dataset, seed, device, limit=limit) for seed in seeds]


class Own(Looped):
    """A user's class. It may say how it is trained in `training_settings`; by default as most peers are."""

    vmaps = False  # nobody knows

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.kind = own_class(name)
        given: dict[str, Any] = getattr(self.kind, "training_settings", {})
        of_nodes = trained(learning_rate=0.01, l2=5e-4, epochs=1000, patience=100).model_dump()
        base = TRAINING if dataset.task == LINKS else of_nodes
        training = checked(TrainingConfig, {**base, **given}, f"training_settings of {name}")
        config = Config(data=NamedData(name=dataset.name), training=training)
        super().__init__(dataset, config, {"class": name, "training": training.model_dump(mode="json")})

    def models(self, seeds: Sequence[int]) -> Sequence[Learnable]:
        model = OwnLinkModel if self.dataset.task == LINKS else OwnModel
        return [model(self.kind, self.dataset, seed) for seed in seeds]


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


class OwnLinkModel(OwnModel):
    """A user's module for links: asked for representations of nodes, and for the logits of typed pairs of these."""

    def represent(self, target: Tensor, **given: Any) -> Tensor:
        found: Tensor = self.module.represent(target)  # type: ignore[operator]
        return found

    def score(self, source: Tensor, target: Tensor, edge_type: Tensor) -> Tensor:
        logits: Tensor = self.module.score(source, target, edge_type)  # type: ignore[operator]
        return logits

    def forward(  # type: ignore[override]
        self, source: Tensor, edge_type: Tensor, target: Tensor, **given: Any
    ) -> Tensor:
        both = self.represent(torch.cat([source, target]))
        return self.score(both[: len(source)], both[len(source) :], edge_type)


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
    peers = (OURS, *ANY_DATA, *NODE_PEERS, *LINK_PEERS)
    return None if name in peers or ":" in name else recipes.recipe(name).data.name


def is_for(name: str, dataset: Dataset) -> bool:
    """A recipe is for its own data, a peer for its task and for what types there are, a user's class for any data."""
    if name in NODE_PEERS or name in LINK_PEERS:
        if dataset.task == LINKS:
            return name in LINK_PEERS
        return name in NODE_PEERS and suits_nodes(name, dataset)
    return data_of(name) in (None, dataset.name) and (name != "path-evidence" or dataset.task == LINKS)


def suits_nodes(name: str, dataset: Dataset) -> bool:
    """Whether a peer for nodes can learn what a data set asks for, from what it has."""
    if name == propagation.NAME:
        return dataset.task != "node regression"
    peer = PEERS[name]
    return (has_types(dataset) or not peer.typed) and (peer.learns_numbers or dataset.task != "node regression")


def has_types(dataset: Dataset) -> bool:
    """Whether nodes have types, or edges more than one, not counting those that lead back."""
    return dataset.nodes.node_type is not None or len(dataset.graph.original_edge_types) > 1


def check_models(names: Sequence[str], datasets: Sequence[Dataset]) -> None:
    """Refuse what nobody knows and what is for none of the data, before anything runs."""
    everyone = [OURS, *(name for name in NODE_PEERS if name not in LINK_PEERS), *LINK_PEERS, *ANY_DATA, *recipes.names()]
    known = [name for name in everyone if any(is_for(name, dataset) for dataset in datasets)]
    peers = [name for name in known if name not in recipes.names()]
    data = ", ".join(dict.fromkeys(dataset.name for dataset in datasets))
    for name in names:
        if ":" in name:
            check_own(name, own_class(name), datasets)
        elif name not in everyone:
            near = get_close_matches(name, known, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Known for {data}: {', '.join(peers)}, and recipes."
            raise ConfigError(f"there is no model {name!r}. {hint} Or give your own as module:Class.")
        elif name not in known and data_of(name) is not None:
            raise ConfigError(f"{name} is a recipe for {data_of(name)}, which is not among the data: {data}.")
        elif name not in known and name in PEERS and PEERS[name].typed and all(one.task != LINKS for one in datasets):
            raise ConfigError(f"{name} is for graphs with types, and {data} has neither node types nor several edge types.")
        elif name not in known:
            task = "links" if name in LINK_PEERS or name == "path-evidence" else "classes of nodes"
            raise ConfigError(f"{name} predicts {task}, which {data} is not for. Known there: {', '.join(peers)}.")
        elif name in EMBEDDINGS:
            check_pykeen(name)


def check_own(name: str, kind: type[nn.Module], datasets: Sequence[Dataset]) -> None:
    """For links a user's class needs two methods."""
    missing = [method for method in ("represent", "score") if not callable(getattr(kind, method, None))]
    for dataset in datasets:
        if dataset.task == LINKS and missing:
            raise ConfigError(
                f"{name} has no method {missing[0]}. For links, as in {dataset.name}, expected represent(nodes) -> (B, size) "
                "and score(source, target, edge_type) -> (B,) logits, from representations of both."
            )


def contender(name: str, dataset: Dataset, config: Config | None = None, changed: Mapping[str, Any] | None = None) -> Contender:
    """The model of that name for a data set. `config` has the settings of ours, instead of the data set's recipe.

    `changed` are values from the contender's `space`, by the name of the setting.
    """
    changed = changed or {}
    if ":" in name:
        return Own(name, dataset)
    if name in LINK_PEERS and dataset.task == LINKS:
        return LinkBaseline(name, dataset)
    if name == propagation.NAME:
        return PropagatedFloor(dataset, changed)
    return NodePeer(name, dataset, changed) if name in PEERS else Ours(name, dataset, config, changed)
